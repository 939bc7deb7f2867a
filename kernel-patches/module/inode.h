/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MOSTRACE_INODE_H
#define MOSTRACE_INODE_H

#include <linux/types.h>

struct address_space;
struct bio;
struct inode;
struct page;

/* The place of a page. */
struct mostrace_place {
	struct page *page;	/* in the page cache; for a bounce page the file's page */
	struct inode *inode;	/* the inode whose page cache the page is in, or NULL */
	u64 offset;		/* offset of the page in the inode, in bytes */
	bool mapped;		/* it is in a page cache or anonymous */
};

bool mostrace_is_bdev(const struct inode *inode);
bool mostrace_is_inode(struct inode *inode);
bool mostrace_lies_at(const struct inode *inode, const struct bio *bio);
void mostrace_locate(struct page *page, struct mostrace_place *place);
void mostrace_locate_behind(struct page *page, struct mostrace_place *place);

#endif
