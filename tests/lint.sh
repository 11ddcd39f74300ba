#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What can be said of the sources without running them:
#
#	tests/lint.sh licences|words|shell|format|padding|sparse|checkpatch|
#		      coccinelle...

set -u
cd "$(dirname "$0")/.." || exit
failed=0

ok() { echo "ok $*"; }
bad() { echo "not ok $*"; failed=1; }

# Files that git knows or would take, so that a new one is not overlooked.
# The folder may belong to somebody else (a mounted checkout in CI).
sources() {
	git -c safe.directory="$PWD" ls-files -co --exclude-standard -- "$@" |
		sort -u | while read -r f; do [ ! -f "$f" ] || echo "$f"; done
}

licences() {
	local f want wrong=0
	while read -r f; do
		case $f in
		LICENSE*|*.md|*.json|*.csv|*.txt|*.svg|*.gitignore|.gitattributes|.clang-format|*/bad-dmesg|*.pc.in|*.inc)
			continue ;;
		kmod/*)		want='GPL-2.0(-only)?( OR MIT)?' ;;
		include/uapi/*)	want='GPL-2.0 WITH Linux-syscall-note' ;;
		*)		want='MIT' ;;
		esac
		[ -s "$f" ] || continue
		head -n 3 "$f" |
			grep -qE "SPDX-License-Identifier: $want( \*/)?\$" || {
			echo "$f: no line 'SPDX-License-Identifier: $want'"
			wrong=1
		}
	done < <(sources)
	[ $wrong = 0 ] && ok "licences" || bad "licences"
}

# Things that are said once the work is finished, or not at all.
words() {
	local marks='TO''DO|FIX''ME|X''XX'
	if sources | grep -v '^tests/lint.sh$' | xargs -d '\n' \
		grep -nE "\b($marks)\b" | grep -v XXXX; then
		bad "words: unfinished work is marked above"
	else
		ok "words"
	fi
	if sources '*.c' '*.h' '*.cu' '*.cuh' '*.sh' '*.py' '*.mk' |
		xargs -d '\n' grep -nE '[[:space:]]+$'; then
		bad "words: white space ends the lines above"
	else
		ok "words: no white space at the ends of lines"
	fi
}

shell() {
	local f wrong=0
	for f in $(sources '*.sh') .ci/run qemu/init qemu/load-module; do
		case $(head -n 1 "$f") in
		*bash*)	bash -n "$f" || wrong=1 ;;
		*)	sh -n "$f" || wrong=1 ;;
		esac
	done
	[ $wrong = 0 ] && ok "shell: syntax" || bad "shell: syntax"
	# SC2015: `a && b || c` with a b that cannot fail; SC1091, SC2034,
	# SC2154: what is shared with sourced files; SC2164: under set -e;
	# SC1007: `a= b=1`; SC2054: qemu's commas; SC3045: busybox has it.
	# shellcheck disable=SC2046
	if shellcheck -S warning -e SC2015,SC1091,SC2034,SC2154,SC2164,SC1007,SC2054,SC3045 \
		$(sources '*.sh') .ci/run qemu/init qemu/load-module; then
		ok "shell: shellcheck"
	else
		bad "shell: shellcheck"
	fi
}

