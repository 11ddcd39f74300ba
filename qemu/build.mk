# SPDX-License-Identifier: MIT
# Targets for the whole project: dependencies, tests, demo, installation.

KERNEL	?= 6.1
T	?= *

.PHONY: deps
deps:
	@qemu/deps.sh build test module qemu debug model lint

.PHONY: module
module:
	@qemu/module.sh $(KERNEL)

.PHONY: demo
demo:
	@qemu/demo.sh

.PHONY: check check-kernels check-deep lint
check: deps
	@tests/run.sh check $(foreach t,$(T),'$(t)')
check-kernels: deps
	@tests/run.sh kernels $(foreach t,$(T),'$(t)')
check-deep: deps
	@tests/run.sh deep $(foreach t,$(T),'$(t)')
lint:
	@qemu/deps.sh build module lint
	@tests/run.sh lint $(foreach t,$(T),'$(t)')

.PHONY: deb
deb:
	@qemu/deps.sh deb
	$(MAKE) -C kmod deb

# ------------------------------------------------------------ installation

# DESTDIR for packages, PREFIX for where it will live; MODULE=no leaves the
# kernel module out. What is installed is listed here once, for both ways.

PREFIX	?= /usr/local
DESTDIR	?=
MODULE	?= yes

I	:= $(DESTDIR)$(PREFIX)
UDEVDIR	?= $(DESTDIR)/etc/udev/rules.d
UNITDIR	?= $(DESTDIR)/etc/systemd/system
VERSION	= $(shell sed -nE 's/^.define AIR_VERSION_[A-Z]+ //p' \
	  include/airunner.h | paste -sd.)
HEADERS	:= $(patsubst include/%,%,$(sort $(wildcard include/airunner.h \
	   include/airunner/*.h include/airunner/ops/*.h)))
UDEV_RULES := $(wildcard kmod/*.rules kmod/*/*.rules)
UNITS	:= $(wildcard ops/worker/daemon/*.service)
# Executors that are loaded when they are there: libairunner-cuda.so and such.
PLUGINS	= $(wildcard $(B)/libairunner-*.so)

.PHONY: install uninstall
install: all
	install -D -m 755 $(B)/airunner $(I)/bin/airunner
	install -D -m 755 $(B)/airunnerd $(I)/sbin/airunnerd
	install -D -m 644 $(B)/libairunner.a $(I)/lib/libairunner.a
	install -D -m 755 $(B)/libairunner.so.$(LIB_SOVERSION) \
		$(I)/lib/libairunner.so.$(LIB_SOVERSION)
	ln -sf libairunner.so.$(LIB_SOVERSION) $(I)/lib/libairunner.so
	for f in $(HEADERS); do \
		install -D -m 644 include/$$f $(I)/include/$$f || exit; \
	done
	install -D -m 644 include/uapi/airunner.h $(I)/include/airunner/uapi.h
	install -d $(I)/lib/pkgconfig
	sed 's,@PREFIX@,$(PREFIX),; s,@LIBDIR@,$(PREFIX)/lib,; s,@VERSION@,$(VERSION),' \
		libairunner/airunner.pc.in >$(I)/lib/pkgconfig/airunner.pc
	for f in $(PLUGINS); do \
		install -D -m 755 $$f $(I)/lib/airunner/$${f##*/} || exit; \
	done
	for f in $(UDEV_RULES); do \
		install -D -m 644 $$f $(UDEVDIR)/$${f##*/} || exit; \
	done
	for f in $(UNITS); do \
		install -d $(UNITDIR) && \
		sed 's,@PREFIX@,$(PREFIX),g' $$f >$(UNITDIR)/$${f##*/} || \
		exit; \
	done
ifeq ($(MODULE),yes)
	$(MAKE) -C kmod install $(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR))
endif
ifeq ($(DESTDIR),)
	getent group airunner >/dev/null || groupadd --system airunner
	ldconfig
	! command -v udevadm >/dev/null || udevadm control --reload || true
endif

uninstall:
	rm -f $(I)/bin/airunner $(I)/sbin/airunnerd $(I)/lib/libairunner.a \
		$(I)/lib/libairunner.so $(I)/lib/libairunner.so.* \
		$(I)/lib/pkgconfig/airunner.pc $(HEADERS:%=$(I)/include/%) \
		$(I)/include/airunner/uapi.h $(I)/lib/airunner/libairunner-*.so \
		$(patsubst %,$(UDEVDIR)/%,$(notdir $(UDEV_RULES))) \
		$(patsubst %,$(UNITDIR)/%,$(notdir $(UNITS)))
	-rmdir $(I)/include/airunner/ops $(I)/include/airunner \
		$(I)/lib/airunner 2>/dev/null
ifeq ($(MODULE),yes)
	$(MAKE) -C kmod uninstall $(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR))
endif
