# SPDX-License-Identifier: MIT
#
# Benchmarks. `make bench` measures the CPU side (tests/bench/run.sh cpu),
# `make bench-gpu` the GPU side. libdpdk-dev and liburing-dev are peers only:
# without one, its rows lack it and the JSON file says so.

PKG_CONFIG ?= pkg-config
BENCH := tests/bench
have = $(shell $(PKG_CONFIG) --exists $(1) && echo yes)

BENCH_COMMON := $(BENCH)/bench.c $(BENCH)/session.c
BENCH_CPU_SRC := $(BENCH_COMMON) $(wildcard $(BENCH)/cpu*.c) \
		 $(BENCH)/peer_ring.c $(BENCH)/peer_condvar.c
BENCH_LIBS := -ljansson

ifeq ($(call have,liburing),yes)
BENCH_CPU_SRC += $(BENCH)/peer_uring.c
BENCH_FLAGS += -DHAVE_URING \
	-DLIBURING_VERSION=\"$(shell $(PKG_CONFIG) --modversion liburing)\"
BENCH_LIBS += -luring
endif

ifeq ($(call have,libdpdk),yes)
BENCH_CPU_SRC += $(BENCH)/peer_rte_ring.c
BENCH_FLAGS += -DHAVE_RTE_RING \
	-DDPDK_VERSION=\"$(shell $(PKG_CONFIG) --modversion libdpdk)\"
CFLAGS_$(BENCH)/peer_rte_ring.c := -O3 -Wno-undef -Wno-pointer-arith \
	-Wno-shadow $(filter-out -I/usr/include,$(shell $(PKG_CONFIG) --cflags libdpdk))
BENCH_LIBS += -lrte_ring -lrte_eal
endif

# The bare ring copies messages as rte_ring does: by the same optimiser.
CFLAGS_$(BENCH)/peer_ring.c := -O3
$(foreach s,$(filter-out %/peer_rte_ring.c %/peer_ring.c,$(BENCH_CPU_SRC)),\
	$(eval CFLAGS_$(s) := $(BENCH_FLAGS)))

$(B)/bench-cpu: $(BENCH_CPU_SRC:%.c=$(B)/%.o) $(B)/libairunner.a
	$(CC) $(LDFLAGS) $^ $(BENCH_LIBS) $(AIR_LIBS) $(LDLIBS) -o $@

BENCH_NUMPY_SRC := $(BENCH_COMMON) $(BENCH)/numpy_peer.c
$(B)/bench-numpy: $(BENCH_NUMPY_SRC:%.c=$(B)/%.o) $(B)/libairunner.a
	$(CC) $(LDFLAGS) $^ $(BENCH_LIBS) $(AIR_LIBS) $(LDLIBS) -o $@

.PHONY: bench bench-gpu bench-numpy
.PHONY: bench-programs bench-cpu-program bench-gpu-program bench-numpy-program
bench-cpu-program: $(B)/bench-cpu
bench-numpy-program: $(B)/bench-numpy
bench-programs: bench-cpu-program bench-numpy-program

# Which peers there are is found out anew once what is missing is installed.
bench:
	@qemu/deps.sh build bench
	@$(MAKE) --no-print-directory -s bench-cpu-program
	tests/bench/run.sh cpu

bench-numpy:
	@qemu/deps.sh build bench
	@$(MAKE) --no-print-directory -s bench-numpy-program
	tests/bench/run.sh numpy

# The GPU side runs where there may be nothing but CUDA: libraries that are not
# the system's own are linked in, where they exist as archives.
ifneq ($(NVCC),)
BENCH_GPU_SRC := $(BENCH_COMMON) $(wildcard $(BENCH)/gpu*.c) tests/gpu/peer_lt.c
BENCH_ARCHIVES := $(strip $(foreach l,jansson uring openblas gfortran quadmath, \
	$(filter /%,$(shell $(CC) -print-file-name=lib$(l).a))))

$(B)/$(BENCH)/direct.o $(B)/$(BENCH)/decode.o: $(B)/%.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) $(foreach a,$(CUDA_ARCHS),\
		-gencode=arch=compute_$(a),code=sm_$(a)) -MMD -c -o $@ $<

$(B)/tests/gpu/peer_lt.o: CPPFLAGS += -isystem $(CUDA_HOME)/include

$(B)/bench-gpu: $(BENCH_GPU_SRC:%.c=$(B)/%.o) $(B)/$(BENCH)/direct.o \
		$(B)/$(BENCH)/decode.o \
		$(B)/libairunner.a
	$(NVCC) -ccbin $(CXX) -o $@ $^ \
		$(if $(word 5,$(BENCH_ARCHIVES)),$(BENCH_ARCHIVES), \
		  -ljansson $(AIR_LIBS)) $(LDLIBS)

bench-programs: $(B)/bench-gpu
bench-gpu-program: cuda $(B)/bench-gpu $(B)/airunnerd

bench-gpu:
	-@qemu/deps.sh build bench
	@$(MAKE) --no-print-directory bench-gpu-program
	tests/bench/run.sh gpu
else
bench-gpu:
	@echo "bench-gpu: no nvcc on this machine"; exit 1
endif
