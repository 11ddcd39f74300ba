# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by the scripts of this folder: where things are, and how to say so.

set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Everything that is fetched or built for guests. Point AIR_GUEST_CACHE
# elsewhere to share it between clones.
CACHE=$(realpath -m "${AIR_GUEST_CACHE:-$TOP/build/guest}")
VARIANT=${VARIANT:-release}
B=$TOP/build/$VARIANT
KERNELS="6.1 6.12 debug"

say() { echo "${0##*/}: $*" >&2; }
die() { say "$*"; exit 1; }

# run_as_root COMMAND...: as root already, or through sudo.
run_as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -n "$@" 2>/dev/null || sudo "$@"
	else
		die "'$*' needs root, and there is no sudo"
	fi
}

# with_lock NAME COMMAND...: one at a time per NAME; several terminals (and
# `make -j`) may want the same kernel at once.
with_lock() {
	local name=$1
	shift
	mkdir -p "$CACHE/lock"
	(
		flock 9
		"$@" 9>&-
	) 9>"$CACHE/lock/$name"
}
