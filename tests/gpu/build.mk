# SPDX-License-Identifier: MIT
# What tests/gpu/run.sh runs on a machine with a GPU, and the driver that runs
# nothing, with which the host side is tested on any machine that has cuda.h.

ifneq ($(NVCC),)
# Operators' CPU side, without what needs the library (and with it liburing).
GPU_OPS := $(patsubst %.c,$(B)/%.o,$(filter-out %/api.c,$(OPS_SRC)))

GPU_TESTS := $(addprefix $(B)/tests/gpu/,selfcheck measure)

.PHONY: gpu-tests
gpu-tests: $(GPU_TESTS) $(B)/tests/gpu/libfake-cuda.so

$(B)/tests/gpu/%.o: CPPFLAGS += -isystem $(CUDA_HOME)/include

$(GPU_TESTS): $(B)/tests/gpu/%: $(B)/tests/gpu/%.o $(B)/tests/gpu/drive.o \
		$(GPU_OPS)
	$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(B)/tests/gpu/libfake-cuda.so: $(B)/tests/gpu/fake_cuda.o
	$(CC) -shared $(LDFLAGS) $^ $(LDLIBS) -o $@
endif
