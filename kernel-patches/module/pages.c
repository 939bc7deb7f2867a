// SPDX-License-Identifier: GPL-2.0-only
/* A bio's pages, one after the other, and the runs of files and of dirtiers that they make. */
#include <linux/kernel.h>
#include <linux/magic.h>
#include "compat.h"
#include "internal.h"

#define PAGES_MAX 8192

/* f2fs's node_ino and meta_ino, as mkfs.f2fs writes them. */
#define F2FS_NODE_INO 1
#define F2FS_META_INO 2
/* Of i_generation in struct f2fs_inode. */
#define F2FS_INODE_GENERATION 68
/* <linux/f2fs_fs.h>: (4096 - 24 of the footer) / 4. */
#define F2FS_NIDS_PER_BLOCK 1018

/* struct node_footer of <linux/f2fs_fs.h>: what the last bytes of a node say of it. */
struct footer {
	__le32 nid;
	__le32 ino;
	__le32 flag;
	__le32 cp_ver[2];
	__le32 next_blkaddr;
};

enum {
	F2FS_COLD_BIT = 1,	/* not a directory's */
	F2FS_FSYNC_BIT = 2,
	F2FS_OFFSET_SHIFT = 3,	/* from here on: the node's place in its file's tree */
};

/* The inode whose pages are not a file's contents, or 0. */
static u64 f2fs_own_inode(const struct inode *inode)
{
	if (inode->i_sb->s_magic != F2FS_SUPER_MAGIC)
		return 0;
	return inode->i_ino == F2FS_NODE_INO || inode->i_ino == F2FS_META_INO ?
	       inode->i_ino : 0;
}

/* Whether the node at this place of a tree points to data: IS_DNODE of fs/f2fs/node.h. */
static bool is_direct_node(u32 place)
{
	const u32 first = 6 + 2 * F2FS_NIDS_PER_BLOCK;

	if (place == U32_MAX >> F2FS_OFFSET_SHIFT)
		return true;	/* extended attributes */
	if (place == 3 || place == 4 + F2FS_NIDS_PER_BLOCK ||
	    place == 5 + 2 * F2FS_NIDS_PER_BLOCK)
		return false;
	return place < first || (place - first) % (F2FS_NIDS_PER_BLOCK + 1);
}

static u8 what_node(u32 flag)
{
	if (!is_direct_node(flag >> F2FS_OFFSET_SHIFT))
		return MOSTRACE_WHAT_COLD_NODE;
	if (!(flag & F2FS_COLD_BIT))
		return MOSTRACE_WHAT_HOT_NODE;
	return flag & F2FS_FSYNC_BIT ? MOSTRACE_WHAT_FSYNC_NODE : MOSTRACE_WHAT_WARM_NODE;
}

static void read_node(struct mostrace_file *file, struct page *page, u64 nid)
{
	char *block = mostrace_map_page(page);
	struct footer footer;
	__le32 generation;

	if (mostrace_peek(&footer, (struct footer *)(block + PAGE_SIZE - sizeof(footer))) &&
	    le32_to_cpu(footer.nid) == nid) {
		file->ino = le32_to_cpu(footer.ino);
		file->what = what_node(le32_to_cpu(footer.flag));
		/* Where the block is the inode itself. */
		if (footer.nid == footer.ino &&
		    mostrace_peek(&generation, (__le32 *)(block + F2FS_INODE_GENERATION))) {
			file->generation = le32_to_cpu(generation);
			file->head.flags &= ~MOSTRACE_NO_GENERATION;
		}
	}
	mostrace_unmap_page(block);
}

static void put_node(const struct mostrace_making *m, struct page *page,
		     const struct mostrace_place *place, u64 sector)
{
	struct mostrace_file file = {
		.head = mostrace_head_of(m),
		.offset = round_down(place->offset, PAGE_SIZE),
		.s_dev = place->inode->i_sb->s_dev,
		.origin = MOSTRACE_ORIGIN_NODE,
		.what = MOSTRACE_WHAT_NODE,
	};

	file.head.type = MOSTRACE_FILE;
	file.head.size = sizeof(file);
	file.head.sector = sector;
	file.head.bytes = PAGE_SIZE;
	file.head.flags = MOSTRACE_NO_GENERATION;
	read_node(&file, page, place->offset >> PAGE_SHIFT);
	mostrace_put(&file.head);
}

/* Where a page is in the page cache, if it is. */
void mostrace_locate(struct page *page, struct mostrace_place *place)
{
	struct address_space *mapping = mostrace_page_mapping(page);

	place->page = page;
	place->mapped = mapping;
	place->inode = mostrace_mapping_inode(mapping);
	place->offset = mostrace_page_index(page) << PAGE_SHIFT;
}

/* A page of a file that is being written back, if the number is such a page's address. */
static struct page *as_page(unsigned long value)
{
	struct page *page = (struct page *)value;
	struct address_space *mapping;

	/* Page structs are apart from other objects, which a private field may point to. */
	if (IS_ENABLED(CONFIG_SPARSEMEM_VMEMMAP) && virt_addr_valid(page))
		return NULL;
	if (!value || value & 3 || !mostrace_peek(&mapping, &page->mapping) ||
	    !mostrace_mapping_inode(mapping))
		return NULL;
	return PageWriteback(page) ? page : NULL;
}

/*
 * Locates a page; for a bounce page (fscrypt's ciphertext) the page of the file
 * that it stands for. It has no mapping, and that page in its private field.
 */
