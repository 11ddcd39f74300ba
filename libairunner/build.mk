# SPDX-License-Identifier: MIT
#
# The client library, static and shared, and the airunner command. ops/build.mk
# adds the operators and the worker's core to LIB_SRC: "inproc:" runs them.

LIB_SRC += $(wildcard libairunner/*.c)
LIB_OBJ = $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard libairunner/cli/*.c))
EXAMPLES := $(patsubst %.c,$(B)/%,$(wildcard docs/examples/*.c))

LIB_SOVERSION := 0

all: $(B)/libairunner.a $(B)/libairunner.so $(B)/airunner $(EXAMPLES)

# What the lists hold is known only when all build.mk have been read.
.SECONDEXPANSION:

# "q": members of different folders may share a name.
$(B)/libairunner.a: $$(LIB_OBJ)
	@rm -f $@
	$(AR) qcs $@ $^

$(B)/libairunner.so.$(LIB_SOVERSION): $$(LIB_OBJ) libairunner/airunner.map
	$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,-z,defs \
		-Wl,--version-script=libairunner/airunner.map \
		$(filter %.o,$^) $(AIR_LIBS) $(LDLIBS) -o $@

$(B)/libairunner.so: $(B)/libairunner.so.$(LIB_SOVERSION)
	ln -sf $(<F) $@

$(B)/airunner: $(CLI_OBJ) $(B)/libairunner.so
	$(CC) $(LDFLAGS) $(CLI_OBJ) -L$(B) -lairunner \
		-Wl,-rpath,'$$ORIGIN' $(LDLIBS) -o $@

$(EXAMPLES): $(B)/%: $(B)/%.o $(B)/libairunner.so
	$(CC) $(LDFLAGS) $< -L$(B) -lairunner \
		-Wl,-rpath,'$$ORIGIN/../..' $(LDLIBS) -o $@

# The daemon, all but its main(), to be killed.
$(B)/tests/unit/test_transport: $$(filter-out %/airunnerd.o,$$(AIRUNNERD_OBJ))
