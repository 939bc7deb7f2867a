/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The owner of a bio's pages: a file of the page cache, a file under direct IO, the block device's own pages (a
 * filesystem's metadata), or a jbd2 block.
 */
#ifndef MOSTRACE_OWNER_BPF_H
#define MOSTRACE_OWNER_BPF_H

#include "direct.bpf.h"
#include "journal.bpf.h"

/*
 * True if the kernel hides its addresses (kptr_restrict): then the function that ends a bio is not known, and the pages
 * of direct IO look like those of the page cache.
 */
const volatile bool blind;

/* This is a function of its own so that its stack is not in use while pages are walked. */
static __noinline bool is_of_journal(struct work *w, __u32 slot)
{
	struct bio_device device;
	struct buffer_head *bh;
	__u64 start;

	find_device(&w->ascent.window, &device, &w->ascent.root);
	start = buffer_start(w, &device);
	w->buffer = bh = bio_buffer(w, start);
	if (!bh)
		return false;
	find_contents(w, bh);
	return journal_copy(w, slot, bh, start) || journal_header(w, bh);
}

/* Fills in the process entry's fields on the owner, and makes the file and dirtier entries. */
static __always_inline void find_owner(struct work *w, __u32 slot, bool looped)
{
	struct mostrace_process *p = &w->process;
	int direct = direct_owner(w, slot);

	if (direct != NOT_DIRECT)
		p->origin = direct;
	else if (is_raw_direct(&w->ascent.window, &w->ascent.root))
		p->origin = MOSTRACE_ORIGIN_RAW;
	else if (is_of_journal(w, slot))
		p->origin = MOSTRACE_ORIGIN_JOURNAL;
	else if (blind)
		p->origin = MOSTRACE_ORIGIN_UNKNOWN;
	else
		p->origin = looped ? walk_pages(slot) : walk_pages_unrolled(slot);
}

#endif
