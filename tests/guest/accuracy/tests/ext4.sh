# SPDX-License-Identifier: MIT OR Apache-2.0
# Records writers on ext4, while the kernel's own kprobe events trace every modification of a block of metadata, with its task
# and its transaction, and what is needed to know for whom a task works. The trace begins before the filesystem is mounted.
# compare.py compares both.

tracing=/sys/kernel/tracing
mount -t tracefs none $tracing 2>/dev/null || true
probe=$tracing/instances/truth
mkdir -p $probe

# event WORDS: adds a kprobe event.
event() {
	echo "$*" >>$tracing/kprobe_events || fail "no event: $*"
}

# From 6.5 on the kernel finds the fields by its own types. For earlier ones, offsets.sh has written where they are.
# shellcheck disable=SC1091,SC2154 # the file is made in the guest, and has these variables
if [ -e /lib/accuracy/offsets ]; then
	. /lib/accuracy/offsets
	# fields of the structures that the function's arguments point to
	tid="+$t_tid(+$h_transaction(%di)):u32"
	buffer="dev=+$bd_dev(+$b_bdev(%si)):u32 block=+$b_blocknr(%si):u64"
	journal="+$bd_dev(+$j_fs_dev(+$t_journal(+$h_transaction(%di)))):u32"
	# inode WHERE: the device and the number of the inode that a pointer at WHERE leads to.
	inode() { echo "dev=+$s_dev(+$i_sb($1)):u32 ino=+$i_ino($1):u64"; }
	revoked=%si inode=$(inode %di) converted=$(inode %si) written=$(inode "+$f_inode(+$ki_filp(%di))")
	stored=$(inode "+$f_inode(+$vm_file(+$vma(%di)))") mapped=$(inode "+$host(%di)")
else
	tid='handle->h_transaction->t_tid'
	buffer='dev=bh->b_bdev->bd_dev:u32 block=bh->b_blocknr:u64'
	journal='handle->h_transaction->t_journal->j_fs_dev->bd_dev:u32'
	inode() { echo "dev=$1->i_sb->s_dev:u32 ino=$1->i_ino:u64"; }
	revoked=blocknr inode=$(inode inode) converted=$(inode inode) written=$(inode 'iocb->ki_filp->f_inode')
	stored=$(inode 'vmf->vma->vm_file->f_inode') mapped=$(inode 'mapping->host')
fi
event "p:modify jbd2_journal_dirty_metadata tid=$tid $buffer"
event "p:forget jbd2_journal_forget tid=$tid $buffer"
event "p:revoke jbd2_journal_revoke tid=$tid dev=$journal block=$revoked:u64"
event "p:write ext4_file_write_iter $written"
event "p:store ext4_page_mkwrite $stored"
event "p:drop drop_nlink $inode"
event "p:clear clear_nlink $inode"
event "p:evict ext4_evict_inode $inode"
event 'r100:evicted ext4_evict_inode'
event "p:writeback ext4_writepages $mapped"
event 'r100:written ext4_writepages'
event "p:convert ext4_convert_unwritten_extents $converted"
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
	# shellcheck disable=SC2086 # no word, or one
	mostrace -vv record -d "$loop" -o "/tmp/out/$name.most" --source blktrace --sync $snapshot -- "$@" 2>record.err || fail "$(cat record.err)"
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
	grep 'runs skipped' record.err | while read -r line; do info "$name: $line"; done
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
