// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Times calls that have nothing to do with what is recorded: ns of the thread's own time for each, the median of many
 * rounds. usage: bench-tax FOLDER, a folder of a filesystem that is not recorded.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 4096

static int null, file;
static char page[PAGE];

static void call(void)
{
	syscall(SYS_getppid);
}

static void write_null(void)
{
	if (write(null, page, 1) != 1)
		err(1, "/dev/null");
}

static void read_file(void)
{
	if (pread(file, page, 512, 0) != 512)
		err(1, "pread");
}

static void write_file(void)
{
	if (pwrite(file, page, 512, 0) != 512)
		err(1, "pwrite");
}

static void move(void)
{
	static int turn;

	if (rename(turn ? "b" : "a", turn ? "a" : "b"))
		err(1, "rename");
	turn = !turn;
}

static void fill(void)
{
	for (int i = 0; i < PAGES; i++)
		if (pwrite(file, page, PAGE, (off_t)i * PAGE) != PAGE)
			err(1, "pwrite");
	if (fdatasync(file))
		err(1, "fdatasync");
}

static void evict(void)
{
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
}

static const struct {
	const char *name;
	void (*prepare)(void);
	void (*run)(void);
	int runs;	/* in a round */
	int parts;	/* that one run counts as */
	int rounds;
} measures[] = {
	{ "getppid", 0, call, 100000, 1, 41 },
	{ "write to /dev/null", 0, write_null, 50000, 1, 41 },
	{ "pread on another ext4", 0, read_file, 50000, 1, 41 },
	{ "pwrite on another ext4", 0, write_file, 30000, 1, 41 },
	{ "rename on another ext4", 0, move, 2000, 1, 21 },
	{ "a page evicted on another ext4", fill, evict, 1, PAGES, 15 },
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int count, char **words)
{
	double times[64];

	if (count != 2 || chdir(words[1]))
		errx(2, "usage: bench-tax FOLDER");
	null = open("/dev/null", O_WRONLY);
	file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (null < 0 || file < 0 || close(open("a", O_WRONLY | O_CREAT, 0600)))
		err(1, "%s", words[1]);
	fill();
	for (unsigned i = 0; i < sizeof(measures) / sizeof(*measures); i++) {
		int rounds = measures[i].rounds, runs = measures[i].runs;

		for (int round = 0; round < rounds; round++) {
			double start;

			if (measures[i].prepare)
				measures[i].prepare();
			start = now();
			for (int run = 0; run < runs; run++)
				measures[i].run();
			times[round] = (now() - start) / runs / measures[i].parts;
		}
		qsort(times, rounds, sizeof(*times), compare);
		printf("%.1f\t%s\n", times[rounds / 2], measures[i].name);
	}
	return 0;
}
