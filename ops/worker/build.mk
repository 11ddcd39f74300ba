# SPDX-License-Identifier: MIT
# The worker's core is part of the library ("inproc:"); what only the daemon
# has is in daemon/. ops/build.mk includes this.

LIB_SRC += $(wildcard ops/worker/*.c)
AIRUNNERD_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard ops/worker/daemon/*.c))

all: $(B)/airunnerd

$(B)/airunnerd: $(AIRUNNERD_OBJ) $(B)/libairunner.a
	$(CC) $(LDFLAGS) $^ $(AIR_LIBS) $(LDLIBS) -o $@

# Tests of the daemon's parts link them too: all but its main().
$(B)/tests/unit/test_daemon_unix $(B)/tests/unit/test_daemon_sigbus: \
	$(filter-out %/airunnerd.o,$(AIRUNNERD_OBJ))
