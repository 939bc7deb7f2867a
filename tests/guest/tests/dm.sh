# SPDX-License-Identifier: MIT OR Apache-2.0
# Below device mapper: the disk under dm-linear, dm-crypt and a logical volume is traced. The writers of files above are
# known as they are without device mapper.
export DM_DISABLE_UDEV=1

# over NAME TABLE: makes the mapped device $upper on the disk $loop; LOWER in the table stands for the disk.
over() {
	truncate -s 160M disk.img
	loop=$(losetup -f)
	losetup "$loop" disk.img
	case $1 in
	lvm)
		lvm pvcreate -q -y "$loop"
		lvm vgcreate -q group "$loop"
		lvm lvcreate -q -y -W n -Z n -L 140M -n volume group
		upper=/dev/mapper/group-volume
		;;
	*)
		echo "$2" | sed "s|LOWER|$loop|" | dmsetup create "$1"
		upper=/dev/mapper/$1
		;;
	esac
}

under() {
	umount "$mnt"
	if [ "$1" = lvm ]; then lvm vgchange -q -a n group; else dmsetup remove "$1"; fi
	losetup -d "$loop"
	rm -f disk.img
}

writeback_off

# run NAME TYPE JOURNAL SUFFIX: runs SQLite on $mnt while the disk below is traced.
run() {
	bundle=$1-$2-$3.most
	step "$bundle"
	mostrace record -d "$loop" -o "$bundle" --source blktrace --files all --no-snapshot -- \
		sh -c "mostrace workload sqlite --transactions 30 --journal $3 $mnt/$3.db && sync"
	check_bundle "$bundle"
	check_temporary "$bundle" "$3.db$4" 30
	# No task between the filesystem and the disk may be taken for the writer of a file or a journal. (f2fs's
	# checkpoint thread writes nodes of files.)
	awk -F, -v c="$(column comm <events.csv)" -v p="$(column path <events.csv)" -v k="$(column kind <events.csv)" '
		NR == 1 { next }
		$p ~ /[.]db/ && $k == "regular" && $c !~ /^mostrace/ { print }
		$k ~ /^(descriptor|metadata_copy|commit)$/ && $c !~ /^jbd2/ { print }' events.csv >strange.csv
	[ ! -s strange.csv ] || fail "$bundle: $(wc -l <strange.csv) rows by another: $(head -n 5 strange.csv)"
	check_named "$bundle"
}

# check_named BUNDLE: in its events.csv, somebody wrote each row.
check_named() {
	awk -F, -v b="$(column bytes <events.csv)" -v c="$(column comm <events.csv)" '
		NR > 1 && $b > 0 && $c == ""' events.csv >strange.csv
	[ ! -s strange.csv ] || fail "$1: $(wc -l <strange.csv) rows of nobody: $(head -n 5 strange.csv)"
}

# plain NAME TYPE: does the same by plain tracepoints, which tell who queued a bio of the mapped device, not names.
plain() {
	bundle=$1-$2-tracefs.most
	step "$bundle"
	mostrace record -d "$loop" -o "$bundle" --source tracefs --entries tracefs --no-snapshot -- \
		sh -c "mostrace workload sqlite --transactions 30 $mnt/plain.db && sync"
	check_bundle "$bundle"
	check_named "$bundle"
	# What dm-crypt's thread queues is the program's and the journal's.
	awk -F, -v b="$(column bytes <events.csv)" -v c="$(column comm <events.csv)" '$b > 0 && $c ~ /^dmcrypt_write/' events.csv >strange.csv
	[ ! -s strange.csv ] || fail "$bundle: by dm-crypt's thread: $(head -n 5 strange.csv)"
}

mnt=$PWD/mnt
mkdir -p "$mnt"
key=$(printf '%064d' 7)
linear="0 300000 linear LOWER 2048"
crypt="0 300000 crypt aes-xts-plain64 $key 0 LOWER 4096"
# Before 5.11 the types of a module are not known, and with them not the bio for which device mapper made the disk's: what
# dm-crypt writes belongs to no file, and a block of the journal to no kind.
names="linear crypt lvm"
kinds="descriptor metadata_copy commit"
case $(uname -r) in
5.10.*) names="linear lvm" kinds=unmapped ;;
esac
for name in $names; do
	case $name in
	linear) table=$linear ;;
	crypt) table=$crypt ;;
	*) table='' ;;
	esac
	for type in ext4 f2fs; do
		over "$name" "$table"
		step "$type on $name"
		case $type in
		ext4) /usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0 "$upper" ;;
		f2fs) /usr/local/bin/mkfs.f2fs -q -f "$upper" >mkfs.log 2>&1 ;;
		esac
		mount -t $type -o noatime "$upper" "$mnt"
		run $name $type delete -journal
		# shellcheck disable=SC2086 # one word per kind
		[ $type != ext4 ] || check_kinds "$bundle" $kinds
		run $name $type wal -wal
		plain "$name" "$type"
		under "$name"
	done
done
