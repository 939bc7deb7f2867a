#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Boots Debian's kernels in qemu under software emulation and runs the tests of guest/tests in each.
# What a kernel's tests leave in /tmp/out comes to CACHE/guest/KERNEL/out, its console to CACHE/guest/KERNEL/log.
# usage: run.sh MOSTRACE [all | KERNEL…]     (names of guest/kernels; by default those marked `test`)
# GUEST_SCRIPTS=FOLDER takes the tests from there; GUEST_TESTS="NAME…" runs only these; GUEST_JOBS=N boots so many kernels at a time.
set -eu

mostrace=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace/guest
scripts=$(cd "${GUEST_SCRIPTS:-$here/tests}" && pwd)
limit=${GUEST_LIMIT:-1200}
jobs=${GUEST_JOBS:-$(nproc)}
PATH=$PATH:/usr/sbin:/sbin

# In the guest these are in /usr/local/bin. The applets of busybox that they have the name of lack an option or more.
TOOLS="mke2fs debugfs e2image blktrace dd cp comm tar zstd mkfs.f2fs mkfs.vfat filefrag chattr fallocate setfattr"

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
		program=$(command -v "$program")
		cp "$program" "$root/usr/local/bin/$name"
		ldd "$program" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
			mkdir -p "$root$(dirname "$library")"
			cp -L "$library" "$root$library"
		done
	done
	cp "$dir"/modules/* "$root/lib/modules/"
	"$here/tree.sh" "$root/tree"
	mkdir "$root/tests"
	for test in $tests; do cp "$scripts/$test.sh" "$root/tests/"; done
	cp "$here/lib.sh" "$root/lib/guest.sh"
	cp "$here"/lib-*.sh "$root/lib/"
	cp "$here/init" "$root/init"
	chmod +x "$root/init"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd.gz"
	rm -rf "$root"
}

# In a shell that becomes qemu's guard, so that to kill it ends qemu.
emulate() {
	# With a thread for each CPU, qemu 7.2 now and then loses a breakpoint that the kernel patches itself with.
	exec timeout "$limit" qemu-system-x86_64 -accel tcg,thread=single -smp 2 -m 2048 -nographic -no-reboot \
		-kernel "$1/vmlinuz" -initrd "$1/initrd.gz" -append "console=ttyS0 quiet panic=-1" \
		-drive "file=$1/out.img,format=raw,if=virtio" >"$1/log" 2>&1 </dev/null
}

# begins PID LOG: whether init speaks within two minutes.
begins() {
	waited=0
	while [ $waited -lt 120 ] && kill -0 "$1" 2>/dev/null; do
		! grep -aq '^GUEST begun' "$2" || return 0
		sleep 1
		waited=$((waited + 1))
	done
	grep -aq '^GUEST begun' "$2"
}

boot() {
	dir=$1
	rm -f "$dir/out.img"
	truncate -s 1G "$dir/out.img"
	# An emulated kernel now and then hangs before it says a word.
	for try in 1 2 3; do
		emulate "$dir" &
		qemu=$!
		if begins "$qemu" "$dir/log"; then break; fi
		echo "guest: $(basename "$dir"): did not boot, try $try" >&2
		kill "$qemu" 2>/dev/null || true
		wait "$qemu" || true
	done
	wait "$qemu" || true
	rm -rf "$dir/out"
	mkdir "$dir/out"
	tar -C "$dir/out" -xf "$dir/out.img" 2>/dev/null || true
	rm -f "$dir/out.img"
}

wanted() {
	case " $wish " in
	"  ") [ "$2" = test ] ;;
	" all ") true ;;
	*" $1 "*) true ;;
	*) false ;;
	esac
}

wish=$*
tests=${GUEST_TESTS:-$(cd "$scripts" && ls -- *.sh | sed 's/\.sh$//')}
# shellcheck disable=SC2086 # one word per test
asked=$(echo $tests | wc -w)
# run KERNEL: in its own folder, as several are under way at once.
run() {
	dir=$cache/$1
	start=$(date +%s)
	boot "$dir"
	passed=$(tr -d '\r' <"$dir/log" | grep -c '^GUEST ok') || true
	{
		echo "== $1 ($(cat "$dir/package"), $(($(date +%s) - start)) s)"
		tr -d '\r' <"$dir/log" | sed -n '/^GUEST/,$p'
		echo "$passed of $asked tests passed; $dir/log"
	} >"$dir/report"
	rm -f "$dir/failed"
	[ "$passed" -eq "$asked" ] || touch "$dir/failed"
}

# The folders of the kernels are one run's at a time.
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

# A test keeps one CPU busy, seldom two: one guest for each CPU is the quickest.
kernels=
under_way=0
while read -r kernel suite when; do
	case $kernel in '' | '#'*) continue ;; esac
	wanted "$kernel" "$when" || continue
	mkdir -p "$cache/$kernel"
	"$here/kernel.sh" "$kernel" "$suite" "$cache/$kernel"
	make_initrd "$cache/$kernel"
	run "$kernel" </dev/null 9>&- &
	kernels="$kernels $kernel"
	under_way=$((under_way + 1))
	[ $((under_way % jobs)) -ne 0 ] || wait
done <"$here/kernels"
wait

failed=0
for kernel in $kernels; do
	cat "$cache/$kernel/report"
	[ ! -e "$cache/$kernel/failed" ] || failed=1
done
[ -n "$kernels" ] || { echo "guest: no such kernel: $*" >&2; exit 1; }
exit $failed
