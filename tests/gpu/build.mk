# SPDX-License-Identifier: MIT
# What tests/gpu/run.sh runs on a machine with a GPU, and the driver that runs
# nothing, with which the host side is tested on any machine that has cuda.h.

ifneq ($(NVCC),)
# Operators' CPU side, without what needs the library (and with it liburing).
GPU_OPS := $(patsubst %.c,$(B)/%.o,$(filter-out %/api.c,$(OPS_SRC)))

GPU_TESTS := $(addprefix $(B)/tests/gpu/,selfcheck measure resident beside)

.PHONY: gpu-tests
gpu-tests: $(GPU_TESTS) $(B)/tests/gpu/handover \
		$(B)/tests/gpu/libfake-cuda.so

$(B)/tests/gpu/%.o: CPPFLAGS += -isystem $(CUDA_HOME)/include

$(GPU_TESTS): $(B)/tests/gpu/%: $(B)/tests/gpu/%.o $(B)/tests/gpu/drive.o \
		$(GPU_OPS)
	$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(B)/tests/gpu/measure: $(B)/tests/gpu/peer_lt.o
$(B)/tests/gpu/beside: $(addprefix $(B)/tests/gpu/,product.o peer_lt.o server.o)

$(B)/tests/gpu/handover: $(B)/tests/gpu/handover.o $(B)/libairunner.a
	$(CC) $(LDFLAGS) $^ $(AIR_LIBS) $(LDLIBS) -o $@

# Users' kernels: the library (and liburing), and code in all three forms.
USER_IMAGES := $(addprefix $(B)/tests/gpu/user.,cubin ptx fatbin)

.PHONY: gpu-launch
gpu-launch: $(B)/tests/gpu/launch $(B)/tests/gpu/policy $(USER_IMAGES) \
		$(B)/airunnerd $(B)/docs/examples/launch $(B)/docs/examples/saxpy.cubin

$(B)/tests/gpu/launch: $(B)/tests/gpu/launch.o $(B)/libairunner.a
	$(CC) $(LDFLAGS) $^ -lcmocka $(AIR_LIBS) $(LDLIBS) -o $@

# The library, and CUDA's own calls beside it.
$(B)/tests/gpu/policy: $(addprefix $(B)/tests/gpu/,policy.o product.o \
		peer_lt.o) $(B)/libairunner.a
	$(CC) $(LDFLAGS) $^ $(AIR_LIBS) $(LDLIBS) -o $@

# A cubin is for one GPU; PTX of the oldest is for all of them.
$(B)/tests/gpu/user.cubin: tests/gpu/user.cu $(CUDA_DIR)/archs
	@mkdir -p $(@D)
	$(NVCC) -arch=sm_$(firstword $(CUDA_ARCHS)) -cubin -o $@ $<

$(B)/tests/gpu/user.ptx: tests/gpu/user.cu
	@mkdir -p $(@D)
	$(NVCC) -arch=compute_80 -ptx -o $@ $<

$(B)/tests/gpu/user.fatbin: tests/gpu/user.cu $(CUDA_DIR)/archs
	@mkdir -p $(@D)
	$(NVCC) -fatbin -o $@ $< \
		$(foreach a,$(CUDA_ARCHS),-gencode=arch=compute_$(a),code=sm_$(a))

$(B)/docs/examples/saxpy.cubin: docs/examples/saxpy.cu $(CUDA_DIR)/archs
	@mkdir -p $(@D)
	$(NVCC) -arch=sm_$(firstword $(CUDA_ARCHS)) -cubin -o $@ $<

# The resident kernel on the CPU. Its fibres leave functions by longjmp, which
# fortified libraries take for an attack.
$(B)/tests/gpu/emulate_resident: tests/gpu/emulate_resident.cpp \
		tests/gpu/emulate.h tests/gpu/emulate_bodies.h \
		$(wildcard ops/worker/resident/*)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -w -fno-strict-aliasing -U_FORTIFY_SOURCE \
		$(CPPFLAGS) $< -o $@ -lpthread

HOST_TESTS := $(addprefix $(B)/tests/gpu/,host_test host_resident \
	host_handover)

$(HOST_TESTS): %: %.o
	$(CC) $(LDFLAGS) $^ -lcmocka $(AIR_LIBS) $(LDLIBS) -o $@

$(B)/tests/gpu/host_handover: $(B)/libairunner.a

$(B)/tests/gpu/afresh: $(B)/tests/gpu/afresh.o $(B)/libairunner.a
	$(CC) $(LDFLAGS) $^ $(AIR_LIBS) $(LDLIBS) -o $@

# What needs nvcc's headers and no GPU: the kernel's logic, the host's side.
.PHONY: check-cuda-host
check-cuda-host: export AIRUNNER_LIBCUDA = \
	$(abspath $(B)/tests/gpu/libfake-cuda.so)
check-cuda-host: export AIRUNNER_CUBLASLT = $(AIRUNNER_LIBCUDA)
check-cuda-host: export AIRUNNER_PLUGIN_DIR = $(abspath $(B))
check-cuda-host: $(B)/tests/gpu/emulate_resident $(HOST_TESTS) \
		$(B)/tests/gpu/afresh $(B)/airunnerd \
		$(B)/tests/gpu/libfake-cuda.so $(B)/libairunner-cuda.so
	timeout 120 $(B)/tests/gpu/emulate_resident
	timeout 120 $(B)/tests/gpu/host_test $(B)/libairunner-cuda.so
	timeout 120 $(B)/tests/gpu/host_resident $(B)/libairunner-cuda.so
	timeout 120 $(B)/tests/gpu/host_handover
	timeout 120 $(B)/tests/gpu/afresh inproc:
	FAKE_CUDA_SPENT=1 timeout 120 tests/gpu/served.sh $(B)/airunnerd \
		$(B)/tests/gpu/afresh

.PHONY: check-partition
check-cuda-host: check-partition
check-partition: $(B)/tests/gpu/partition $(B)/tests/gpu/libfake-cuda.so \
		$(B)/libairunner-cuda.so
	timeout 120 $<

$(B)/tests/gpu/partition: $(B)/tests/gpu/partition.o $(B)/libairunner.a
	$(CC) $(LDFLAGS) $^ $(AIR_LIBS) $(LDLIBS) -o $@

$(B)/tests/gpu/libfake-cuda.so: $(B)/tests/gpu/fake_cuda.o \
		$(B)/tests/gpu/fake_cublaslt.o
	$(CC) -shared $(LDFLAGS) $^ $(LDLIBS) -o $@
else
.PHONY: gpu-tests gpu-launch check-cuda-host
gpu-tests gpu-launch check-cuda-host:
	@echo "$@: no nvcc on this machine; not built"
endif
