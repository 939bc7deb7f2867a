// SPDX-License-Identifier: GPL-2.0-only
/*
 * The addresses of functions, for a kernel that shows none in /proc/kallsyms. From 6.4 on (58aa2afbb1e6) a program may
 * load the address of any function in the kernel's types.
 */
#include "kernel.bpf.h"
#include "symbols.bpf.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define BIO_END(function) extern void function(struct bio *bio) __ksym __weak;
/* From 7.x on it ends the bio itself, and gets that. libbpf leaves out what is behind three underscores. */
#define BUFFER_END(function)								\
	extern void function(struct buffer_head *bh, int uptodate) __ksym __weak;	\
	extern void function##___bio(struct bio *bio) __ksym __weak;
#define WORK(function) extern void function(struct work_struct *work) __ksym __weak;

BIO_ENDS(BIO_END)
BUFFER_ENDS(BUFFER_END)
WORKS(WORK)

struct addresses found;

#define FIND(function) found.function = (__u64)&function;
#define FIND_EITHER(function)								\
	if (bpf_ksym_exists(function))							\
		FIND(function)								\
	else										\
		found.function = (__u64)&function##___bio;

SEC("syscall")
int find_addresses(void *context)
{
	BIO_ENDS(FIND)
	BUFFER_ENDS(FIND_EITHER)
	WORKS(FIND)
	return 0;
}
