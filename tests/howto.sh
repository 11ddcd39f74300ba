#!/bin/bash
# SPDX-License-Identifier: MIT
#
# docs/adding-an-operator.md, followed literally: its files are taken out of
# the page, its line goes to the end of the list, and what it says to run is
# run, in a copy of the tree. A page that has gone stale fails here.
set -eu
cd "$(dirname "$0")/.."
page=docs/adding-an-operator.md
copy=$(mktemp -d "${TMPDIR:-/tmp}/airunner-howto.XXXXXX")
trap 'rm -rf "$copy"' EXIT
git ls-files -zco --exclude-standard | xargs -0 cp --parents -t "$copy"
cd "$copy"

# A path in backquotes alone on a line names the block that follows.
awk '
	/^`[^`]*`$/ { path = substr($0, 2, length($0) - 2); next }
	/^```c$/ && path { writing = path; path = ""
			   dir = writing; sub("/[^/]*$", "", dir)
			   system("mkdir -p " dir); printf "" >writing; next }
	/^```$/ { if (writing) close(writing); writing = ""; next }
	writing { print >writing }
' "$page"

# The new last line of AIR_OPS, from step 2.
line=$(awk '/^## 2/ { on = 1 } on && /^\tX\(/ { print; exit }' "$page")
awk -v line="$line" '
	/^#define AIR_OPS/ { list = 1 }
	list && !/\\$/ { print $0 " \\"; print line; list = 0; next }
	{ print }
' include/airunner/ops.h >ops.h.new
mv ops.h.new include/airunner/ops.h
grep -q "X(leaky_relu)" include/airunner/ops.h

make -s -j2 build/release/tests/unit/test_conformance \
	build/release/tests/unit/test_conformance_ring
for t in test_conformance test_conformance_ring; do
	out=$(build/release/tests/unit/$t leaky_relu | tail -n 1)
	case $out in
	"0 passed"*) echo "not ok $t leaky_relu: $out" ;;
	*" 0 failed"*) echo "ok $t leaky_relu: $out" ;;
	*) echo "not ok $t leaky_relu: $out" ;;
	esac
done
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -n "$nvcc" ]; then
	mkdir -p build
	"$nvcc" -std=c++17 -I. -Iinclude -arch=sm_90 -cubin \
		-o build/leaky_relu.cubin ops/leaky_relu/kernel.cu
	echo "ok leaky_relu compiles for CUDA"
else
	echo "skip leaky_relu compiles for CUDA: no nvcc on this machine"
fi
