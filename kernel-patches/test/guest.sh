#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Boots one of guest/kernels in qemu and tries the module in it. What the tests leave in /tmp/out comes to DIR/out.
# usage: guest.sh MOSTRACE KERNEL MODULE.ko DIR [TEST…]
# ROUNDS: how often the module is loaded and unloaded, 50.
# ACCEL: of qemu. Before its 8.1 (deba78709a), several threads run breakpoints that the kernel has taken away while it
# switches tracepoints, with or without the module ("Oops: int3"): one thread by default.
set -eu

mostrace=$1 kernel=$2 module=$3 dir=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
guest=$here/../../guest
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/guest/$kernel
PATH=$PATH:/usr/sbin:/sbin
tests=${*:-$(cd "$here/tests" && ls -- *.sh | sed 's/\.sh$//')}

TOOLS="mke2fs mkfs.f2fs mkfs.vfat dd fio setpriv filefrag"

add() {
	mkdir -p "$root/usr/local/bin"
	cp "$1" "$root/usr/local/bin/$2"
	ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
		mkdir -p "$root$(dirname "$library")"
		cp -L "$library" "$root$library"
	done
}

make_initrd() {
	root=$dir/root
	rm -rf "$root"
	for folder in bin proc sys dev tmp etc lib/modules tests; do mkdir -p "$root/$folder"; done
	cp /bin/busybox "$root/bin/"
	cp /etc/mke2fs.conf "$root/etc/"
	add "$mostrace" mostrace
	for tool in $TOOLS; do add "$(command -v "$tool")" "$tool"; done
	cc -O1 -static -o "$root/usr/local/bin/probe" "$here/probe.c"
	cp "$cache"/modules/* "$root/lib/modules/"
	cp "$module" "$root/lib/mostrace.ko"
	strip --strip-debug "$root/lib/mostrace.ko"
	for test in $tests; do cp "$here/tests/$test.sh" "$root/tests/"; done
	cat "$guest/lib.sh" "$here/lib.sh" >"$root/lib/guest.sh"
	cp "$guest"/lib-*.sh "$root/lib/"
	echo "${ROUNDS:-50}" >"$root/lib/rounds"
	cp "$guest/init" "$root/init"
	chmod +x "$root/init"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd.gz"
	rm -rf "$root"
}

boot() {
	rm -rf "$dir/out.img" "$dir/out"
	truncate -s 1G "$dir/out.img"
	nice timeout "${GUEST_LIMIT:-580}" qemu-system-x86_64 -accel "${ACCEL:-tcg,thread=single}" -smp 2 -m 2048 -nographic -no-reboot \
		-kernel "$cache/vmlinuz" -initrd "$dir/initrd.gz" -append "console=ttyS0 quiet panic=-1" \
		-drive "file=$dir/out.img,format=raw,if=virtio" >"$dir/log" 2>&1 </dev/null || true
	mkdir "$dir/out"
	tar -C "$dir/out" -xf "$dir/out.img" 2>/dev/null || true
	rm -f "$dir/out.img"
}

mkdir -p "$dir"
make_initrd
boot
tr -d '\r' <"$dir/log" | sed -n '/^GUEST/,$p'
# shellcheck disable=SC2086 # one word per test
asked=$(echo $tests | wc -w)
passed=$(tr -d '\r' <"$dir/log" | grep -c '^GUEST ok') || true
failed=0
[ "$passed" -eq "$asked" ] || { echo "module: $kernel: $passed of $asked tests passed; $dir/log" >&2; failed=1; }
for bundle in "$dir"/out/*.most; do
	[ -d "$bundle" ] || continue
	"$here/compare.py" "$bundle" "${bundle%.most}.stream" "${bundle%.most}.extents" || failed=1
done
exit $failed
