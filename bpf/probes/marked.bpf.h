/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ext4 does within a handle: the inodes that it marks dirty, the names that it removes, the blocks that it frees. They say
 * which file a handle and a call are for.
 */
#ifndef MOSTRACE_MARKED_BPF_H
#define MOSTRACE_MARKED_BPF_H

#include "handle.bpf.h"
#include "written.bpf.h"

/* Records the file that a rename moves. It is marked dirty before a file that it replaces; folders are marked too. */
static __always_inline int tell_moved(struct inode *inode)
{
	struct call *call = current_call();

	if (call && call->entry.kind == MOSTRACE_CALL_RENAME && !call->entry.ino &&
	    (LOAD(inode, i_mode) & S_IFMT) != S_IFDIR)
		tell_inode(&call->entry, inode);
	return 0;
}

/*
 * Records the file that a rename replaces and whose last name it removes: ext4 marks it dirty then. The file lives on
 * as long as it is open, and whoever closes it last frees its blocks. What else the call marks dirty without a name is
 * being freed, and comes after it.
 */
static __always_inline void tell_replaced(struct inode *inode)
{
	struct call *call = current_call();

	if (!call || call->replaced.ino || LOAD(inode, i_nlink))
		return;
	call->replaced.ino = inode_ino(inode);
	call->replaced.generation = LOAD(inode, i_generation);
	call->replaced.s_dev = LOAD(inode, i_sb, s_dev);
}

/* ext4 marks an inode dirty. */
static __always_inline int mark_inode(struct inode *inode)
{
	struct handle *h;

	if (!is_traced_filesystem(LOAD(inode, i_sb, s_dev)))
		return 0;
	h = current_handle();
	if (!h)
		return 0;
	tell_handle_inode(&h->entry, inode);
	if (h->entry.call != MOSTRACE_CALL_RENAME)
		return 0;
	tell_replaced(inode);
	return tell_moved(inode);
}

/* ext4 removes a name. */
static __always_inline int tell_unlinked(struct dentry *dentry)
{
	struct call *call = current_call();
	struct inode *inode;

	if (!call)
		return 0;
	inode = BPF_CORE_READ(dentry, d_inode);
	tell_inode(&call->entry, inode);
	if (is_traced_filesystem(call->entry.s_dev))
		name_called(inode, dentry);
	return 0;
}

/* ext4 frees a block that the journal may have a copy of. */
static __always_inline int forget_block(void)
{
	struct handle *h = current_handle();

	if (h)
		h->entry.head.flags |= MOSTRACE_HANDLE_FORGOT;
	return 0;
}

#endif
