#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Provide a guest kernel and say where it is:
#
#	qemu/kernel.sh 6.1|6.12|debug|source
#
# prints a folder that holds (source: the debug kernel's source)
#
#	vmlinuz	the kernel
#	build	what to give `make -C kmod KDIR=` as KDIR
#	release	its `uname -r`
#
# 6.1 and 6.12 are Debian's, fetched and unpacked, not installed. debug is
# built from Debian's linux-source-6.1 with qemu/debug.config. All are kept in
# build/guest, by version and configuration, so only the first call takes time.

. "$(dirname "$0")/common.sh"

# fetch DIR PACKAGE...: unpack Debian packages into DIR.
fetch() {
	local dir=$1 tmp
	shift
	tmp=$(mktemp -d "$CACHE/fetch.XXXXXX")
	say "fetching $*"
	(
		cd "$tmp"
		apt-get -q download "$@" >log 2>&1 ||
			{ run_as_root apt-get -q update >>log 2>&1 &&
			  apt-get -q download "$@" >>log 2>&1; } ||
			{ tail -n 5 log >&2; die "cannot fetch $*"; }
		mkdir root
		for deb in *.deb; do dpkg -x "$deb" root; done
	)
	mkdir -p "$(dirname "$dir")"
	rm -rf "$dir"
	mv "$tmp/root" "$dir"
	rm -rf "$tmp"
}

# Both kinds of build folder name themselves by absolute paths: one that was
# moved or copied here is as good as none.
finished() { [ "$(cat "$1/ok" 2>/dev/null)" = "$1" ]; }
finish() { echo "$1" >"$1/ok"; }

# A fresh container has no package lists at all.
have_lists() {
	[ -n "$(apt-cache pkgnames linux-image-amd64 2>/dev/null)" ] ||
		run_as_root apt-get -q update >/dev/null 2>&1 || true
}

# The package of a given name pattern that a meta package depends on.
depends_on() {
	apt-cache depends "$1" 2>/dev/null |
		sed -n 's/^ *Depends: //p' | grep -m1 "$2" || true
}

