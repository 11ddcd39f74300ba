# SPDX-License-Identifier: MIT
#
# The operators. A new one is found by its folder: ops/<op>/*.c goes into the
# library, but for
#	cases.c	into the conformance tests (OPS_CASES)
#	cuda.c	into the CUDA plug-in
# which ops/cuda.mk builds.

OPS_CASES := $(wildcard ops/*/cases.c)
OPS_SRC := $(filter-out ops/worker/% ops/cuda/% %/cuda.c %/cases.c, \
	     $(wildcard ops/*.c ops/*/*.c))

LIB_SRC += $(OPS_SRC)

# Kernels are plain loops that the compiler vectorises at -O3. Where speed is
# not the point, nor is this.
ifeq ($(VARIANT),release)
$(foreach s,$(OPS_SRC),$(eval CFLAGS_$(s) := -O3 -fno-trapping-math \
	-fno-math-errno))
endif

# Cases leave out what they do not need.
$(foreach s,$(OPS_CASES),$(eval CFLAGS_$(s) := \
	-Wno-missing-field-initializers))

-include ops/worker/build.mk ops/cuda.mk