# Kernel style as far as a machine can tell it without taking a hand-aligned
# table for a mistake: tabs, 80 columns (a string is not broken for it), and of
# checkpatch what holds outside the kernel as well.
format() {
	local n files
	files=$(sources '*.c' '*.h' '*.cu' '*.cuh')
	n=$(echo "$files" | xargs gawk '
		{
			line = $0
			width = 0
			for (i = 1; i <= length(line); i++)
				width += substr(line, i, 1) == "\t" ? \
					8 - width % 8 : 1
			if (width > 80 && line !~ /"|https?:|_IOC_/)
				print FILENAME ":" FNR ": " width " columns"
			if (line ~ /^\t* {8}/)
				print FILENAME ":" FNR ": spaces for a tab"
		}' | tee build/lint/format.txt | wc -l)
	if [ "$n" = 0 ]; then
		ok "format: tabs and 80 columns"
	else
		cat build/lint/format.txt
		bad "format: $n lines"
	fi
}

# No implicit padding in what crosses from one program into another.
padding() {
	local dir=build/lint holes
	mkdir -p $dir
	{
		echo '#include "uapi/airunner.h"'
		sed -nE 's/^struct (airunner_[a-z_]+) \{.*/struct \1 v_\1;/p' \
			include/uapi/airunner.h
	} >$dir/padding.c
	gcc -g -c -Iinclude $dir/padding.c -o $dir/padding.o || {
		bad "padding: does not compile"
		return
	}
	if ! pahole $dir/padding.o >$dir/padding.txt ||
	   ! grep -q 'struct airunner_build_channel' $dir/padding.txt; then
		bad "padding: pahole found no structs"
		return
	fi
	holes=$(grep -cE 'XXX|holes:|padding:|bit_padding' $dir/padding.txt)
	if [ "$holes" = 0 ]; then
		ok "padding: $(grep -c '^struct airunner_' $dir/padding.txt)" \
			"structs have none"
	else
		grep -E '^struct|XXX|padding:' $dir/padding.txt
		bad "padding: see above"
	fi
}

sparse() {
	local log=build/kmod/6.1/log
	# C=2 looks at every file, whether it is to be compiled or not.
	if ! qemu/module.sh 6.1 C=2 >/dev/null 2>&1; then
		bad "sparse: did not run"
	elif grep -E '^.*kmod/[^ ]*: (warning|error):' $log |
			grep -v 'include/linux/\|/arch/'; then
		bad "sparse"
	elif ! grep -q 'CHECK ' $log; then
		bad "sparse: nothing was checked"
	else
		ok "sparse"
	fi
}

checkpatch() {
	local src f n ignore
	src=$(qemu/kernel.sh source) || { bad "checkpatch: no source"; return; }
	for f in $(sources 'kmod/*.c' 'kmod/*.h' 'include/uapi/*.h'); do
		# What is only true of files in the kernel's own tree, and
		# strings, which are not broken for the sake of 100 columns.
		ignore=FILE_PATH_CHANGES,LINUX_VERSION_CODE,SPDX_LICENSE_TAG
		ignore+=,LONG_LINE_STRING,MACRO_ARG_REUSE
		# The UAPI header is C11, C++ and CUDA as well.
		case $f in include/*)
			ignore+=,COMPLEX_MACRO,CAMELCASE,LINE_SPACING
			ignore+=,LONG_LINE,PREFER_KERNEL_TYPES ;;
		esac
		# Tracepoints have a layout of their own.
		case $f in *trace.h)
			ignore+=,PARENTHESIS_ALIGNMENT,OPEN_ENDED_LINE ;;
		esac
		# It leaves a cache where it is run, and goes by paths.
		ln -sfn ../../kmod ../../include build/lint
		(cd build/lint && perl "$src/scripts/checkpatch.pl" --no-tree \
			--terse --quiet --no-summary --strict \
			--ignore $ignore --file "$f" 2>/dev/null)
	done >build/lint/checkpatch.log
	n=$(grep -cE 'ERROR|WARNING|CHECK' build/lint/checkpatch.log)
	if [ "$n" = 0 ]; then
		ok "checkpatch"
	else
		cat build/lint/checkpatch.log
		bad "checkpatch: $n lines"
	fi
}

coccinelle() {
	local src script n=0 wrong=0 out
	src=$(qemu/kernel.sh source) || { bad "coccinelle: no source"; return; }
	for script in "$src"/scripts/coccinelle/{api,free,iterators,locks,misc,null,tests}/*.cocci
	do
		n=$((n + 1))
		out=$(timeout 120 spatch --very-quiet --no-show-diff -D report \
			--no-includes --include-headers --dir kmod \
			--cocci-file "$script" 2>/dev/null)
		[ -z "$out" ] || {
			echo "$(basename "$script"): $out"
			wrong=$((wrong + 1))
		}
	done
	[ $n -gt 30 ] || bad "coccinelle: only $n scripts found"
	[ $wrong = 0 ] && ok "coccinelle: $n scripts" || bad "coccinelle"
}

[ "$(sources Makefile)" = Makefile ] || { bad "no git checkout"; exit 1; }
[ $# -gt 0 ] || { sed -n '4,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p build/lint
for part in "$@"; do
	case $part in
	licences|words|shell|format|padding|sparse|checkpatch|coccinelle)
		$part ;;
	*)	bad "no such check: $part" ;;
	esac
done
exit $failed
