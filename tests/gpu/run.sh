#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Everything a GPU machine is needed for, in one call: builds, checks,
# measures. Output goes to the terminal and to $OUT (default build/gpu).
#
#	tests/gpu/run.sh [STEP...]	build check launch triton conformance
#					measure torch sanitize resident
#					handover sanitize-resident stress beside
#					policy
#
# SUBMISSIONS: of stress, default a billion. SLICES: processes that sanitize
# runs side by side. SETTINGS: of beside (see beside.c), default all.
# SECTIONS: what to measure (see measure.c). torch adds PyTorch's times to what
# was measured before. launch and conformance go through the ring: they need
# the library, and with it liburing and CMocka; BUILT=1 says that they are there,
# built on another machine. triton needs Triton, or what it
# made elsewhere in $TRITON (tests/gpu/triton_aot.py).
#
# Every step has a time-out; one that fails does not keep the next from running.
set -u
cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-build/gpu}
ARCHS=${CUDA_ARCHS:-90}
B=build/release
PLUGIN=$B/libairunner-cuda.so
STEPS=${*:-build check measure torch}
mkdir -p "$OUT"
failed='' skipped=''

say() { printf '\n== %s (%s)\n' "$*" "$(date +%T)"; }

# step NAME SECONDS COMMAND...
step() {
	local name=$1 limit=$2
	shift 2
	say "$name"
	timeout -k 5 "$limit" "$@" >"$OUT/$name.log" 2>&1
	local rc=$?
	tail -n "${LINES_SHOWN:-25}" "$OUT/$name.log"
	[ $rc -eq 0 ] && return
	if [ $rc -eq 77 ]; then
		skipped="$skipped $name"
		return
	fi
	failed="$failed $name($rc)"
}

for s in $STEPS; do
	case $s in
	build)
		step build 420 make -j"$(nproc)" cuda gpu-tests \
			CUDA_ARCHS="$ARCHS"
		;;
	check)
		step check 200 "$B/tests/gpu/selfcheck" "$PLUGIN" cuda-launch
		;;
	launch)
		[ -n "${BUILT:-}" ] ||
			step launch-build 200 make -s -j"$(nproc)" gpu-launch \
				CUDA_ARCHS="$ARCHS"
		AIRUNNER_PLUGIN_DIR=$B step launch 190 \
			"$B/tests/gpu/launch" "$B/tests/gpu"
		AIRUNNER_PLUGIN_DIR=$B step launch-daemon 190 \
			tests/gpu/served.sh "$B/airunnerd" \
			"$B/tests/gpu/launch" "$B/tests/gpu"
		AIRUNNER_PLUGIN_DIR=$B step launch-example 60 \
			"$B/docs/examples/launch" \
			"$B/docs/examples/saxpy.cubin"
		;;
	triton)
		if [ -z "${TRITON:-}" ]; then
			TRITON=$B/tests/gpu/triton
			step triton-compile 60 python3 \
				tests/gpu/triton_aot.py compile "$TRITON" \
				"${ARCHS%% *}"
		fi
		AIRUNNER_PLUGIN_DIR=$B step triton 60 python3 \
			tests/gpu/triton_aot.py run "$TRITON"
		;;
	conformance)
		[ -n "${BUILT:-}" ] ||
			step conformance-build 200 make -s -j"$(nproc)" \
				"$B/tests/unit/test_conformance_ring"
		for e in launch resident; do
			for m in device host; do
				AIRUNNER_PLUGIN_DIR=$B \
					step "conformance-$e-$m" 120 \
					"$B/tests/unit/test_conformance_ring" \
					--executor $e --memory $m
			done
		done
		;;
	resident)
		step resident-check 120 "$B/tests/gpu/selfcheck" "$PLUGIN" \
			cuda-resident
		LINES_SHOWN=60 step resident-measure 100 \
			"$B/tests/gpu/resident" "$PLUGIN" "$OUT/resident.json"
		;;
	handover)
		for e in launch resident; do
			AIRUNNER_PLUGIN_DIR=$B step "handover-$e" 240 \
				"$B/tests/gpu/handover" cuda-$e
		done
		;;
	measure)
		# shellcheck disable=SC2086 # a list of sections
		LINES_SHOWN=400 step measure 150 "$B/tests/gpu/measure" \
			"$PLUGIN" "$OUT/kernels.json" ${SECTIONS:-}
		;;
	torch)
		LINES_SHOWN=400 step torch 150 python3 \
			tests/gpu/torch_peer.py "$OUT/kernels.json"
		;;
	sanitize)
		for tool in memcheck racecheck initcheck; do
			step "sanitize-$tool" 150 tests/gpu/sanitize.sh \
				$tool cuda-launch \
				"${SLICES:-$(($(nproc) * 7 / 8))}" 100
		done
		;;
	sanitize-resident)
		# of its shared memory racecheck knows not that flags order it
		step "sanitize-resident-memcheck" 150 tests/gpu/sanitize.sh \
			memcheck cuda-resident 1 100
		;;
	stress)
		step stress 190 "$B/tests/gpu/resident" "$PLUGIN" \
			--stress "${SUBMISSIONS:-1000000000}" 180
		;;
	beside)
		# shellcheck disable=SC2086 # a list of settings
		LINES_SHOWN=400 step beside 190 "$B/tests/gpu/beside" \
			"$PLUGIN" "$OUT/beside.json" ${SETTINGS:-}
		;;
	policy)
		AIRUNNER_PLUGIN_DIR=$B LINES_SHOWN=60 step policy 60 \
			"$B/tests/gpu/policy" "$OUT/policy.json"
		;;
	*)
		echo "no step $s"
		exit 2
		;;
	esac
done

say "summary"
grep -h '^\(selfcheck\|sanitize\|ok stress\|beside:\)' "$OUT"/*.log 2>/dev/null
[ -z "$skipped" ] || echo "SKIPPED, see why above:$skipped"
if [ -n "$failed" ]; then
	echo "FAILED:$failed"
	exit 1
fi
echo "no step failed"
