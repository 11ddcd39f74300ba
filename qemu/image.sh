#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Pack a guest's root file system (for qemu/run.sh):
#
#	qemu/image.sh OUT COMMAND SETTINGS [FILE...]
#
# busybox, the programs and libraries of build/$VARIANT, tests/kernel/*.sh, and
# each FILE; with every shared library that any of them needs.

. "$(dirname "$0")/common.sh"

out=$1 command=$2 settings=$3
shift 3
root=$(mktemp -d "${TMPDIR:-/tmp}/airunner-image.XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

cd "$root"
mkdir -p bin dev proc sys tmp run root etc home/{alice,bob,carol} \
	airunner/{bin,tests} usr/lib var
cp "$(command -v busybox)" bin/busybox
for applet in $(bin/busybox --list); do
	[ "$applet" = busybox ] || ln -s busybox "bin/$applet"
done
ln -s ../bin usr/bin
ln -s bin sbin
ln -s /run var/run
cp "$TOP/qemu/init" init
cp "$TOP/qemu/load-module" airunner/bin
cp "$TOP/qemu/bad-dmesg" airunner/bad-dmesg
cp "$command" airunner/command
cp "$settings" airunner/settings

cat >etc/passwd <<-END
	root::0:0:root:/root:/bin/sh
	alice::1000:1000::/home/alice:/bin/sh
	bob::1001:1001::/home/bob:/bin/sh
	carol::1002:1002::/home/carol:/bin/sh
	nobody::65534:65534::/:/bin/sh
END
cat >etc/group <<-END
	root:x:0:
	airunner:x:200:alice,bob
	alice:x:1000:
	bob:x:1001:
	carol:x:1002:
	nogroup:x:65534:
END
echo "127.0.0.1 localhost guest" >etc/hosts

# Programs first: a FILE of the same name then takes its place.
if [ -d "$B" ]; then
	find "$B" -type f -perm -u+x ! -name '*.so*' ! -name '*.o' \
		! -path '*/tests/unit/*' ! -path '*/tests/bench/*' \
		! -path '*/tests/gpu/*' ! -path '*/tests/fuzz/*' \
		! -path '*/tests/stress/*' ! -name 'bench-*' \
		-exec cp -t airunner/bin {} +
	find "$B" \( -type f -o -type l \) -name '*.so*' ! -name '*.o' \
		! -name '*.d' -exec cp -P -t usr/lib {} +
fi
find "$TOP/tests/kernel" -name '*.sh' -exec cp -t airunner/tests {} +
for file in "$@"; do
	case $file in
	*.ko)	cp "$file" airunner/airunner.ko ;;
	*)	cp -L "$file" airunner/bin ;;
	esac
done
chmod +x init airunner/bin/* 2>/dev/null || true
chmod -f +x airunner/tests/* || true

# Libraries, by the paths they have here: the loader finds them the same way.
# The last two are loaded at run time, where they are there.
loaded=$(/sbin/ldconfig -p | sed -nE \
	's,.*(libopenblas\.so\.0|liburing\.so\.2) .*x86-64.* => (.*),\2,p')
for lib in $loaded; do
	mkdir -p ".$(dirname "$lib")"
	cp -L "$lib" ".$lib"
done
# shellcheck disable=SC2086
{ find airunner/bin usr/lib -type f -print0; printf '%s\0' $loaded; } |
	(LD_LIBRARY_PATH=$root/usr/lib xargs -0 -n1 ldd 2>/dev/null || true) |
	sed -n 's,.* => \(/[^ ]*\) .*,\1,p; s,^[[:space:]]*\(/[^ ]*\) (.*,\1,p' |
	sort -u | while read -r lib; do
	case $lib in
	"$root"/*) ;;
	*)	mkdir -p ".$(dirname "$lib")"
		cp -L "$lib" ".$lib" ;;
	esac
done

find . -print0 | cpio --null --quiet -o -H newc -R 0:0 >"$out"
