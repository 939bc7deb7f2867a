# SPDX-License-Identifier: MIT OR Apache-2.0
# The layout of a phone: /data on dm-linear over dm-crypt. The disk below is traced, by the probes and by plain
# tracepoints. The bundles go to the host.
export DM_DISABLE_UDEV=1
writeback_off
mnt=$PWD/mnt
mkdir -p "$mnt"
key=$(printf '%064d' 7)
for type in ext4 f2fs; do
	truncate -s 256M disk.img
	loop=$(losetup -f)
	losetup "$loop" disk.img
	echo "0 500000 crypt aes-xts-plain64 $key 0 $loop 4096" | dmsetup create below
	echo "0 490000 linear /dev/mapper/below 8192" | dmsetup create above
	step "$type on dm-linear over dm-crypt"
	case $type in
	ext4) /usr/local/bin/mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0 /dev/mapper/above ;;
	f2fs) make_f2fs /dev/mapper/above >mkfs.log 2>&1 ;;
	esac
	mount -t "$type" -o noatime /dev/mapper/above "$mnt"
	keep_sqlite $type-bpf --source bpf --entries bpf
	keep_sqlite $type-tracefs --source tracefs --entries tracefs
	umount "$mnt"
	dmsetup remove above
	dmsetup remove below
	losetup -d "$loop"
	rm -f disk.img
done
