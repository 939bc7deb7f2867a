// SPDX-License-Identifier: GPL-2.0-only
/*
 * The function that ends a bio's IO shows which code made the bio. These functions are static or
 * not exported, and a module cannot look up an address by name (kallsyms_lookup_name is not
 * exported from 5.7 on), but it can look up the name of an address. This is done once for every
 * pointer; the result is kept in a small table that is read without a lock.
 */
#include <linux/blk_types.h>
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include "endio.h"

static const struct {
	const char *name;
	enum mostrace_endio is;
} known[] = {
	{ "bio_chain_endio", MOSTRACE_ENDIO_CHAIN },
	{ "iomap_dio_bio_end_io", MOSTRACE_ENDIO_IOMAP },
	{ "f2fs_dio_end_bio", MOSTRACE_ENDIO_F2FS_COUNTED },
	{ "f2fs_dio_end_io", MOSTRACE_ENDIO_F2FS_DIO },
	{ "dio_bio_end_io", MOSTRACE_ENDIO_DIO },
	{ "dio_bio_end_aio", MOSTRACE_ENDIO_DIO },
	{ "blkdev_bio_end_io", MOSTRACE_ENDIO_BLKDEV },
	{ "blkdev_bio_end_io_simple", MOSTRACE_ENDIO_BLKDEV },
	{ "blkdev_bio_end_io_async", MOSTRACE_ENDIO_BLKDEV },
	{ "submit_bio_wait_endio", MOSTRACE_ENDIO_WAIT },
	{ "bio_wait_end_io", MOSTRACE_ENDIO_WAIT },
	{ "journal_end_buffer_io_sync", MOSTRACE_ENDIO_JBD2 },
	{ "clone_endio", MOSTRACE_ENDIO_DM },
	{ "crypt_endio", MOSTRACE_ENDIO_DM_CRYPT },
	{ "blk_throtl_dispatch_work_fn", MOSTRACE_WORK_THROTTLE },
	{ "wb_workfn", MOSTRACE_WORK_FLUSHER },
};

#define SLOT_BITS 7
#define PROBES 8

static struct slot {
	void *fn;
	enum mostrace_endio is;
} slots[1 << SLOT_BITS];

/* Held while the slots are changed; the buffer is too large for a stack. */
static DEFINE_RAW_SPINLOCK(lock);
static char symbol[KSYM_SYMBOL_LEN];

static struct slot *slot_of(const void *fn, int i)
{
	return &slots[(hash_ptr(fn, SLOT_BITS) + i) & ((1 << SLOT_BITS) - 1)];
}

static enum mostrace_endio cached(const void *fn)
{
	struct slot *slot;
	enum mostrace_endio is;
	int i;

	for (i = 0; i < PROBES; i++) {
		slot = slot_of(fn, i);
		/* Pairs with keep: `is` was set before. */
		if (smp_load_acquire(&slot->fn) != fn)
			continue;
		is = READ_ONCE(slot->is);
		/* Pairs with forget_all: the slot may have been given to another function. */
		smp_rmb();
		if (READ_ONCE(slot->fn) == fn)
			return is;
	}
	return 0;
}

static void keep(void *fn, enum mostrace_endio is)
{
	struct slot *slot;
	int i;

	for (i = 0; i < PROBES; i++) {
		slot = slot_of(fn, i);
		if (slot->fn == fn)
			return;
		if (slot->fn)
			continue;
		/* Pairs with cached: fn is seen as NULL before the kind changes. */
		smp_wmb();
		WRITE_ONCE(slot->is, is);
		/* Pairs with cached. */
		smp_store_release(&slot->fn, fn);
		return;
	}
}

/* A compiler may append a suffix (.llvm.123, .cfi_jt, .isra.0, $12ab), and kallsyms appends the module. */
static enum mostrace_endio resolve(void *fn)
{
	int i;

	sprint_symbol_no_offset(symbol, (unsigned long)fn);
	symbol[strcspn(symbol, ".$ ")] = '\0';
	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(symbol, known[i].name))
			return known[i].is;
	return MOSTRACE_ENDIO_OTHER;
}

enum mostrace_endio mostrace_endio_of(void *end_io)
{
	enum mostrace_endio is;
	unsigned long flags;

	if (!end_io)
		return MOSTRACE_ENDIO_OTHER;
	is = cached(end_io);
	if (is)
		return is;
	raw_spin_lock_irqsave(&lock, flags);
	is = resolve(end_io);
	keep(end_io, is);
	raw_spin_unlock_irqrestore(&lock, flags);
	return is;
}

#define CHAIN_MAX 4

/* Returns the bio that the filesystem made: the bi_private of a split part is its parent. */
struct bio *mostrace_root(struct bio *bio)
{
	int i;

	for (i = 0; i < CHAIN_MAX; i++) {
		if (mostrace_endio_of(bio->bi_end_io) != MOSTRACE_ENDIO_CHAIN)
			break;
		bio = bio->bi_private;
	}
	return bio;
}

/*
 * If a module was unloaded, another one may be loaded at its addresses, which then belong to other
 * functions.
 */
static void forget_all(void)
{
	unsigned long flags;
	int i;

	raw_spin_lock_irqsave(&lock, flags);
	for (i = 0; i < ARRAY_SIZE(slots); i++)
		WRITE_ONCE(slots[i].fn, NULL);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static int module_changed(struct notifier_block *nb, unsigned long state, void *mod)
{
	if (state == MODULE_STATE_COMING || state == MODULE_STATE_GOING)
		forget_all();
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = { .notifier_call = module_changed };

int mostrace_endio_init(void)
{
	return register_module_notifier(&module_notifier);
}

void mostrace_endio_exit(void)
{
	unregister_module_notifier(&module_notifier);
}
