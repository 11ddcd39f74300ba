#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Every public header compiles alone, without a warning, as C11, as C++17 and
# with the strictest of what its readers' projects may switch on.

set -u
cd "$(dirname "$0")/.." || exit
failed=0
try() {
	local what=$1 header=$2
	shift 2
	if echo "#include \"$header\"" | "$@" -Iinclude -fsyntax-only - ; then
		echo "ok $header as $what"
	else
		echo "not ok $header as $what"
		failed=1
	fi
}
strict="-Wall -Wextra -Werror -pedantic -Wconversion -Wno-sign-conversion"
for header in $(cd include && find . -name '*.h' | sed 's,^\./,,' | sort); do
	# shellcheck disable=SC2086
	try C11 "$header" gcc -x c -std=c11 $strict -Wstrict-prototypes
	# shellcheck disable=SC2086
	try C++17 "$header" g++ -x c++ -std=c++17 $strict
done
exit $failed