# debian IMAGE-META HEADERS-META
debian() {
	local image release headers version flavour dir common kbuild
	have_lists
	image=$(depends_on "$1" '^linux-image-[0-9]')
	headers=$(depends_on "$2" '^linux-headers-[0-9]')
	[ -n "$image" ] && [ -n "$headers" ] ||
		die "the archive offers no $1 with $2"
	release=${image#linux-image-}
	[ "linux-headers-$release" = "$headers" ] ||
		die "$1 is $image, but $2 is $headers"
	version=$(apt-cache show "$image" | sed -n 's/^Version: //p' | head -n1)
	dir=$CACHE/debian-$release-$version
	if ! finished "$dir"; then
		common=$(depends_on "$headers" '^linux-headers-.*-common')
		kbuild=$(depends_on "$headers" '^linux-kbuild-')
		# Before 6.12 the dependency on kbuild is the common one's.
		: "${kbuild:=$(depends_on "$common" '^linux-kbuild-')}"
		fetch "$dir" "$image" "$headers" "$common" "$kbuild"
		# The headers name their common part by its installed path.
		sed -i "s,/usr/src/,$dir/usr/src/," \
			"$dir/usr/src/$headers/Makefile"
		ln -sfn "boot/vmlinuz-$release" "$dir/vmlinuz"
		ln -sfn "usr/src/$headers" "$dir/build"
		echo "$release" >"$dir/release"
		# Guests need no other module than ours.
		rm -rf "$dir/lib/modules"
		finish "$dir"
	fi
	echo "$dir"
}

config_hash() {
	sha256sum <"$TOP/qemu/debug.config" | cut -c1-12
}

source_version() {
	local version
	have_lists
	version=$(apt-cache show linux-source-6.1 2>/dev/null |
		  sed -n 's/^Version: //p' | head -n1)
	[ -n "$version" ] || die "the archive offers no linux-source-6.1"
	echo "$version"
}

unpack_source() {
	local src=$1
	! finished "$src" || return 0
	fetch "$src.deb" linux-source-6.1
	mkdir -p "$src"
	say "unpacking the kernel's source"
	# Only x86 is built, and little of it; of the rest Kconfig is read.
	tar -xJf "$src.deb"/usr/src/linux-source-6.1.tar.xz \
		-C "$src" --strip-components=1 \
		--exclude='linux-source-6.1/arch/[a-wyz]*/*.[chS]' \
		--exclude='*.dts' --exclude='*.dtsi' \
		--exclude='*/drivers/gpu/drm/*/*.[ch]' \
		--exclude='*/drivers/net/*/*.[ch]' \
		--exclude='*/sound/*/*.[ch]' \
		--exclude='*/drivers/media/*.[ch]' \
		--exclude='*/Documentation/*.rst' \
		--exclude='*/Documentation/*.yaml'
	rm -rf "$src.deb"
	finish "$src"
}

source_tree() {
	local src
	src=$CACHE/linux-source-$(source_version)
	with_lock source unpack_source "$src"
	echo "$src"
}

# debug: Debian's 6.1 sources, a small configuration, every checker.
debug() {
	local version src dir hash jobs=${JOBS:-2}
	"$TOP/qemu/deps.sh" debug
	version=$(source_version)
	hash=$(config_hash)
	dir=$CACHE/debug-$version-$hash
	if ! finished "$dir"; then
		src=$(source_tree)
		say "building the debug kernel (some minutes; log: $dir/log)"
		rm -rf "$dir"
		mkdir -p "$dir/build"
		(
			cd "$src" &&
			make O="$dir/build" tinyconfig &&
			scripts/kconfig/merge_config.sh -m -O "$dir/build" \
				"$dir/build/.config" "$TOP/qemu/debug.config" &&
			make O="$dir/build" olddefconfig
		) >"$dir/log" 2>&1 || { tail -n 20 "$dir/log" >&2; exit 1; }
		# A dropped option would silently weaken every test that runs
		# on this kernel.
		grep -v '^#\|^$' "$TOP/qemu/debug.config" |
			grep -vxFf "$dir/build/.config" >"$dir/dropped" &&
			grep -v '=n$' "$dir/dropped" >&2 &&
			die "Kconfig dropped the options above"
		nice make -C "$src" O="$dir/build" -j"$jobs" bzImage modules \
			>>"$dir/log" 2>&1 ||
			{ tail -n 20 "$dir/log" >&2; exit 1; }
		ln -sfn build/arch/x86/boot/bzImage "$dir/vmlinuz"
		cp "$dir/build/include/config/kernel.release" "$dir/release"
		# Modules need the headers, tools and symbol tables only.
		find "$dir/build" -name '*.o' ! -path '*/tools/*' \
			! -path '*/scripts/*' -delete
		rm -f "$dir/build/vmlinux.a"
		finish "$dir"
	fi
	echo "$dir"
}

# known NAME KEY: what an earlier call found, unless the package lists have
# changed since (apt-cache takes seconds to ask). KEY is part of the name.
known() {
	local memo=$CACHE/known-$1$2 dir
	[ -e "$memo" ] && ! [ /var/lib/apt/lists -nt "$memo" ] || return 1
	dir=$(cat "$memo")
	finished "$dir" && echo "$dir"
}

# provide NAME KEY COMMAND...: the known one, or what COMMAND makes. Whoever
# only wants what is there already does not wait for a build in progress.
provide() {
	known "$1" "$2" || with_lock "$1" make_known "$@"
}

make_known() {
	local name=$1 key=$2 dir
	shift 2
	# Another call may have made it while this one waited.
	known "$name" "$key" && return
	dir=$("$@")
	echo "$dir" >"$CACHE/known-$name$key"
	echo "$dir"
}

mkdir -p "$CACHE"
case ${1:-} in
6.1)	provide "$1" "" debian linux-image-amd64 linux-headers-amd64 ;;
6.12)	provide "$1" "" debian linux-image-6.12-cloud-amd64 \
		linux-headers-6.12-cloud-amd64 ;;
debug)	provide "$1" "-$(config_hash)" debug ;;
source)	source_tree ;;
*)	die "usage: qemu/kernel.sh $(echo $KERNELS | tr ' ' '|')" ;;
esac
