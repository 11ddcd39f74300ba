# SPDX-License-Identifier: MIT
#
# airunner: library, worker, operators, tests. `make help` lists the targets.
#
# Each folder's build.mk names what it adds; objects land under $(B), one
# folder a variant, so that plain and sanitizer builds live side by side.

VARIANT	?= release
B	:= build/$(VARIANT)

CC	?= gcc
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
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
