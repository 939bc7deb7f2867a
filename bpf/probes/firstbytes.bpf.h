/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Identifies a write by its first bytes: short writes, which are headers, and writes at the beginning of a file, where
 * each of SQLite's files has a magic number. https://www.sqlite.org/fileformat2.html, 1.3, 3 and 4.
 */
#ifndef MOSTRACE_FIRSTBYTES_BPF_H
#define MOSTRACE_FIRSTBYTES_BPF_H

#include "causes.bpf.h"

/*
 * A flag of a call's head, in addition to MOSTRACE_CALL_FIRST: the call wrote the first page of an SQLite database, and
 * first_bytes holds its bytes 24 to 27 (the change counter) and 16 to 19 (the page size and the versions for writing
 * and reading).
 */
#define MOSTRACE_CALL_DATABASE 2

/* Longer writes hold pages and not headers. */
#define SHORT_WRITE 64

/* "SQLite f" as a number in memory order. */
#define SQLITE_MAGIC 0x66206574694c5153ULL
#define SQLITE_HEADER 100

struct sqlite_words {
	__u32 sizes;	/* bytes 16 to 19 */
	__u32 payload;
	__u32 counter;	/* bytes 24 to 27 */
};

static __always_inline void tell_database(struct mostrace_call *entry, char *buffer)
{
	struct sqlite_words words;

	if (bpf_probe_read_user(&words, sizeof(words), buffer + 16))
		return;
	__builtin_memcpy(entry->first_bytes, &words.counter, 4);
	__builtin_memcpy(entry->first_bytes + 4, &words.sizes, 4);
	entry->head.flags |= MOSTRACE_CALL_DATABASE;
}

static __always_inline void tell_first_bytes(struct mostrace_call *entry, char *buffer, long bytes)
{
	__u64 first;

	if (!buffer || bytes < sizeof(first) || (bytes > SHORT_WRITE && entry->offset) ||
	    bpf_probe_read_user(&first, sizeof(first), buffer))
		return;
	if (first == SQLITE_MAGIC && !entry->offset && bytes > SQLITE_HEADER) {
		tell_database(entry, buffer);
		return;
	}
	__builtin_memcpy(entry->first_bytes, &first, sizeof(first));
	entry->head.flags |= MOSTRACE_CALL_FIRST;
}

#endif
