/* SPDX-License-Identifier: GPL-2.0-only */
/* What the module's files share. Global names begin with mostrace_. */
#ifndef MOSTRACE_INTERNAL_H
#define MOSTRACE_INTERNAL_H

#include <linux/types.h>
#include <linux/blk_types.h>
#include "mostrace.h"

struct address_space;
struct block_device;
struct buffer_head;
struct dentry;
struct file;
struct gendisk;
struct inode;
struct page;
struct request;

/* Counters; the names in sysfs are those of the manifest's losses. */
enum mostrace_count {
	MOSTRACE_COUNT_ENTRIES,
	MOSTRACE_LOST_ENTRIES_RING,
	MOSTRACE_LOST_SUBMITTERS,
	MOSTRACE_LOST_BIOS_CUT,
	MOSTRACE_LOST_PAGES_CUT,
	MOSTRACE_LOST_DIRTIERS,
	MOSTRACE_COUNTS,
};

/* ring.c */
extern unsigned int mostrace_ring_bytes;
int mostrace_rings_alloc(void);
void mostrace_rings_free(void);
void mostrace_put(struct mostrace_entry *entry);
bool mostrace_rings_filled(void);
size_t mostrace_take(void *to, size_t room);
void mostrace_count(enum mostrace_count what);
u64 mostrace_counted(enum mostrace_count what);

/* target.c: a disk or partition that is recorded. */
struct mostrace_target {
	dev_t disk;
	dev_t dev;
	u64 start;	/* first sector on the disk */
	u64 end;	/* one past the last */
};

bool mostrace_any_target(void);
const struct mostrace_target *mostrace_target_of_bio(const struct bio *bio);
const struct mostrace_target *mostrace_target_of_rq(struct request *rq);
/* These go by the device alone. */
bool mostrace_device_of_bio_wanted(const struct bio *bio);
bool mostrace_inode_wanted(const struct inode *inode);

/* device.c: held while a reader has the device open, or a parameter changes. */
bool mostrace_claim(void);
void mostrace_release(void);

/* names.c */
void mostrace_names_init(void);
bool mostrace_name_wanted(const char *name, size_t len);

/* endio.c: what a bio's or buffer's end_io tells of its owner. */
enum mostrace_endio {
	MOSTRACE_ENDIO_OTHER = 1,
	MOSTRACE_ENDIO_CHAIN,		/* a split part: bi_private is the parent */
	MOSTRACE_ENDIO_IOMAP,		/* bi_private is a struct iomap_dio */
	MOSTRACE_ENDIO_F2FS_COUNTED,	/* ... a bio_iostat_ctx with iomap's inside */
	MOSTRACE_ENDIO_F2FS_DIO,	/* ... a struct that begins with the inode */
	MOSTRACE_ENDIO_DIO,		/* ... a struct dio of fs/direct-io.c */
	MOSTRACE_ENDIO_BLKDEV,		/* direct IO of the device itself */
	MOSTRACE_ENDIO_WAIT,		/* submit_bio_wait: anyone's */
	MOSTRACE_ENDIO_JBD2,		/* jbd2's commit */
};

int mostrace_endio_init(void);
void mostrace_endio_exit(void);
enum mostrace_endio mostrace_endio_of(void *end_io);

/* submitter.c */
struct mostrace_task {
	u64 time_ns;	/* when it did what it is remembered for */
	u32 pid;
	u32 tgid;
	u32 uid;
	char comm[MOSTRACE_COMM_LEN];
};

void mostrace_task_is_current(struct mostrace_task *task, u64 now);

struct mostrace_submitter {
	struct mostrace_task task;
	u64 sector;	/* bi_sector at Q: splits move it */
	u64 direct_pos;	/* file position of `sector` for direct IO, or MOSTRACE_NONE */
	struct file *direct_file;	/* of direct IO, or NULL; open until the IO ends */
	u8 flags;	/* enum mostrace_flags */
	bool queued;	/* else it is from block_bio_file, which comes before Q */
	bool recorded;	/* the entry was made: a later issue must not repeat it */
};

int mostrace_submitters_alloc(void);
void mostrace_submitters_free(void);
void mostrace_remember(struct bio *bio, const struct mostrace_submitter *who);
bool mostrace_recall(struct bio *bio, struct mostrace_submitter *who);
/* As recall, and marks the record; `who->recorded` is what it was before. */
bool mostrace_recall_once(struct bio *bio, struct mostrace_submitter *who);
void mostrace_forget(struct bio *bio);

/* dirtier.c */
extern bool mostrace_begin_told;	/* the kernel calls mostrace_begin_write */
int mostrace_dirtiers_alloc(void);
void mostrace_dirtiers_free(void);
void mostrace_dirty(struct page *head, const struct address_space *mapping);
void mostrace_begin_write(struct page *head);
bool mostrace_dirtier_of(struct page *head, u64 queued_ns, struct mostrace_task *who);

/* A bio while its entries are made. */
struct mostrace_making {
	const struct mostrace_target *target;
	struct bio *bio;
	u64 now;
	u8 stage;
};

/* The head of an entry of it; the sectors are the whole bio's. */
static inline struct mostrace_entry mostrace_head_of(const struct mostrace_making *m)
{
	return (struct mostrace_entry){
		.dev = m->target->disk,
		.time_ns = m->now,
		.sector = m->bio->bi_iter.bi_sector,
		.bytes = m->bio->bi_iter.bi_size,
		.stage = m->stage,
	};
}

/* file.c: a run of a bio that holds consecutive bytes of one file. */
struct mostrace_run {
	struct inode *inode;
	struct dentry *dentry;	/* the name used to open it; NULL: any of the inode's */
	u64 offset;
	u64 sector;
	u32 bytes;
	u8 origin;
};

bool mostrace_is_bdev(const struct inode *inode);
bool mostrace_is_inode(struct inode *inode);
struct inode *mostrace_mapping_inode(struct address_space *mapping);
void mostrace_put_run(const struct mostrace_making *m, const struct mostrace_run *run);

/* pages.c */
struct mostrace_place {
	struct page *page;	/* in the page cache; of a bounce page the one it stands for */
	struct inode *inode;	/* of the page cache that the page is in, or NULL */
	u64 offset;		/* of the page in it, in bytes */
	bool mapped;		/* it is in a page cache or anonymous */
};

void mostrace_locate(struct page *page, struct mostrace_place *place);
struct page *mostrace_first_page(const struct bio *bio);
u8 mostrace_walk_pages(const struct mostrace_making *m, u64 queued_ns);

/* owner.c */
struct bio *mostrace_root(struct bio *bio);
bool mostrace_is_direct(const struct bio *bio);
void mostrace_find_direct(struct bio *bio, struct mostrace_submitter *who);
void mostrace_find_owner(const struct mostrace_making *m,
			 const struct mostrace_submitter *who,
			 struct mostrace_process *p);

/* probe.c */
int mostrace_probes_find(void);
int mostrace_probes_start(void);
void mostrace_probes_stop(void);

#endif
