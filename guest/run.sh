#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Boots Debian's kernels in qemu under software emulation and runs every test of guest/tests in each.
# A kernel takes some 15 s. Its bundles are left in CACHE/guest/KERNEL/out.
# usage: run.sh MOSTRACE [KERNEL…]     (names of guest/kernels; all by default)
set -eu

mostrace=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/guest
limit=300

TOOLS="/usr/sbin/mke2fs /usr/sbin/debugfs /usr/sbin/e2image /usr/sbin/blktrace /usr/bin/dd"
MODULES="loop ext4 virtio_pci virtio_blk"

# The newest package of a glob, downloaded and unpacked once.
fetch_kernel() {
	glob=$1 dir=$2
	package=$(apt-cache pkgnames linux-image- | grep -Ex "$(echo "$glob" | sed 's/\./\\./g; s/\*/.*/g')" |
		grep -vE 'dbg|unsigned' | sort -V | tail -n 1)
	[ -n "$package" ] || { echo "guest: apt knows no package $glob" >&2; return 1; }
	[ "$(cat "$dir/package" 2>/dev/null)" = "$package" ] && return
	rm -rf "$dir"
	mkdir -p "$dir/deb"
	(cd "$dir/deb" && apt-get download -qq "$package" 2>/dev/null)
	dpkg -x "$dir"/deb/*.deb "$dir/deb"
	cp "$dir"/deb/boot/vmlinuz-* "$dir/vmlinuz"
	release=$(ls "$dir/deb/lib/modules")
	depmod -b "$dir/deb" "$release"
	mkdir -p "$dir/modules"
	# Those that are built in have no file.
	for module in $MODULES; do
		modprobe -d "$dir/deb" -S "$release" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++' | while read -r file; do
		name=$(basename "$file" .xz)
		case $file in *.xz) xz -dc "$file" ;; *) cat "$file" ;; esac >"$dir/modules/$name"
		echo "$name"
	done >"$dir/modules/order"
	rm -rf "$dir/deb"
	echo "$package" >"$dir/package"
}

# Programs with the libraries they need, busybox, the tests.
make_initrd() {
	dir=$1 root=$1/root
	rm -rf "$root"
	for folder in bin proc sys dev tmp etc usr/local/bin lib/modules; do mkdir -p "$root/$folder"; done
	cp /bin/busybox "$root/bin/"
	cp /etc/mke2fs.conf "$root/etc/"
	for program in "$mostrace" $TOOLS; do
		name=$(basename "$program")
		[ "$program" != "$mostrace" ] || name=mostrace
		cp "$program" "$root/usr/local/bin/$name"
		ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
			mkdir -p "$root$(dirname "$library")"
			cp -L "$library" "$root$library"
		done
	done
	cp "$dir"/modules/* "$root/lib/modules/"
	cp -r "$here/tests" "$root/tests"
	cp "$here/lib.sh" "$root/lib/guest.sh"
	cp "$here/init" "$root/init"
	chmod +x "$root/init"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd.gz"
}

boot() {
	dir=$1
	truncate -s 0 "$dir/out.img"
	truncate -s 64M "$dir/out.img"
	timeout "$limit" qemu-system-x86_64 -accel tcg -smp 2 -m 1024 -nographic -no-reboot \
		-kernel "$dir/vmlinuz" -initrd "$dir/initrd.gz" -append "console=ttyS0 quiet panic=-1" \
		-drive "file=$dir/out.img,format=raw,if=virtio" >"$dir/log" 2>&1 </dev/null || true
	rm -rf "$dir/out"
	mkdir "$dir/out"
	tar -C "$dir/out" -xf "$dir/out.img" 2>/dev/null || true
}

failed=0
while read -r kernel glob; do
	case $kernel in '' | '#'*) continue ;; esac
	case " $* " in "  " | *" $kernel "*) ;; *) continue ;; esac
	dir=$cache/$kernel
	fetch_kernel "$glob" "$dir"
	make_initrd "$dir"
	boot "$dir"
	echo "== $kernel ($(cat "$dir/package"))"
	tr -d '\r' <"$dir/log" | sed -n '/^GUEST/,$p'
	tests=$(find "$here/tests" -name '*.sh' | wc -l)
	passed=$(tr -d '\r' <"$dir/log" | grep -c '^GUEST ok') || true
	[ "$passed" -eq "$tests" ] || { echo "guest: $kernel: $passed of $tests tests passed; $dir/log" >&2; failed=1; }
done <"$here/kernels"
exit $failed
