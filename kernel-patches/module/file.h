/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_FILE_H
#define MOSTRACE_FILE_H

#include "making.h"

struct dentry;
struct inode;

/* A run of a bio with consecutive bytes of one file. */
struct mostrace_run {
	struct inode *inode;
	struct dentry *dentry;	/* the name used to open it; NULL: any name of the inode */
	u64 offset;
	u64 sector;
	u32 bytes;
	u8 origin;
};

void mostrace_put_run(const struct mostrace_making *m, const struct mostrace_run *run);

#endif
