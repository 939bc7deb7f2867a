# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by every test in the guest. A test fails when a command of it does.
set -eu
. /lib/lib-age.sh
. /lib/lib-causes.sh
. /lib/lib-map.sh
. /lib/lib-check.sh

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

# info TEXT: a line for whoever reads the results.
info() {
	echo "info $*"
}

# step WORDS: what comes next, to the console at once: a sign of life, and where a guest hangs.
step() {
	echo "$*" >/tmp/step
	echo "STEP $*" >/dev/console
}

# keep BUNDLE: for the host, as TEST-BUNDLE.
keep() {
	cp -r "$1" "/tmp/out/$(basename "$PWD")-$1"
}

# check_bundle BUNDLE: kept for the host as TEST-BUNDLE, and checked.
check_bundle() {
	step "check $1"
	keep "$1"
	check_rows "$1"
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

# keep_sqlite NAME OPTION…: SQLite with a rollback journal and with a WAL, recorded with these options; for the host.
keep_sqlite() {
	name=$1
	shift
	for journal in delete wal; do
		step "record $journal by $name"
		mostrace record -d "$loop" -o "$journal-$name.most" "$@" --sync -- \
			mostrace workload sqlite --transactions 50 --overwrite --journal "$journal" "$mnt/$journal.db"
		keep "$journal-$name.most"
	done
}

# keep_every_source: by each source of block events, with entries of the probes, or of plain tracepoints where the events are of those too.
keep_every_source() {
	for source in blktrace ftrace bpf; do keep_sqlite $source --source $source --entries bpf; done
	keep_sqlite tracefs --source tracefs --entries tracefs
}
