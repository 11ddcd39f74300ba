#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Run a script on a whole Debian 12 machine, as a user's dev box is one:
# systemd, udev, a compiler, kernel headers, dkms; no network.
#
#	qemu/devbox.sh [--timeout S] SCRIPT
#
# The sources (as git knows them, with what is not committed) lie in
# /home/user/airunner, which is where SCRIPT runs, by bash, as the user `user`,
# who may sudo. Files in build/deb are put into the same place. The disk is
# thrown away afterwards. Exit status: as qemu/run.sh.
#
# The disk image takes some minutes to make, once; that needs root or sudo.

. "$(dirname "$0")/common.sh"

timeout=3600
if [ "${1:-}" = --timeout ]; then
	timeout=$2
	shift 2
fi
[ $# = 1 ] || { sed -n '4,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
script=$1

packages=systemd-sysv,udev,dbus,kmod,sudo,procps,iproute2,ca-certificates
packages+=,initramfs-tools,linux-image-amd64,linux-headers-amd64,dkms
packages+=,make,gcc,libc6-dev,pkg-config,liburing-dev,libopenblas0,git
packages+=,debhelper,dh-dkms,fakeroot,dpkg-dev

# The service that runs the script is part of the image; the script is not.
service() {
	cat <<-'END'
	[Unit]
	Description=qemu/devbox.sh
	After=multi-user.target

	[Service]
	Type=oneshot
	ExecStart=/bin/bash /opt/devbox/start
	StandardOutput=file:/dev/ttyS1
	StandardError=file:/dev/ttyS1
	TimeoutStartSec=infinity

	[Install]
	WantedBy=multi-user.target
	END
}

# /dev/vdb is a tar archive: no file system, no module needed to read it.
start() {
	cat <<-'END'
	for port in 1 2 3; do stty -F /dev/ttyS$port raw -echo 115200; done
	echo up >/dev/ttyS2
	mkdir -p /home/user/airunner
	tar -xf /dev/vdb -C /home/user/airunner
	chown -R user:user /home/user
	runuser -l user -c 'cd airunner && bash -e ./devbox-script'
	echo "status $?" >/dev/ttyS2
	dmesg >/dev/ttyS3
	echo end >/dev/ttyS2
	systemctl poweroff --force --force
	END
}

make_image() {
	local image=$1 root mirror
	[ ! -e "$image" ] || return 0
	"$TOP/qemu/deps.sh" devbox
	root=$(mktemp -d "$CACHE/devbox.XXXXXX")
	mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' \
		"Created-By: Packages" | awk '$2 == "bookworm" { print $1; exit }')
	[ -n "$mirror" ] || die "apt knows no archive of Debian 12"
	say "making a Debian machine from $mirror (some minutes)"
	run_as_root debootstrap --variant=minbase --include="$packages" \
		bookworm "$root" "$mirror" >"$CACHE/devbox.log" 2>&1 || {
		tail -n 20 "$CACHE/devbox.log" >&2
		die "debootstrap failed"
	}
	# It leaves what it mounted there, or not, by where it runs.
	run_as_root umount -q "$root/proc" "$root/sys" || true
	run_as_root chroot "$root" useradd -m -s /bin/bash user
	service | run_as_root tee "$root/etc/systemd/system/devbox.service" \
		>/dev/null
	run_as_root mkdir -p "$root/opt/devbox"
	start | run_as_root tee "$root/opt/devbox/start" >/dev/null
	run_as_root chroot "$root" systemctl enable devbox.service 2>/dev/null
	echo "user ALL=(ALL) NOPASSWD: ALL" |
		run_as_root tee "$root/etc/sudoers.d/user" >/dev/null
	echo "/dev/vda / ext4 defaults 0 1" |
		run_as_root tee "$root/etc/fstab" >/dev/null
	echo devbox | run_as_root tee "$root/etc/hostname" >/dev/null
	echo "127.0.0.1 localhost devbox" |
		run_as_root tee "$root/etc/hosts" >/dev/null
	run_as_root sh -c "cp $root/boot/vmlinuz-* $image.vmlinuz &&
		cp $root/boot/initrd.img-* $image.initrd &&
		rm -rf $root/var/cache/apt/archives/*.deb &&
		mke2fs -q -t ext4 -d $root $image.new 4G &&
		chmod 644 $image.vmlinuz $image.initrd &&
		chown $(id -u) $image.new $image.vmlinuz $image.initrd &&
		rm -rf $root"
	mv "$image.new" "$image"
}

"$TOP/qemu/deps.sh" qemu
mkdir -p "$CACHE"
key=$( (echo "$packages"; declare -f make_image service start) |
	sha256sum | cut -c1-12)
image=$CACHE/devbox-$key
with_lock devbox make_image "$image"

dir=$(mktemp -d "${TMPDIR:-/tmp}/airunner-devbox.XXXXXX")
qemu=
trap '[ -z "$qemu" ] || kill -KILL "$qemu" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
cp "$script" "$dir/devbox-script"
(cd "$TOP" && git -c safe.directory="$TOP" ls-files -co --exclude-standard |
	while read -r f; do [ ! -f "$f" ] || echo "$f"; done |
	tar -cf "$dir/payload" -T -)
tar -rf "$dir/payload" -C "$dir" devbox-script
if [ -d "$TOP/build/deb" ]; then
	tar -rf "$dir/payload" -C "$TOP/build/deb" .
fi

touch "$dir"/{console,status,dmesg}
mkfifo "$dir/stream"
cat "$dir/stream" &
reader=$!
setpriv --pdeathsig TERM timeout -k 5 "$timeout" setpriv --pdeathsig KILL \
qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
	-machine pc -accel tcg,thread=multi,tb-size=512 -cpu max,la57=off \
	-smp 2 -m 2048 \
	-kernel "$image.vmlinuz" -initrd "$image.initrd" \
	-append "root=/dev/vda rw console=ttyS0,115200 loglevel=5 panic=-1 mitigations=off clocksource=hpet tsc=unstable no_timer_check" \
	-drive file="$image",format=raw,if=virtio,snapshot=on \
	-drive file="$dir/payload",format=raw,if=virtio,readonly=on \
	-serial file:"$dir/console" -serial file:"$dir/stream" \
	-serial file:"$dir/status" -serial file:"$dir/dmesg" \
	</dev/null 2>"$dir/qemu" &
qemu=$!
rc=0
wait $qemu || rc=$?
qemu=
: 1<>"$dir/stream"
wait $reader || true

if [ $rc = 124 ] || [ $rc = 137 ]; then
	tail -n 30 "$dir/console" >&2
	say "not finished after $timeout s"
	exit 124
fi
if grep -nEf "$TOP/qemu/bad-dmesg" "$dir/dmesg" "$dir/console" >&2; then
	say "the kernel log has lines it must not have"
	exit 125
fi
status=$(sed -n 's/^status //p' "$dir/status")
if [ -z "$status" ] || ! grep -q '^end' "$dir/status"; then
	cat "$dir/qemu" >&2
	tail -n 30 "$dir/console" >&2
	say "ended without a status"
	exit 125
fi
exit "$status"
