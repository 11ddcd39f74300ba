# SPDX-License-Identifier: MIT
#
# The CUDA plug-in: `make cuda` builds $(B)/libairunner-cuda.so where nvcc is
# found, and says so where it is not. Nothing else needs nvcc or CUDA.
#
#	make cuda			all architectures nvcc offers of CUDA_WANT
#	make cuda CUDA_ARCHS=90		one, for quick builds
#
# An operator's device code is found by its folder, as the rest of it is:
# ops/<op>/kernel.cu becomes a module of its own, ops/<op>/kernel.cuh goes into
# the resident kernel as well.

NVCC	?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_WANT := 80 86 89 90 100 120

.PHONY: cuda
ifeq ($(NVCC),)
cuda:
	@echo "cuda: no nvcc on this machine; the CUDA plug-in is not built"
else

CUDA_HOME ?= $(abspath $(dir $(NVCC))..)
CUDA_ARCHS ?= $(filter $(CUDA_WANT), \
	$(patsubst sm_%,%,$(shell $(NVCC) --list-gpu-code)))
# Machine code for each, and PTX of the newest for what comes after.
CUDA_PTX := $(lastword $(CUDA_ARCHS))
NVCCFLAGS := -std=c++17 -O3 -I. -Iinclude --compress-mode=size

CUDA_DIR := $(B)/cuda
CUDA_KERNELS := $(patsubst ops/%/kernel.cu,%,$(wildcard ops/*/kernel.cu))
CUDA_SRC := $(wildcard ops/*/cuda.c ops/cuda/*.c ops/worker/cuda/*.c \
	      ops/worker/resident/*.c) ops/tensor.c
CUDA_OBJ := $(patsubst %.c,$(CUDA_DIR)/%.o,$(CUDA_SRC)) \
	    $(patsubst %,$(CUDA_DIR)/fatbin/%.o,$(CUDA_KERNELS) \
	      $(if $(wildcard ops/worker/resident/resident.cu),resident))

cuda: $(B)/libairunner-cuda.so
	@echo "cuda: $< has machine code for $(addprefix sm_,$(CUDA_ARCHS))" \
	      "and PTX for compute_$(CUDA_PTX) and later"

# Built again when the architectures change.
$(CUDA_DIR)/archs: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_ARCHS)' | cmp -s - $@ || echo '$(CUDA_ARCHS)' >$@
.PHONY: FORCE
FORCE:

define CUDA_FATBIN
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -fatbin \
		$(foreach a,$(CUDA_ARCHS),-gencode=arch=compute_$(a),code=sm_$(a)) \
		-gencode=arch=compute_$(CUDA_PTX),code=compute_$(CUDA_PTX) \
		-MMD -MP -MF $(@:.fatbin=.d) -o $@ $<
endef

$(CUDA_DIR)/fatbin/%.fatbin: ops/%/kernel.cu $(CUDA_DIR)/archs
	$(CUDA_FATBIN)

# The resident kernel calls every operator's body: each is compiled by itself,
# the list of them is the list in airunner/ops.h (all of AIR_OPS have a
# kernel.cuh). Linked code cannot be PTX: GPUs that are not in CUDA_ARCHS have
# cuda-launch only. The registers it leaves are what others' kernels find beside
# it on a multiprocessor.
CUDA_BODIES := $(patsubst ops/%/kernel.cuh,%,$(wildcard ops/*/kernel.cuh))
CUDA_RES_FLAGS := $(NVCCFLAGS) -maxrregcount=128 \
	$(foreach a,$(CUDA_ARCHS),-gencode=arch=compute_$(a),code=sm_$(a))

$(CUDA_DIR)/body/%.o: ops/worker/resident/body.cu ops/%/kernel.cuh \
		$(CUDA_DIR)/archs
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_RES_FLAGS) -dc -DAIR_NAME=$* \
		-DAIR_HEADER='"ops/$*/kernel.cuh"' -MMD -MP -MF $(@:.o=.d) \
		-o $@ $<

$(CUDA_DIR)/body/resident.o: ops/worker/resident/resident.cu \
		$(CUDA_DIR)/archs
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_RES_FLAGS) -dc -MMD -MP -MF $(@:.o=.d) -o $@ $<

$(CUDA_DIR)/fatbin/resident.fatbin: $(CUDA_DIR)/body/resident.o \
		$(CUDA_BODIES:%=$(CUDA_DIR)/body/%.o)
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_RES_FLAGS) -dlink -fatbin -o $@ $(filter %.o,$^)

.SECONDARY: $(patsubst %,$(CUDA_DIR)/fatbin/%.fatbin,$(CUDA_KERNELS) resident)

# The bytes, aligned as the driver wants them.
$(CUDA_DIR)/fatbin/%.o: $(CUDA_DIR)/fatbin/%.fatbin
	@printf '%s\n' '.section .rodata' '.balign 64' \
		'.global air_fatbin_$*' '.hidden air_fatbin_$*' \
		'air_fatbin_$*:' '.incbin "$<"' '.byte 0' \
		'.section .note.GNU-stack,"",%progbits' | \
		$(CC) -c -x assembler - -o $@

$(CUDA_DIR)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) -isystem $(CUDA_HOME)/include $(CFLAGS) -c $< -o $@

$(B)/libairunner-cuda.so: $(CUDA_OBJ)
	$(CC) -shared $(LDFLAGS) -Wl,-z,defs -Wl,-soname,$(@F) -o $@ $^ $(LDLIBS)

-include $(wildcard $(CUDA_DIR)/fatbin/*.d $(CUDA_DIR)/body/*.d)
endif

-include tests/gpu/build.mk
