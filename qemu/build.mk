# SPDX-License-Identifier: MIT
# Targets for the whole project: dependencies, tests, demo, installation.

KERNEL	?= 6.1
T	?= *

.PHONY: deps
deps:
	@qemu/deps.sh build test module qemu model lint

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

PREFIX	?= /usr/local
DESTDIR	?=
MODULE	?= yes
bindir	:= $(DESTDIR)$(PREFIX)/bin
sbindir	:= $(DESTDIR)$(PREFIX)/sbin
libdir	:= $(DESTDIR)$(PREFIX)/lib
incdir	:= $(DESTDIR)$(PREFIX)/include
udevdir	:= $(DESTDIR)/etc/udev/rules.d
unitdir	:= $(DESTDIR)/etc/systemd/system

HEADERS	:= $(shell cd include && find airunner.h airunner -name '*.h')

UDEV_RULES := $(wildcard kmod/*.rules)
UNITS	:= $(wildcard ops/worker/daemon/*.service)
LIBS	= $(wildcard $(B)/libairunner.a $(B)/libairunner.so*)
PLUGINS	= $(wildcard $(B)/airunner-*.so)
PYTHON_SRC := $(wildcard libairunner/python/airunner/*.py)
