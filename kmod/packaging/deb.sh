#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh OUT: make OUT/airunner-dkms_VERSION_all.deb: the sources for DKMS,
# the udev rule, the example of options, and what loads the module at boot.
# Needs dpkg-deb only.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=$1
mkdir -p "$out"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
chmod 755 "$root"

version=$("$here/source.sh" "$root/usr/src/airunner")
mv "$root/usr/src/airunner" "$root/usr/src/airunner-$version"
doc=$root/usr/share/doc/airunner-dkms
install -D -m 644 "$here/60-airunner.rules" \
	"$root/lib/udev/rules.d/60-airunner.rules"
install -D -m 644 "$here/airunner.modules-load.conf" \
	"$root/usr/lib/modules-load.d/airunner.conf"
install -D -m 644 "$here/airunner.modprobe.conf" \
	"$doc/examples/airunner.modprobe.conf"
install -D -m 644 "$here/../README.md" "$doc/README.md"
cat > "$doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: airunner

Files: *
Copyright: the airunner authors
License: GPL-2
 On Debian systems the text is in /usr/share/common-licenses/GPL-2.
END

mkdir -p "$root/DEBIAN"
cat > "$root/DEBIAN/control" <<END
Package: airunner-dkms
Version: $version
Architecture: all
Maintainer: airunner <airunner@localhost>
Section: kernel
Priority: optional
Depends: dkms (>= 3.0.3), make, gcc, libc6-dev, adduser
Recommends: linux-headers-amd64 | linux-headers-generic
Description: command channels between processes and accelerators (DKMS)
 The kernel module airunner.ko gives processes rings of their own, in memory
 that they share with the process that drives an accelerator, and decides who
 is served when. This package builds it for each kernel that is installed.
END
cat > "$root/DEBIAN/postinst" <<END
#!/bin/sh
set -e
if [ "\$1" = configure ]; then
	getent group airunner >/dev/null || addgroup --system airunner
	dkms remove -m airunner -v $version --all >/dev/null 2>&1 || true
	dkms add -m airunner -v $version
	# Every kernel that there are headers for; the running one may be
	# none of ours (a container, an installer).
	for build in /lib/modules/*/build; do
		[ -d "\$build" ] || continue
		kernel=\${build#/lib/modules/}
		dkms install -m airunner -v $version -k "\${kernel%/build}"
	done
	if command -v udevadm >/dev/null; then
		udevadm control --reload || true
	fi
	if [ -d "/lib/modules/\$(uname -r)/build" ]; then
		modprobe airunner || echo "airunner: not loaded; under Secure Boot see /usr/share/doc/airunner-dkms/README.md"
	fi
fi
END
cat > "$root/DEBIAN/prerm" <<END
#!/bin/sh
set -e
# While somebody uses it, the old one stays until the next boot.
modprobe -r airunner 2>/dev/null || true
dkms remove -m airunner -v $version --all || true
END
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"

dpkg-deb --root-owner-group -Zxz --build "$root" \
	"$out/airunner-dkms_${version}_all.deb"
