# SPDX-License-Identifier: MIT OR Apache-2.0
# Every test in the guest sources this file. A test fails if one of its commands does.
set -eu
# shellcheck source=tests/guest/lib-age.sh
. /lib/lib-age.sh
# shellcheck source=tests/guest/lib-causes.sh
. /lib/lib-causes.sh
# shellcheck source=tests/guest/lib-map.sh
. /lib/lib-map.sh
# shellcheck source=tests/guest/lib-check.sh
. /lib/lib-check.sh

# fresh_ext4 MIB [MKE2FS-OPTION…] [-- OPTIONS]: mounts a new ext4 with these mount options on $loop at $mnt; its image
# is disk.img. There is one such filesystem at a time.
fresh_ext4() {
	fresh ext4 "/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0" "$@"
}

# page: prints the size of a page in bytes, AT_PAGESZ of getauxval(3).
page() {
	od -An -v -tu8 /proc/self/auxv | awk '{ for (i = 1; i < NF; i += 2) if ($i == 6) print $(i + 1) }'
}

# fresh_f2fs MIB [MKFS.F2FS-OPTION…] [-- OPTIONS]: does the same with f2fs.
fresh_f2fs() {
	fresh f2fs make_f2fs "$@"
}

# make_f2fs [MKFS.F2FS-OPTION…] FILE: makes an f2fs. Its blocks are as large as a page. Debian's mkfs.f2fs makes only blocks of 4 KiB;
# an empty filesystem of 224 MiB with blocks of 16 KiB comes from f2fs-tools' development branch (`mkfs.f2fs -b 16384 -O extra_attr,
# inode_checksum,sb_checksum,compression,quota`).
make_f2fs() {
	case $(page) in
	4096) /usr/local/bin/mkfs.f2fs -q -f "$@" ;;
	16384)
		while [ $# -gt 1 ]; do shift; done
		/usr/local/bin/zstd -dc /lib/f2fs-16k.img.zst | /usr/local/bin/dd of="$1" bs=1M iflag=fullblock status=none
		;;
	*) return 1 ;;
	esac
}

# fresh_vfat MIB [MKFS.VFAT-OPTION…] [-- OPTIONS]: does the same with FAT.
fresh_vfat() {
	fresh vfat "/usr/local/bin/mkfs.vfat" "$@"
}

# fresh TYPE MKFS MIB …
fresh() {
	type=$1 mkfs=$2 mib=$3 mount_options=noatime
	shift 3
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		mkfs="$mkfs $1"
		shift
	done
	[ $# -eq 0 ] || mount_options=noatime,$2
	step "$mkfs"
	truncate -s "${mib}M" disk.img
	$mkfs disk.img >mkfs.log 2>&1 || fail "$mkfs: $(cat mkfs.log)"
	mount_image disk.img
}

# writeback_off: until the test ends, the kernel writes nothing back by itself, as it would on a slow machine what has been dirty for long.
writeback_off() {
	echo 0 >/proc/sys/vm/dirty_writeback_centisecs
}

# mount_image FILE: mounts the image at $mnt, through $loop, with $type and $mount_options.
mount_image() {
	loop=$(losetup -f)
	losetup "$loop" "$1"
	mnt=$PWD/mnt
	mkdir -p "$mnt"
	mount -t "$type" -o "$mount_options" "$loop" "$mnt"
}

# lossless BUNDLE COMMAND…: runs the command, which makes this recording, and runs it again if the recording lost something, as it may on
# a busy machine, or where the kernel skips probes (from 7.2 on): ten times at most.
lossless() {
	lossy=$1 tries=1
	shift
	"$@"
	while [ -n "$(losses "$lossy")" ] && [ $tries -lt 10 ]; do
		tries=$((tries + 1))
		rm -rf "$lossy"
		"$@"
	done
}

# unmount: unmounts and keeps the image.
unmount() {
	umount "$mnt"
	losetup -d "$loop"
}

# remove: unmounts, and removes the image to free its memory.
remove() {
	unmount
	rm -f disk.img
}

# info TEXT: prints a line for the reader of the results.
info() {
	echo "info $*"
}

# step WORDS: announces the next step on the console at once: a sign of life, and the place if a guest hangs.
step() {
	echo "$*" >/tmp/step
	echo "STEP $*" >/dev/console
}

# keep BUNDLE: copies it for the host, as TEST-BUNDLE.
keep() {
	cp -r "$1" "/tmp/out/$(basename "$PWD")-$1"
}

# check_bundle BUNDLE: copies it for the host as TEST-BUNDLE, and checks it.
check_bundle() {
	step "check $1"
	keep "$1"
	check_rows "$1"
}

# every_source: records SQLite by each source of block events; all must report the same about its files.
every_source() {
	for source in blktrace tracefs bpf; do
		step "record by $source"
		lossless "$source.most" mostrace record -d "$loop" -o "$source.most" --source "$source" --sync -- \
			mostrace workload sqlite --transactions 50 --overwrite "$mnt/test.db"
		check_bundle "$source.most"
		check_temporary "$source.most" test.db-journal 100
		mostrace analyze "$source.most" --by role,class --format csv >table.csv
		bytes=$(column write_bytes <table.csv)
		grep -E '^(db|rollback_journal),data,' table.csv | cut -d, -f1,"$bytes" | sort >"$source.roles"
		[ "$(wc -l <"$source.roles")" -eq 2 ] || fail "$source: $(cat table.csv)"
		cmp "$source.roles" blktrace.roles || fail "$source and blktrace differ: $(cat "$source.roles" blktrace.roles)"
	done
}

# keep_sqlite NAME OPTION…: records SQLite with a rollback journal and with a WAL, or those of $journals, with these options, for the host,
# together with the answer that is given here.
keep_sqlite() {
	name=$1
	shift
	for journal in ${journals:-delete wal}; do
		step "record $journal by $name"
		lossless "$journal-$name.most" mostrace record -d "$loop" -o "$journal-$name.most" "$@" --sync -- \
			mostrace workload sqlite --transactions 50 --overwrite --journal "$journal" "$mnt/$journal.db"
		keep "$journal-$name.most"
		mostrace analyze "$journal-$name.most" | sed '/^next: /d' >"/tmp/out/$(basename "$PWD")-$journal-$name.answer"
	done
}

# keep_every_source: records SQLite by each source of block events, with entries from the probes; with plain tracepoints
# for events, the entries come from these too.
keep_every_source() {
	for source in blktrace bpf; do keep_sqlite $source --source $source --entries bpf; done
	keep_sqlite tracefs --source tracefs --entries tracefs
}
