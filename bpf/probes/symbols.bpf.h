/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's functions that are recognised by their addresses, by what they take. */
#ifndef MOSTRACE_SYMBOLS_BPF_H
#define MOSTRACE_SYMBOLS_BPF_H

#include "kernel.bpf.h"

/* (bio) */
#define BIO_ENDS(DO)									\
	DO(bio_chain_endio)								\
	DO(iomap_dio_bio_end_io)							\
	DO(blkdev_bio_end_io)								\
	DO(blkdev_bio_end_io_simple)							\
	DO(blkdev_bio_end_io_async)							\
	DO(submit_bio_wait_endio)							\
	DO(bio_wait_end_io)								\
	DO(dio_bio_end_io)								\
	DO(dio_bio_end_aio)								\
	DO(f2fs_dio_end_io)								\
	DO(f2fs_dio_end_bio)								\
	DO(clone_endio)									\
	DO(crypt_endio)									\
	DO(blk_crypto_fallback_encrypt_endio)

/* (bh, uptodate) */
#define BUFFER_ENDS(DO)									\
	DO(journal_end_buffer_io_sync)

/* (work) */
#define WORKS(DO)									\
	DO(blk_throtl_dispatch_work_fn)							\
	DO(wb_workfn)

#define ADDRESS(symbol) __u64 symbol;

/* Each is 0 if the symbol does not exist, or if its address is not known. */
struct addresses {
	BIO_ENDS(ADDRESS)
	BUFFER_ENDS(ADDRESS)
	WORKS(ADDRESS)
	ADDRESS(page_offset_base)
	ADDRESS(vmemmap_base)
};

#endif
