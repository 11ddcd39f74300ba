#!/bin/sh
# SPDX-License-Identifier: MIT
# What `make demo` runs in the guest, with airunnerd serving: see qemu/demo.sh.

step() { printf '\n== %s\n\n' "$*"; }

step "The module is loaded: this is the device, and what it says of itself"
ls -l /dev/airunner
airunner info || exit
echo
dmesg | grep 'airunner' | tail -n 5

step "k3_test: a channel's memory lives as long as anybody needs it"
echo "A client shares memory with a worker through the kernel. The client drops
its handle, closes the device, unmaps, is killed: the worker still reads what
was written. Once both have let go, every page is given back.
"
k3_test || exit

step "two_clients: operators through the ring, two processes, one worker"
echo "Each submits operators by writing 64-byte slots into its own ring, with
no system call on the way; airunnerd takes them in turns that the module
decides, and runs them on the CPU. Every result is compared with one computed
in double precision.
"
two_clients || exit

step "airunner selftest, as an ordinary user of the group airunner"
su alice -c "PATH=$PATH airunner -d /dev/airunner selftest" || exit

step "What the kernel has logged meanwhile"
dmesg | grep 'airunner' | tail -n 15
