# SPDX-License-Identifier: MIT
# What tests/gpu/run.sh runs on a machine with a GPU, and the driver that runs
# nothing, with which the host side is tested on any machine that has cuda.h.

ifneq ($(NVCC),)
# Operators' CPU side, without what needs the library (and with it liburing).
GPU_OPS := $(patsubst %.c,$(B)/%.o,$(filter-out %/api.c,$(OPS_SRC)))

GPU_TESTS := $(addprefix $(B)/tests/gpu/,selfcheck measure resident)

.PHONY: gpu-tests
gpu-tests: $(GPU_TESTS) $(B)/tests/gpu/libfake-cuda.so

$(B)/tests/gpu/%.o: CPPFLAGS += -isystem $(CUDA_HOME)/include

$(GPU_TESTS): $(B)/tests/gpu/%: $(B)/tests/gpu/%.o $(B)/tests/gpu/drive.o \
		$(GPU_OPS)
	$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(B)/tests/gpu/measure: $(B)/tests/gpu/peer_lt.o

# The resident kernel on the CPU. Its fibres leave functions by longjmp, which
# fortified libraries take for an attack.
$(B)/tests/gpu/emulate_resident: tests/gpu/emulate_resident.cpp \
		tests/gpu/emulate.h tests/gpu/emulate_bodies.h \
		$(wildcard ops/worker/resident/*)
	@mkdir -p $(@D)
	$(CXX) -std=c++17 -O1 -g -w -fno-strict-aliasing -U_FORTIFY_SOURCE \
		$(CPPFLAGS) $< -o $@ -lpthread

$(B)/tests/gpu/host_test: $(B)/tests/gpu/host_test.o
	$(CC) $(LDFLAGS) $^ -lcmocka $(LDLIBS) -o $@

# What needs nvcc's headers and no GPU: the kernel's logic, the host's side.
.PHONY: check-cuda-host
check-cuda-host: $(B)/tests/gpu/emulate_resident $(B)/tests/gpu/host_test \
		$(B)/tests/gpu/libfake-cuda.so $(B)/libairunner-cuda.so
	timeout 120 $(B)/tests/gpu/emulate_resident
	AIRUNNER_LIBCUDA=$(abspath $(B)/tests/gpu/libfake-cuda.so) \
		timeout 120 $(B)/tests/gpu/host_test $(B)/libairunner-cuda.so

$(B)/tests/gpu/libfake-cuda.so: $(B)/tests/gpu/fake_cuda.o
	$(CC) -shared $(LDFLAGS) $^ $(LDLIBS) -o $@
endif
