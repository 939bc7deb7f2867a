# SPDX-License-Identifier: MIT OR Apache-2.0
# Records writers on ext4, while the kernel's own kprobe events trace every modification of a block of metadata, with its task
# and its transaction, and what is needed to know for whom a task works. The trace begins before the filesystem is mounted.
# compare.py compares both.

tracing=/sys/kernel/tracing
mount -t tracefs none $tracing 2>/dev/null || true
probe=$tracing/instances/truth
mkdir -p $probe

# event WORDS: adds a kprobe event. The kernel finds the fields by its own types, which it does from 6.5 on.
event() {
	echo "$*" >>$tracing/kprobe_events
}

if ! event 'p:modify jbd2_journal_dirty_metadata tid=handle->h_transaction->t_tid dev=bh->b_bdev->bd_dev:u32 block=bh->b_blocknr:u64' 2>/dev/null; then
	info "not run: this kernel's kprobe events do not know its types"
	exit 0
fi
event 'p:forget jbd2_journal_forget tid=handle->h_transaction->t_tid dev=bh->b_bdev->bd_dev:u32 block=bh->b_blocknr:u64'
event 'p:revoke jbd2_journal_revoke tid=handle->h_transaction->t_tid dev=handle->h_transaction->t_journal->j_fs_dev->bd_dev:u32 block=blocknr:u64'
event 'p:write ext4_file_write_iter dev=iocb->ki_filp->f_inode->i_sb->s_dev:u32 ino=iocb->ki_filp->f_inode->i_ino:u64'
event 'p:store ext4_page_mkwrite dev=vmf->vma->vm_file->f_inode->i_sb->s_dev:u32 ino=vmf->vma->vm_file->f_inode->i_ino:u64'
event 'p:drop drop_nlink dev=inode->i_sb->s_dev:u32 ino=inode->i_ino:u64'
event 'p:clear clear_nlink dev=inode->i_sb->s_dev:u32 ino=inode->i_ino:u64'
event 'p:evict ext4_evict_inode dev=inode->i_sb->s_dev:u32 ino=inode->i_ino:u64'
event 'r100:evicted ext4_evict_inode'
event 'p:writeback ext4_writepages dev=mapping->host->i_sb->s_dev:u32 ino=mapping->host->i_ino:u64'
event 'r100:written ext4_writepages'
event 'p:convert ext4_convert_unwritten_extents dev=inode->i_sb->s_dev:u32 ino=inode->i_ino:u64'
event 'r100:converted ext4_convert_unwritten_extents'
echo 16384 >$probe/buffer_size_kb
# The trace uses the recording's clock.
echo mono >$probe/trace_clock

# begin: starts the trace.
begin() {
	echo >$probe/trace
	echo 1 >$probe/events/kprobes/enable
}

# partition DEVICE: prints its number and its first sector.
partition() {
	sys=/sys/class/block/$(basename "$1")
	echo "part $(cat "$sys/dev") $(cat "$sys/start" 2>/dev/null || echo 0)"
}

# with_truth NAME BLOCK DEVICES COMMAND…: records the command, ends the trace, and leaves both. BLOCK is the block size; DEVICES
# are those of the filesystems on $loop.
with_truth() {
	name=$1 block=$2 devices=$3
	shift 3
	step "$name"
	snapshot=
	[ "$devices" = "$loop" ] || snapshot=--no-snapshot
	mostrace record -d "$loop" -o "/tmp/out/$name.most" --source blktrace --sync $snapshot -- "$@" 2>record.err || fail "$(cat record.err)"
	echo 0 >$probe/events/kprobes/enable
	grep -v '^#' $probe/trace >"/tmp/out/$name.truth"
	grep overrun $probe/per_cpu/cpu*/stats | grep -v 'overrun: 0' && fail "the truth was overrun"
	missed=$(awk '$3 > 0' $tracing/kprobe_profile)
	[ -z "$missed" ] || fail "the truth missed calls: $missed"
	{
		echo "block $block"
		for device in $devices; do partition "$device"; done
	} >"/tmp/out/$name.disk"
	info "$name: $(grep '^mostrace: causes' record.err)"
}

# try NAME BLOCK COMMAND [MKE2FS-OPTION…] [-- OPTIONS]
try() {
	name=$1 block=$2 command=$3
	shift 3
	begin
	fresh_ext4 256 -b "$block" "$@"
	# shellcheck disable=SC2086 # one word per argument
	with_truth "$name" "$block" "$loop" sh /lib/accuracy/$command
	remove
}

# Two filesystems on two partitions; the disk is recorded.
partitions() {
	truncate -s 260M disk.img
	loop=$(losetup -f)
	losetup "$loop" disk.img
	begin
	devices=
	for part in 1 2; do
		/usr/local/bin/addpart "$loop" $part $((part * 262144 - 260096)) 262144
		device=${loop}p$part
		devices="$devices $device"
		mkdir -p "part$part"
		/usr/local/bin/mke2fs -q -t ext4 -E lazy_itable_init=0 -b 4096 "$device" 2>mkfs.log || fail "$(cat mkfs.log)"
		mount -t ext4 "$device" "part$part"
	done
	with_truth partitions 4096 "$devices" sh /lib/accuracy/writers.sh 2 "$PWD/part1" "$PWD/part2"
	umount part1
	umount part2
	losetup -d "$loop"
	rm disk.img
}

try ordered-1 4096 "writers.sh 1 $PWD/mnt"
try ordered-4 4096 "writers.sh 4 $PWD/mnt"
try ordered-16 4096 "writers.sh 16 $PWD/mnt"
try journal 4096 "writers.sh 4 $PWD/mnt" -- data=journal
try small 1024 "writers.sh 4 $PWD/mnt"
try fast_commit 4096 "writers.sh 4 $PWD/mnt" -O fast_commit
try lazytime 4096 "mixed.sh $PWD/mnt" -- lazytime,strictatime
try mixed 4096 "mixed.sh $PWD/mnt" -- strictatime
try held 4096 "held.sh $PWD/mnt"
try xattrs 4096 "xattrs.sh $PWD/mnt"
try delayed 4096 "delayed.sh $PWD/mnt"
try delayed-journal 4096 "delayed.sh $PWD/mnt" -- data=journal
try restart 1024 "restart.sh $PWD/mnt" -g 512 -N 8192 -J size=1
partitions
