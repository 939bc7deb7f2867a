# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by every test in the guest. A test fails when a command of it does.
set -eu
. /lib/lib-age.sh
. /lib/lib-causes.sh
. /lib/lib-map.sh

# fresh_ext4 MIB [MKE2FS-OPTION…]: a mounted ext4 on $loop at $mnt, its image disk.img. With `-- OPTIONS` at the end,
# mount options. Of one filesystem at a time.
fresh_ext4() {
	fresh ext4 "/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0" "$@"
}

# fresh_f2fs MIB [MKFS.F2FS-OPTION…] [-- OPTIONS]: the same with f2fs.
fresh_f2fs() {
	fresh f2fs "/usr/local/bin/mkfs.f2fs -q -f" "$@"
}

# fresh_vfat MIB [MKFS.VFAT-OPTION…] [-- OPTIONS]: the same with FAT.
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

# mount_image FILE: at $mnt, through $loop, with $type and $mount_options.
mount_image() {
	loop=$(losetup -f)
	losetup "$loop" "$1"
	mnt=$PWD/mnt
	mkdir -p "$mnt"
	mount -t "$type" -o "$mount_options" "$loop" "$mnt"
}

# unmount: leaves the image as the filesystem left it.
unmount() {
	umount "$mnt"
	losetup -d "$loop"
}

# remove: unmounts, and gives the memory back.
remove() {
	unmount
	rm -f disk.img
}

fail() {
	echo "failed: $*"
	exit 1
}

# info TEXT: a line for whoever reads the results.
info() {
	echo "info $*"
}

# step WORDS: what comes next, to the console at once: a sign of life, and where a guest hangs.
step() {
	echo "$*" >/tmp/step
	echo "STEP $*" >/dev/ttyS0
}

# column NAME: its number in the CSV header on stdin.
column() {
	head -n 1 | tr , '\n' | grep -nx "$1" | cut -d: -f1
}

# check_bundle BUNDLE: kept for the host as TEST-BUNDLE; nothing lost, the kernel's counters do not differ, every byte has a
# process entry, the groupings have the same sum.
check_bundle() {
	step "check $1"
	cp -r "$1" "/tmp/out/$(basename "$PWD")-$1"
	# From 7.x on a probe can be preempted, and the kernel skips those that come meanwhile: it says how many. One of them
	# may be a completion's.
	skipped=nothing
	case $(uname -r) in [789].*) skipped='probe_misses\|completions' ;; esac
	! grep -A 20 '"losses"' "$1/manifest.json" | sed '/}/q' | grep -E ': [1-9]' | grep -v "$skipped" || fail "$1: losses"
	differs=$(mostrace analyze "$1" | grep -E '^(DIFFERS|INTERFERED)') || true
	[ -z "$differs" ] || [ "$skipped" != nothing ] || fail "$1: $differs"
	mostrace events "$1" --format csv >events.csv
	bytes=$(column bytes <events.csv)
	stage=$(column stage <events.csv)
	awk -F, -v b="$bytes" -v s="$stage" 'NR > 1 && $b > 0 && $s == ""' events.csv >rows.csv
	[ ! -s rows.csv ] || fail "$1: $(wc -l <rows.csv) rows without a process entry:
$(head -n 12 rows.csv)"
	op=$(column op <events.csv)
	# The tables have the bytes of discards in a column of their own.
	total=$(awk -F, -v b="$bytes" -v o="$op" 'NR > 1 && $o != "discard" { n += $b } END { print n }' events.csv)
	[ "$total" -gt 0 ] || fail "$1: no bytes"
	for by in class role process; do
		mostrace analyze "$1" --by "$by" --format csv >table.csv
		at=$(column bytes <table.csv)
		sum=$(awk -F, -v b="$at" 'NR > 1 { n += $b } END { print n }' table.csv)
		[ "$sum" = "$total" ] || fail "$1 by $by: $sum bytes of $total"
	done
}

# check_temporary BUNDLE SUFFIX LEAST: of what check_bundle left in events.csv, every write to *SUFFIX has a name that was
# seen live, and is data or, on f2fs, a node; of data there are LEAST or more.
check_temporary() {
	awk -F, -v s="$2\$" '$8 ~ s' events.csv >temporary.csv
	data=$(grep -c ",data,[^,]*$2," temporary.csv) || true
	[ "$data" -ge "$3" ] || fail "$1: $data writes to *$2, expected $3"
	grep -v ',live,' temporary.csv >strange.csv || true
	[ ! -s strange.csv ] || fail "$1: $(wc -l <strange.csv) of $(wc -l <temporary.csv) writes to *$2 not named live:
$(head -n 5 strange.csv)"
	kind=$(column kind <events.csv)
	awk -F, -v s="$2\$" -v k="$kind" '$4 > 0 && $8 ~ s && $7 != "data" && $k !~ /node$/' events.csv >strange.csv
	[ ! -s strange.csv ] || fail "$1: $(wc -l <strange.csv) blocks of *$2 called what they are not:
$(head -n 5 strange.csv)"
}

# check_kinds BUNDLE KIND…: each has writes.
check_kinds() {
	bundle=$1
	shift
	mostrace analyze "$bundle" --by kind --format csv >kinds.csv
	at=$(column write_bytes <kinds.csv)
	for kind in "$@"; do
		awk -F, -v k="$kind" -v b="$at" '$1 == k && $b > 0 { found = 1 } END { exit !found }' kinds.csv ||
			fail "$bundle: no writes of kind $kind: $(cut -d, -f1,"$at" kinds.csv | tr '\n' ' ')"
	done
}

# numbered_files: whether the probes know a file by the number that the map has. FAT's is in the types of its module,
# which 5.10 does not give; there only those files have a name whose name was asked for.
numbered_files() {
	[ "$type" != vfat ] || [ -e /sys/kernel/btf/fat ]
}

# every_source: SQLite through each source of block events, which all have to tell the same of its files.
every_source() {
	for source in blktrace ftrace bpf; do
		step "record by $source"
		mostrace record -d "$loop" -o "$source.most" --source "$source" --sync -- \
			mostrace workload sqlite --transactions 50 --overwrite "$mnt/test.db"
		check_bundle "$source.most"
		check_temporary "$source.most" test.db-journal 100
		mostrace analyze "$source.most" --by role,class --format csv >table.csv
		bytes=$(column write_bytes <table.csv)
		grep -E '^(db|rollback_journal),data,' table.csv | cut -d, -f1,"$bytes" | sort >"$source.roles"
		roles=1
		! numbered_files || roles=2
		[ "$(wc -l <"$source.roles")" -eq "$roles" ] || fail "$source: $(cat table.csv)"
		cmp "$source.roles" blktrace.roles || fail "$source and blktrace differ: $(cat "$source.roles" blktrace.roles)"
	done
}
