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

# Changes when the architectures do.
$(CUDA_DIR)/archs: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_ARCHS)' | cmp -s - $@ || echo '$(CUDA_ARCHS)' >$@
.PHONY: FORCE
FORCE:

# Each file is compiled for one architecture at a time: many short jobs keep all
# processors busy to the end, and one more architecture is only its own.
#
# The resident kernel calls every operator's body: each is compiled by itself,
# the list of them is the list in airunner/ops.h (all of AIR_OPS have a
# kernel.cuh). Linked code cannot be PTX: GPUs that are not in CUDA_ARCHS have
# cuda-launch only. The registers it leaves are what others' kernels find beside
# it on a multiprocessor.
CUDA_BODIES := $(patsubst ops/%/kernel.cuh,%,$(wildcard ops/*/kernel.cuh))
CUDA_RES_FLAGS := $(NVCCFLAGS) -maxrregcount=128
CUDA_DEPS = -MMD -MP -MF $(basename $@).d

$(CUDA_DIR)/compute_$(CUDA_PTX)/%.ptx: ops/%/kernel.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVCCFLAGS) -arch=compute_$(CUDA_PTX) -ptx $(CUDA_DEPS) -o $@ $<

$(CUDA_DIR)/sm_$(CUDA_PTX)/%.cubin: $(CUDA_DIR)/compute_$(CUDA_PTX)/%.ptx
	@mkdir -p $(@D)
	$(NVCC) -arch=sm_$(CUDA_PTX) -cubin -o $@ $<

define CUDA_FROM_SOURCE
$$(CUDA_DIR)/sm_$(1)/%.cubin: ops/%/kernel.cu
	@mkdir -p $$(@D)
	$$(NVCC) $$(NVCCFLAGS) -arch=sm_$(1) -cubin $$(CUDA_DEPS) -o $$@ $$<
endef
$(foreach a,$(filter-out $(CUDA_PTX),$(CUDA_ARCHS)),\
	$(eval $(call CUDA_FROM_SOURCE,$(a))))

define CUDA_FOR_ARCH
$$(CUDA_DIR)/sm_$(1)/body/%.o: ops/worker/resident/body.cu ops/%/kernel.cuh
	@mkdir -p $$(@D)
	$$(NVCC) $$(CUDA_RES_FLAGS) -arch=sm_$(1) -dc -DAIR_NAME=$$* \
		-DAIR_HEADER='"ops/$$*/kernel.cuh"' $$(CUDA_DEPS) -o $$@ $$<

$$(CUDA_DIR)/sm_$(1)/body/resident.o: ops/worker/resident/resident.cu
	@mkdir -p $$(@D)
	$$(NVCC) $$(CUDA_RES_FLAGS) -arch=sm_$(1) -dc $$(CUDA_DEPS) -o $$@ $$<

$$(CUDA_DIR)/sm_$(1)/resident.cubin: $$(CUDA_DIR)/sm_$(1)/body/resident.o \
		$$(CUDA_BODIES:%=$$(CUDA_DIR)/sm_$(1)/body/%.o)
	$$(NVCC) $$(CUDA_RES_FLAGS) -arch=sm_$(1) -dlink -cubin -o $$@ $$^
endef
$(foreach a,$(CUDA_ARCHS),$(eval $(call CUDA_FOR_ARCH,$(a))))

# A module as it is loaded: the driver picks what is for its GPU.
FATBINARY := $(firstword $(wildcard $(CUDA_HOME)/bin/fatbinary) fatbinary)
CUDA_PTX_IMAGE = --image3=kind=ptx,sm=$(CUDA_PTX),file=$(1)

define CUDA_FATBIN
$(CUDA_DIR)/fatbin/$(1).fatbin: $(CUDA_DIR)/archs $(2) \
		$(foreach a,$(CUDA_ARCHS),$(CUDA_DIR)/sm_$(a)/$(1).cubin)
	@mkdir -p $$(@D)
	$$(FATBINARY) -64 --compress-mode=size --create=$$@ \
		$(foreach a,$(CUDA_ARCHS),--image3=kind=elf,sm=$(a),file=$(CUDA_DIR)/sm_$(a)/$(1).cubin) \
		$(foreach p,$(2),$(call CUDA_PTX_IMAGE,$(p)))
endef
$(foreach k,$(CUDA_KERNELS),$(eval $(call CUDA_FATBIN,$(k),\
	$(CUDA_DIR)/compute_$(CUDA_PTX)/$(k).ptx)))
$(eval $(call CUDA_FATBIN,resident))

.SECONDARY: $(foreach k,$(CUDA_KERNELS),$(CUDA_DIR)/compute_$(CUDA_PTX)/$(k).ptx)

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

# Plans are for what the code was compiled for.
$(CUDA_DIR)/ops/worker/cuda/context.o: CPPFLAGS += -DAIR_CUDA_NEWEST=$(CUDA_PTX)
$(CUDA_DIR)/ops/worker/cuda/context.o: $(CUDA_DIR)/archs

$(B)/libairunner-cuda.so: $(CUDA_OBJ)
	$(CC) -shared $(LDFLAGS) -Wl,-z,defs -Wl,-soname,$(@F) -o $@ $^ $(LDLIBS)

-include $(wildcard $(CUDA_DIR)/sm_*/*.d $(CUDA_DIR)/sm_*/body/*.d $(CUDA_DIR)/compute_*/*.d)
endif

-include tests/gpu/build.mk
