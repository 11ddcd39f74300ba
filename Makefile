# SPDX-License-Identifier: MIT
#
# airunner: library, worker, operators, tests. `make help` lists the targets.
#
# Each folder's build.mk names what it adds; objects land under $(B), one
# folder a variant, so that plain and sanitizer builds live side by side.

VARIANT	?= release
B	:= build/$(VARIANT)

ifeq ($(origin CC),default)
CC	:= gcc
endif
AR	?= ar
CSTD	:= -std=gnu11
WARN	:= -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	   -Wpointer-arith -Wundef -Wno-unused-parameter
OPT_release := -O2 -g
OPT_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
	    -fno-omit-frame-pointer
OPT_tsan := -O1 -g -fsanitize=thread -DAIR_TSAN
CPPFLAGS += -Iinclude -I. -D_GNU_SOURCE
CFLAGS	+= $(CSTD) $(OPT_$(VARIANT)) $(WARN) -fPIC -fvisibility=hidden \
	   -ffp-contract=off -MMD -MP
LDFLAGS	+= $(filter -fsanitize=%,$(OPT_$(VARIANT)))
LDLIBS	+= -lpthread -lm -ldl

.PHONY: all
all:

include $(wildcard libairunner/build.mk ops/build.mk tests/build.mk qemu/build.mk)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(<)) -c $< -o $@

.PHONY: clean
clean:
	rm -rf $(filter-out build/guest,$(wildcard build/*))

.PHONY: distclean
distclean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)

define HELP
airunner

  make              library, worker, command (VARIANT=release|asan|tsan)
  make deps         install what building, testing and guests need (apt)

  make demo         the whole path in a guest: module, worker, k3_test, operators
  make check        the tests; ends with "N passed, N failed"
  make check T='unit* kernel*'  only the suites of tests/suites.list that match
  make check-kernels  the guest tests on 6.1, 6.12 and the debug kernel
  make check-deep   the long ones: fuzzing, kill loops
  make cuda         the plug-in with the CUDA executors (needs nvcc)
  make bench        measurements: the ring against what else could be used
  make bench-numpy  the CPU executor's operators against NumPy's
  make bench-gpu    make bench on a machine with an NVIDIA GPU
  make lint         format, sparse, checkpatch, coccinelle, padding, licences

  make module       build/kmod/KERNEL/airunner.ko, KERNEL=6.1|6.12|debug
  make -C kmod      airunner.ko for this machine (KDIR= for another)
  make install      DESTDIR=, PREFIX=/usr/local; MODULE=no leaves the module out
  make uninstall    the same arguments
  make deb          the DKMS package of the module

  make clean        all that was built but guest kernels; distclean: those too

qemu/run.sh runs any command in a guest; its head says how.
endef
export HELP

.PHONY: help
help:
	@echo "$$HELP"
