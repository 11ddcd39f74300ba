#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Run the benchmarks:
#
#	tests/bench/run.sh cpu|gpu|numpy [OPTION-OF-THE-PROGRAM...]
#
# Prints a table, writes build/bench/cpu.json or gpu.json, and draws pictures
# beside it where python3-matplotlib is installed. numpy holds the CPU executor
# against NumPy (tests/bench/numpy_peer.py). --only SUBSTRING runs the
# rows whose name contains it, --quick takes a tenth of the time.

set -eu
cd "$(dirname "$0")/../.."
side=${1:-cpu}
[ $# -eq 0 ] || shift
out=build/bench
mkdir -p "$out"

BENCH_COMMIT=$(git rev-parse HEAD 2>/dev/null || echo unknown)
git diff --quiet HEAD -- libairunner ops include tests/bench 2>/dev/null ||
	BENCH_COMMIT="$BENCH_COMMIT with changes"
export BENCH_COMMIT OPENBLAS_NUM_THREADS=1

read -r load _ </proc/loadavg
awk -v busy="$load" 'BEGIN { exit !(busy > 0.5) }' &&
	echo "WARNING: the machine is busy (load $load): figures will be worse" \
	     "than they are, and not the same for everybody"

# The system's own is the one that a distribution's packages are for.
python=python3
need=$([ "$side" = numpy ] && echo numpy || echo matplotlib)
for p in python3 /usr/bin/python3; do
	"$p" -c "import $need" 2>/dev/null && python=$p && break
done
if [ "$side" = numpy ]; then
	exec timeout 900 "$python" tests/bench/numpy_peer.py \
		build/release/bench-numpy --out "$out/numpy.json" "$@"
fi

# gpu has an alarm of its own, earlier; nothing may run for ever
timeout 900 build/release/bench-"$side" --out "$out/$side.json" "$@"
if [ "$side" = gpu ]; then
	timeout 120 python3 tests/bench/gpu_torch.py "$out/gpu.json"
fi
if "$python" -c "import matplotlib" 2>/dev/null; then
	"$python" tests/bench/plot.py "$out/$side.json" "$out"
else
	echo "(no pictures: python3-matplotlib is not installed)"
fi