static void locate_behind(struct page *page, struct mostrace_place *place)
{
	struct page *other;

	mostrace_locate(page, place);
	if (place->mapped || PageSlab(page))
		return;
	other = as_page(page_private(page));
	if (other)
		mostrace_locate(other, place);
}

struct page *mostrace_first_page(const struct bio *bio)
{
	const struct bio_vec *bvec = &bio->bi_io_vec[bio->bi_iter.bi_idx];

	return bvec->bv_page + ((bvec->bv_offset + bio->bi_iter.bi_bvec_done) >> PAGE_SHIFT);
}

/* A bvec may span pages of different owners. */
struct walk {
	const struct mostrace_making *m;
	const struct bio_vec *bvec;
	u32 done;	/* bytes of *bvec already walked */
	u32 left;	/* bytes of the bio still to walk */
	u64 sector;
	struct mostrace_run run;
	u64 queued_ns;	/* the bio */
	struct mostrace_dirtier dirtier;
};

static void close_run(struct walk *w)
{
	if (w->run.bytes)
		mostrace_put_run(w->m, &w->run);
	w->run.bytes = 0;
}

static void open_run(struct walk *w, const struct mostrace_place *place)
{
	w->run.inode = place->inode;
	w->run.offset = place->offset;
	w->run.sector = w->sector;
}

static void close_dirtier(struct walk *w)
{
	if (w->dirtier.head.bytes)
		mostrace_put(&w->dirtier.head);
	w->dirtier.head.bytes = 0;
}

static void open_dirtier(struct walk *w, const struct mostrace_task *who)
{
	w->dirtier = (struct mostrace_dirtier){
		.head = mostrace_head_of(w->m),
		.dirty_ns = who->time_ns,
		.pid = who->pid,
		.tgid = who->tgid,
		.uid = who->uid,
	};
	w->dirtier.head.type = MOSTRACE_DIRTIER;
	w->dirtier.head.size = sizeof(w->dirtier);
	w->dirtier.head.sector = w->sector;
	w->dirtier.head.bytes = 0;
	memcpy(w->dirtier.comm, who->comm, sizeof(who->comm));
}

static void step_dirtier(struct walk *w, struct page *page, u32 chunk)
{
	struct mostrace_task who;

	if (!op_is_write(bio_op(w->m->bio)))
		return;
	if (!mostrace_dirtier_of(mostrace_head(page), w->queued_ns, &who)) {
		close_dirtier(w);
		return;
	}
	if (w->dirtier.pid != who.pid)
		close_dirtier(w);
	if (!w->dirtier.head.bytes)
		open_dirtier(w, &who);
	w->dirtier.head.bytes += chunk;
}

static u8 origin_of(const struct mostrace_place *place)
{
	if (!place->inode)
		return MOSTRACE_ORIGIN_UNKNOWN;
	switch (f2fs_own_inode(place->inode)) {
	case F2FS_NODE_INO:
		return MOSTRACE_ORIGIN_NODE;
	case F2FS_META_INO:
		return MOSTRACE_ORIGIN_META;
	}
	return mostrace_is_bdev(place->inode) ? MOSTRACE_ORIGIN_BDEV : MOSTRACE_ORIGIN_FILE;
}

/* Walks one page; returns its origin. */
static u8 step_page(struct walk *w)
{
	u32 at = w->bvec->bv_offset + w->done;
	u32 chunk = min3((u32)(PAGE_SIZE - offset_in_page(at)), w->bvec->bv_len - w->done,
			 w->left);
	struct page *page = w->bvec->bv_page + (at >> PAGE_SHIFT);
	struct mostrace_place place;
	u8 origin;

	locate_behind(page, &place);
	place.offset += offset_in_page(at);
	origin = origin_of(&place);
	if (w->run.inode != place.inode || w->run.offset + w->run.bytes != place.offset)
		close_run(w);
	if (origin == MOSTRACE_ORIGIN_NODE)
		put_node(w->m, page, &place, w->sector);
	if (origin == MOSTRACE_ORIGIN_FILE) {
		if (!w->run.bytes)
			open_run(w, &place);
		w->run.bytes += chunk;
	}
	step_dirtier(w, place.page, chunk);
	w->done += chunk;
	w->left -= chunk;
	w->sector += chunk >> 9;
	return origin;
}

/* Makes the file entries of a page-cache bio; returns the origin of its first page. */
u8 mostrace_walk_pages(const struct mostrace_making *m, u64 queued_ns)
{
	const struct bio *bio = m->bio;
	struct walk w = {
		.m = m,
		.bvec = &bio->bi_io_vec[bio->bi_iter.bi_idx],
		.done = bio->bi_iter.bi_bvec_done,
		.left = bio->bi_iter.bi_size,
		.sector = bio->bi_iter.bi_sector,
		.run.origin = MOSTRACE_ORIGIN_FILE,
		.queued_ns = queued_ns,
	};
	u8 first = MOSTRACE_ORIGIN_UNKNOWN, origin;
	int i;

	for (i = 0; i < PAGES_MAX && w.left; i++) {
		if (w.done >= w.bvec->bv_len) {
			w.bvec++;
			w.done = 0;
			if (!w.bvec->bv_len)
				break;
		}
		origin = step_page(&w);
		if (!i)
			first = origin;
	}
	close_run(&w);
	close_dirtier(&w);
	if (w.left)
		mostrace_count(MOSTRACE_LOST_PAGES_CUT);
	return first;
}
