#!/bin/bash
# SPDX-License-Identifier: MIT
# `make demo`: the whole path, once, from nothing, with a word on each step.

. "$(dirname "$0")/common.sh"

step() { printf '\n== %s\n\n' "$*"; }

step "Packages that are missing (apt)"
"$TOP/qemu/deps.sh" build module qemu
echo "all there"

step "Building the library, airunnerd, the command and the guest's programs"
make -s -C "$TOP" -j2 all guest-tests
echo "in build/$VARIANT"

step "A guest kernel (Debian's 6.1, fetched, not installed) and airunner.ko for it"
cat "$("$TOP/qemu/kernel.sh" 6.1)/release"
"$TOP/qemu/module.sh" 6.1

step "Booting it in QEMU; your own kernel is not touched"
rc=0
"$TOP/qemu/run.sh" 6.1 --timeout 170 --logs "$TOP/build/demo" -- \
	with-daemon.sh demo.sh || rc=$?
if [ $rc != 0 ]; then
	step "The demo FAILED (exit status $rc); logs are in build/demo"
	exit $rc
fi

step "All of it was right"
cat <<-END
	Next: README.md has a quick start in C; docs/dev-box.md says how to load
	the module on this machine; \`make check\` runs every test.
END
