/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a bio's pages belong to: a file of the page cache, a file under direct
 * IO, the block device's own pages (a filesystem's metadata), or a jbd2 block.
 */
#ifndef MOSTRACE_OWNER_BPF_H
#define MOSTRACE_OWNER_BPF_H

#include "direct.bpf.h"
#include "journal.bpf.h"

/*
 * The kernel hides its addresses (kptr_restrict): what ends a bio is not known, and the pages of direct IO
 * look like those of the page cache.
 */
const volatile bool blind;

/* Apart, so that what it has on its stack is not there while pages are walked. */
static __noinline bool is_of_journal(struct work *w, __u32 slot)
{
	struct bio_device device;
	struct buffer_head *bh;

	find_device(&w->ascent.window, &device, &w->ascent.root);
	w->buffer = bh = bio_buffer(w, device.start);
	if (!bh)
		return false;
	find_contents(w, bh);
	return journal_copy(w, slot, bh, device.start) || journal_header(w, bh);
}

/* Fills in what the process entry says of the owner, and makes the file and dirtier entries. */
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
