#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Boots kernels in qemu under software emulation and runs a set of tests in each.
# usage: run.sh MOSTRACE [KERNEL | TARGET]…     (names and targets of tests/guest/kernels; by default `test`)
# MOSTRACE must be built for the guest's architecture.
# GUEST_SCRIPTS=FOLDER takes the tests from there instead of from tests/guest/tests. Beside that folder there may be
#   prepare.sh KERNEL SUITE ROOT     which adds to the guest's root what the tests need;
#   check.sh OUT                     which checks on the host what they left.
# GUEST_TESTS="NAME…" runs only these tests. With GUEST_SPLIT=NUMBER each test runs in one of the kernels only, and with the next number in
# the next kernel: the longest come first, so that all kernels take as long. GUEST_JOBS=N boots N kernels at a time. GUEST_SILENCE is the number of
# seconds without a step or a line of output after which a test is ended; a test that goes on may take any time.
# GUEST_QEMU="OPTION…" is passed to qemu.
# The files that the tests leave in /tmp/out are copied to CACHE/guest/KERNEL/SCRIPTS/out, the console to
# CACHE/guest/KERNEL/SCRIPTS/log.
set -eu

mostrace=$1
shift
wish=${*:-test}
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace
scripts=$(cd "${GUEST_SCRIPTS:-$here/tests}" && pwd)
beside=$(dirname "$scripts")
set=${scripts#"$(dirname "$(dirname "$here")")/"}
# A test's longest step takes half a minute on an idle machine.
silence=${GUEST_SILENCE:-600}
# The guest is ended if it did not end a silent test itself. A kernel prints messages all the time while it boots.
guest_silence=$((silence * 3 / 2))
boot_silence=300
jobs=${GUEST_JOBS:-$(nproc)}
PATH=$PATH:/usr/sbin:/sbin

# In the guest these tools are in /usr/local/bin. Busybox's applets of the same names lack options.
TOOLS="mke2fs debugfs e2image blktrace dd cp comm tar zstd mkfs.f2fs mkfs.vfat filefrag chattr fallocate setfattr dmsetup lvm xfs_io"

# The packages with these tools, for a guest of another architecture.
PACKAGES="busybox-static e2fsprogs blktrace coreutils tar zstd f2fs-tools dosfstools util-linux attr dmsetup lvm2 xfsprogs"

# fetch KERNEL SUITE ARCHITECTURE: puts its vmlinuz, modules and package name into CACHE/guest/KERNEL.
fetch() {
	if [ "$2" = series ]; then
		"$here/../../kernel-patches/series/kernel.sh" "$1"
		ln -sfn "$cache/linux/built/$1"/* "$cache/guest/$1/"
	else
		"$here/kernel.sh" "$1" "$2" "$cache/guest/$1" "$3"
		# shellcheck disable=SC2086 # one word per package
		[ "$3" = amd64 ] || "$here/packages.sh" "$3" "$cache/guest/tools-$3" $PACKAGES
	fi
}

# add_tools ROOT ARCHITECTURE: adds busybox and TOOLS.
add_tools() {
	if [ "$2" = amd64 ]; then
		cp /bin/busybox "$1/bin/"
		for tool in $TOOLS; do "$here/add.sh" "$1" "$tool"; done
		return
	fi
	theirs=$cache/guest/tools-$2/root
	cp "$theirs/bin/busybox" "$1/bin/"
	mkdir -p "$1/usr/local/bin"
	for tool in $TOOLS; do
		cp -L "$(find "$theirs"/bin "$theirs"/sbin "$theirs"/usr/bin "$theirs"/usr/sbin -name "$tool" | head -n 1)" "$1/usr/local/bin/"
	done
	# These folders have all that the tools need, except python, which is needed only by a tool of blktrace's that
	# we do not use.
	for folder in lib usr/lib; do
		(cd "$theirs" && find $folder -name '*.so*' -not -path '*python*' -print0 | cpio -0 -pdm --quiet "$1")
	done
}

# make_initrd KERNEL SUITE DIR ARCHITECTURE: packs programs, the kernel's modules and the tests.
make_initrd() {
	root=$3/root
	rm -rf "$root"
	for folder in bin proc sys dev tmp etc lib/modules tests usr; do mkdir -p "$root/$folder"; done
	# mostrace, run as root, starts other programs only from the system's folders.
	ln -s local/bin "$root/usr/sbin"
	cp /etc/mke2fs.conf "$root/etc/"
	"$here/add.sh" "$root" "$mostrace" mostrace
	add_tools "$root" "$4"
	cp "$cache/guest/$1"/modules/* "$root/lib/modules/"
	"$here/tree.sh" "$root/tree"
	for test in $mine; do cp "$scripts/$test.sh" "$root/tests/"; done
	cp "$here/lib.sh" "$root/lib/guest.sh"
	cp "$here"/lib-*.sh "$root/lib/"
	cp "$here/init" "$root/init"
	chmod +x "$root/init"
	[ ! -x "$beside/prepare.sh" ] || "$beside/prepare.sh" "$1" "$2" "$root"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$3/initrd.gz"
	rm -rf "$root"
}

# emulate VMLINUZ DIR ARCHITECTURE: replaces the shell by qemu, so that killing the shell ends qemu. Words of the
# command line that the kernel does not know become init's environment.
emulate() {
	# With a thread for each CPU, qemu before 8.1 (deba78709a) sometimes loses a breakpoint with which the kernel
	# patches itself. If an option is given twice, the last one counts. On a busy host too few interrupts come while the
	# kernel of x86-64 tries its timer, and it panics.
	case $3 in
	amd64) set -- "$@" qemu-system-x86_64 "ttyS0 no_timer_check" ;;
	arm64) set -- "$@" "qemu-system-aarch64 -machine virt -cpu cortex-a76" ttyAMA0 ;;
	esac
	# shellcheck disable=SC2086 # one word per option
	exec $4 -accel tcg,thread=single -smp 2 -m 2048 -nographic -no-reboot \
		-kernel "$1" -initrd "$2/initrd.gz" \
		-append "console=$5 panic=-1 log_buf_len=4M printk.devkmsg=on SILENCE=$silence" \
		-drive "file=$2/out.img,format=raw,if=virtio" ${GUEST_QEMU:-} >>"$2/log" 2>&1 </dev/null
}

# guard PID LOG: ends the process when its log has been silent for too long.
guard() {
	allowed=$boot_silence
	while sleep 2 && kill -0 "$1" 2>/dev/null; do
		! grep -aq '^GUEST begun' "$2" || allowed=$guest_silence
		quiet=$(($(date +%s) - $(stat -c %Y "$2")))
		[ $quiet -ge $allowed ] || continue
		echo "GUEST ended: silent for $quiet s" >>"$2"
		kill "$1"
		return
	done
}

# boot KERNEL DIR ARCHITECTURE: boots it and waits for its end.
boot() {
	rm -f "$2/out.img"
	truncate -s 1G "$2/out.img"
	# An emulated kernel sometimes hangs before init prints anything.
	for try in 1 2 3; do
		: >"$2/log"
		emulate "$cache/guest/$1/vmlinuz" "$2" "$3" &
		qemu=$!
		guard "$qemu" "$2/log" &
		guard=$!
		wait "$qemu" || true
		kill "$guard" 2>/dev/null || true
		if grep -aq '^GUEST begun' "$2/log"; then break; fi
		echo "guest: $1: did not boot, try $try" >&2
	done
	rm -rf "$2/out"
	mkdir "$2/out"
	tar -C "$2/out" -xf "$2/out.img" 2>/dev/null || true
	rm -f "$2/out.img"
}

tests=${GUEST_TESTS:-$(cd "$scripts" && printf '%s\n' *.sh | sed 's/\.sh$//')}

# share NUMBER: prints the tests of the kernel with this number, from 0 on. Of two kernels, one takes the first, the fourth, the fifth …
share() {
	# shellcheck disable=SC2086 # one word per test
	printf '%s\n' $tests | awk -v n="$count" -v at="${GUEST_SPLIT:+$((($1 + GUEST_SPLIT) % count))}" '
		{ turn = (NR - 1) % (2 * n) }
		at == "" || turn == at || turn == 2 * n - 1 - at'
}

# run KERNEL DIR ARCHITECTURE: runs the tests in one kernel; several run at once.
run() {
	rm -f "$2/passed"
	start=$(date +%s)
	boot "$1" "$2" "$3"
	passed=$(tr -d '\r' <"$2/log" | grep -c '^GUEST ok') || true
	asked=$(echo "$mine" | wc -w)
	good=$([ "$passed" -ne "$asked" ] || echo yes)
	{
		echo "== $1, $set ($(cat "$cache/guest/$1/package"), $(($(date +%s) - start)) s)"
		tr -d '\r' <"$2/log" | sed -n '/^STEP/d; /^GUEST/,$p'
		echo "$passed of $asked tests passed; $2/log"
		[ ! -x "$beside/check.sh" ] || "$beside/check.sh" "$2/out" || good=
	} >"$2/report" 2>&1
	[ -z "$good" ] || touch "$2/passed"
}

# Only one run at a time may use the kernels' folders.
mkdir -p "$cache/guest"
exec 9>"$cache/guest/lock"
flock 9

# The wanted lines of `kernels`.
chosen=$cache/guest/chosen
while read -r kernel suite target arch; do
	case $kernel in '' | '#'*) continue ;; esac
	case " $wish " in *" $kernel "* | *" $target "*) echo "$kernel $suite ${arch:-amd64}" ;; esac
done <"$here/kernels" >"$chosen"
count=$(wc -l <"$chosen")

# A test keeps one CPU busy, seldom two, so one guest for each CPU is fastest.
kernels=
under_way=0
while read -r kernel suite arch; do
	dir=$cache/guest/$kernel/$set
	mine=$(share $under_way)
	mkdir -p "$dir"
	fetch "$kernel" "$suite" "$arch" </dev/null
	make_initrd "$kernel" "$suite" "$dir" "$arch"
	run "$kernel" "$dir" "$arch" </dev/null 9>&- &
	kernels="$kernels $kernel"
	under_way=$((under_way + 1))
	[ $((under_way % jobs)) -ne 0 ] || wait
done <"$chosen"
wait

failed=0
for kernel in $kernels; do
	cat "$cache/guest/$kernel/$set/report"
	[ -e "$cache/guest/$kernel/$set/passed" ] || failed=1
done
[ -n "$kernels" ] || { echo "guest: no such kernel: $wish" >&2; exit 1; }
exit $failed
