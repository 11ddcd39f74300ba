# SPDX-License-Identifier: MIT
# Test programs. A new file in one of these folders is built and run by
# `make check` without being named anywhere:
#
#	tests/unit/test_*.c	a CMocka program each, linked statically
#	tests/stress/*.c	a program each, linked statically
#	tests/fuzz/fuzz_*.c	a fuzz target each, with fuzz_main.c
#	tests/kernel/*.c	a guest program each; static, without the
#				library, unless it includes airunner.h

UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT_COMMON := $(filter-out $(UNIT_SRC),$(wildcard tests/unit/*.c)) \
	       $(OPS_CASES)
UNIT_BIN := $(UNIT_SRC:%.c=$(B)/%)
STRESS_SRC := $(wildcard tests/stress/*.c)
STRESS_BIN := $(STRESS_SRC:%.c=$(B)/%)
FUZZ_MAIN := tests/fuzz/fuzz_main.c
FUZZ_SRC := $(filter-out $(FUZZ_MAIN),$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)
GUEST_SRC := $(wildcard tests/kernel/*.c)
GUEST_LIB_SRC := $(if $(GUEST_SRC),$(shell grep -l '[<"]airunner\.h[>"]' \
		   $(GUEST_SRC)))
GUEST_LIB_BIN := $(GUEST_LIB_SRC:%.c=$(B)/%)
GUEST_RAW_BIN := $(filter-out $(GUEST_LIB_BIN),$(GUEST_SRC:%.c=$(B)/%))

TEST_LIBS = $(B)/libairunner.a

# How the library is linked statically: libairunner/build.mk may say more.
AIR_LIBS ?=

.PHONY: unit-tests stress-tests fuzz-tests guest-tests
unit-tests: $(UNIT_BIN)
stress-tests: $(STRESS_BIN) $(B)/airunnerd
fuzz-tests: $(FUZZ_BIN)
guest-tests: $(GUEST_RAW_BIN) $(GUEST_LIB_BIN)

$(UNIT_BIN): $(B)/%: $(B)/%.o $(UNIT_COMMON:%.c=$(B)/%.o) $(TEST_LIBS)
	$(CC) $(LDFLAGS) $^ -lcmocka $(AIR_LIBS) $(LDLIBS) -o $@

$(STRESS_BIN): $(B)/%: $(B)/%.o $(TEST_LIBS)
	$(CC) $(LDFLAGS) $^ $(AIR_LIBS) $(LDLIBS) -o $@

$(FUZZ_BIN): $(B)/%: $(B)/%.o $(FUZZ_MAIN:%.c=$(B)/%.o) $(TEST_LIBS)
	$(CC) $(LDFLAGS) $^ $(AIR_LIBS) $(LDLIBS) -o $@

# Sanitizers do not link statically; their guest programs are dynamic.
$(GUEST_RAW_BIN): $(B)/%: $(B)/%.o
	$(CC) $(LDFLAGS) $(if $(filter release,$(VARIANT)),-static) $^ \
		-luring $(LDLIBS) -o $@

$(GUEST_LIB_BIN): $(B)/%: $(B)/%.o $(B)/libairunner.so
	$(CC) $(LDFLAGS) $< -L$(B) -lairunner $(LDLIBS) -o $@

# Benchmarks look for their peers, which takes time: only when they are wanted.
ifneq ($(filter bench%,$(MAKECMDGOALS)),)
include $(wildcard tests/bench/build.mk)
endif
