/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_F2FS_H
#define MOSTRACE_F2FS_H

#include "inode.h"
#include "making.h"

u8 mostrace_f2fs_origin(const struct inode *inode);
void mostrace_put_node(const struct mostrace_making *m, struct page *page,
		       const struct mostrace_place *place, u64 sector);

#endif
