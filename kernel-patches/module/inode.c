// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which inode a page belongs to, and whether an address is an inode's: it is taken
 * for one only if its mapping leads back to it.
 */
#include <linux/kernel.h>
#include "compat.h"
#include "inode.h"

bool mostrace_is_bdev(const struct inode *inode)
{
	return S_ISBLK(inode->i_mode);
}

/* The inode that a mapping is of; NULL if the address is not one's. */
static struct inode *mapping_inode(struct address_space *mapping)
{
	struct address_space *its;
	struct inode *host;

	/* Low bits mark anonymous and movable pages; tails and slabs hold other things. */
	if (!mapping || (unsigned long)mapping & 3 || !mostrace_peek(&host, &mapping->host))
		return NULL;
	if (!host || (unsigned long)host & 3 || !mostrace_peek(&its, &host->i_mapping))
		return NULL;
	return its == mapping || &host->i_data == mapping ? host : NULL;
}

/* Whether an address is an inode's. */
bool mostrace_is_inode(struct inode *inode)
{
	struct address_space *mapping;

	return inode && !((unsigned long)inode & 3) &&
	       mostrace_peek(&mapping, &inode->i_mapping) &&
	       mapping_inode(mapping);
}

/* Whether the device of an inode's data has the place that a bio goes to. */
bool mostrace_lies_at(const struct inode *inode, const struct bio *bio)
{
	struct block_device *bdev = mostrace_bdev_of(inode);
	u64 start, sectors;

	return bdev && bdev->bd_disk == mostrace_bio_disk(bio) &&
	       mostrace_bdev_range(bdev, &start, &sectors) &&
	       bio->bi_iter.bi_sector >= start && bio->bi_iter.bi_sector - start < sectors;
}

/* Where a page is in the page cache, if it is. */
void mostrace_locate(struct page *page, struct mostrace_place *place)
{
	struct address_space *mapping = mostrace_page_mapping(page);

	place->page = page;
	place->mapped = mapping;
	place->inode = mapping_inode(mapping);
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
	    !mapping_inode(mapping))
		return NULL;
	return PageWriteback(page) ? page : NULL;
}

/*
 * Locates a page; for a bounce page (fscrypt's ciphertext) the page of the file
 * that it stands for. It has no mapping, and that page in its private field.
 */
void mostrace_locate_behind(struct page *page, struct mostrace_place *place)
{
	struct page *other;

	mostrace_locate(page, place);
	if (place->mapped || PageSlab(page))
		return;
	other = as_page(page_private(page));
	if (other)
		mostrace_locate(other, place);
}
