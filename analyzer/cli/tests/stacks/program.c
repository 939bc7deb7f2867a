/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes two files by two ways, each three functions deep, and a third file by two functions that change its mode too, and prints for
 * each write the functions that glibc finds by unwinding (.eh_frame), innermost first. It makes its calls itself: the C library may
 * have no frame pointers.
 *
 * program LETTER PICTURE DIARY
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOT_INLINE __attribute__((noinline, noclone))
#define ROUNDS 3

static char block[65536];

static inline __attribute__((always_inline)) long enter(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x8 __asm__("x8") = number;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
	return x0;
#else
	return syscall(number, a, b, c);
#endif
}

static void tell(int bytes)
{
	void *at[64];
	int depth = backtrace(at, 64);
	Dl_info found;

	printf("%d", bytes);
	for (int i = 0; i < depth; i++) {
		/* The call is ahead of where it returns to. */
		if (dladdr((char *)at[i] - 1, &found) && found.dli_sname)
			printf(" %s", found.dli_sname);
	}
	printf("\n");
}

NOT_INLINE void store(int file, int bytes)
{
	tell(bytes);
	if (enter(SYS_write, file, (long)block, bytes) != bytes || enter(SYS_fsync, file, 0, 0))
		abort();
	__asm__ volatile("");
}

NOT_INLINE void save_letter(int file)
{
	store(file, 8192);
	__asm__ volatile("");
}

NOT_INLINE void save_picture(int file)
{
	store(file, 65536);
	__asm__ volatile("");
}

NOT_INLINE void begin_page(int file)
{
	tell(4096);
	if (enter(SYS_write, file, (long)block, 4096) != 4096 || enter(SYS_fchmod, file, 0640, 0))
		abort();
	__asm__ volatile("");
}

NOT_INLINE void end_page(int file)
{
	tell(4096);
	if (enter(SYS_write, file, (long)block, 4096) != 4096 || enter(SYS_fchmod, file, 0600, 0))
		abort();
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	int letter, picture, diary;

	if (argc != 4)
		return 2;
	letter = open(argv[1], O_CREAT | O_WRONLY, 0600);
	picture = open(argv[2], O_CREAT | O_WRONLY, 0600);
	diary = open(argv[3], O_CREAT | O_WRONLY, 0600);
	memset(block, 'x', sizeof(block));
	for (int round = 0; round < ROUNDS; round++) {
		save_letter(letter);
		save_picture(picture);
	}
	begin_page(diary);
	end_page(diary);
	fsync(diary);
	/* The recorder finds the program's files while it runs. */
	sleep(1);
	return 0;
}
