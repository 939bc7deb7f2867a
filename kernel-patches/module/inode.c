// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the inode that a page belongs to, and checks whether an address is that of an inode: it is
 * accepted only if its mapping leads back to it.
 */
#include <linux/kernel.h>
#include "compat.h"
#include "inode.h"

bool mostrace_is_bdev(const struct inode *inode)
{
	return S_ISBLK(inode->i_mode);
}

/* Returns the inode of a mapping; NULL if the address is not that of a mapping. */
static struct inode *mapping_inode(struct address_space *mapping)
{
	struct address_space *its;
	struct inode *host;

	/*
	 * The low bits mark anonymous and movable pages; in tails and slabs the field has other
	 * meanings.
	 */
	if (!mapping || (unsigned long)mapping & 3 || !mostrace_peek(&host, &mapping->host))
		return NULL;
	if (!host || (unsigned long)host & 3 || !mostrace_peek(&its, &host->i_mapping))
		return NULL;
	return its == mapping || &host->i_data == mapping ? host : NULL;
}

/* Returns true if an address is that of an inode. */
bool mostrace_is_inode(struct inode *inode)
{
	struct address_space *mapping;

	return inode && !((unsigned long)inode & 3) &&
	       mostrace_peek(&mapping, &inode->i_mapping) &&
	       mapping_inode(mapping);
}

/* Returns true if the place to which a bio goes is on the device of the inode's data. */
bool mostrace_lies_at(const struct inode *inode, const struct bio *bio)
{
	struct block_device *bdev = mostrace_bdev_of(inode);
	u64 start, sectors;

	return bdev && bdev->bd_disk == mostrace_bio_disk(bio) &&
	       mostrace_bdev_range(bdev, &start, &sectors) &&
	       bio->bi_iter.bi_sector >= start && bio->bi_iter.bi_sector - start < sectors;
}

/* Finds a page's place in the page cache, if it is in the cache. */
void mostrace_locate(struct page *page, struct mostrace_place *place)
{
	struct address_space *mapping = mostrace_page_mapping(page);

	place->page = page;
	place->mapped = mapping;
	place->inode = mapping_inode(mapping);
	place->offset = mostrace_page_index(page) << PAGE_SHIFT;
}

/* Returns the page if the number is the address of a file's page that is being written back. */
static struct page *as_page(unsigned long value)
{
	struct page *page = (struct page *)value;
	struct address_space *mapping;

	/* Page structs are kept apart from other objects, to which a private field may point. */
	if (IS_ENABLED(CONFIG_SPARSEMEM_VMEMMAP) && virt_addr_valid(page))
		return NULL;
	if (!value || value & 3 || !mostrace_peek(&mapping, &page->mapping) ||
	    !mapping_inode(mapping))
		return NULL;
	return PageWriteback(page) ? page : NULL;
}

/*
 * Locates a page. For a bounce page (fscrypt's ciphertext), which has no mapping, locates the
 * file's page instead, which is in the private field.
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
