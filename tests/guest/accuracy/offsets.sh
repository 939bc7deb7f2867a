#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Writes where the fields of a kernel's structures are that the truth reads, for kernels whose kprobe events do not find them by
# their types: shell assignments FIELD=OFFSET, computed by the compiler from Debian's headers. Needs root for chroot, and
# that kernel-patches/test/module.sh has fetched the headers.
# usage: offsets.sh KERNEL TO
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/mostrace
root=$cache/guest-headers/$1
package=$(cat "$cache/guest/$1/package")
rm -rf "$root/offsets"
mkdir -p "$root/offsets"
cat >"$root/offsets/offsets.c" <<'END'
#include <linux/blkdev.h>
#include <linux/buffer_head.h>
#include <linux/fs.h>
#include <linux/jbd2.h>
#include <linux/mm.h>

#define TELL(name, type, field) asm volatile("\n.ascii \"@" #name "=%c0@\"" : : "i" (offsetof(type, field)))

void tell(void)
{
	TELL(h_transaction, handle_t, h_transaction);
	TELL(t_tid, transaction_t, t_tid);
	TELL(t_journal, transaction_t, t_journal);
	TELL(j_fs_dev, journal_t, j_fs_dev);
	TELL(b_bdev, struct buffer_head, b_bdev);
	TELL(b_blocknr, struct buffer_head, b_blocknr);
	TELL(bd_dev, struct block_device, bd_dev);
	TELL(ki_filp, struct kiocb, ki_filp);
	TELL(f_inode, struct file, f_inode);
	TELL(i_sb, struct inode, i_sb);
	TELL(i_ino, struct inode, i_ino);
	TELL(s_dev, struct super_block, s_dev);
	TELL(host, struct address_space, host);
	TELL(vma, struct vm_fault, vma);
	TELL(vm_file, struct vm_area_struct, vm_file);
}
END
echo 'obj-m := offsets.o' >"$root/offsets/Kbuild"
# shellcheck disable=SC2016
unshare -m sh -c 'mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && LC_ALL=C exec nice chroot "$@"' "$root" "$root" \
	make -C "/usr/src/linux-headers-${package#linux-image-}" M=/offsets offsets.s >"$root/offsets/log" 2>&1 || {
	cat "$root/offsets/log" >&2
	exit 1
}
grep -o '@[a-z_]*=[0-9]*@' "$root/offsets/offsets.s" | tr -d @ >"$2"
