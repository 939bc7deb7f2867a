// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Prints the number of entries in what was read from /dev/mostrace: all of them, or those of one type. Exits with 1 if
 * they are not whole.
 * usage: count STREAM [TYPE]
 * STREAM begins with the stream's header, unless it is what a second reader read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path, const char *what, long at)
{
	fprintf(stderr, "count: %s: %s, at %ld\n", path, what, at);
	exit(1);
}

static size_t read_whole(FILE *file, void *to, size_t size, const char *path)
{
	size_t n = fread(to, 1, size, file);

	if (n && n < size)
		fail(path, "ends within an entry", ftell(file));
	return n;
}

/* struct mostrace_stream and struct mostrace_entry, the shortest of what can follow, have the same size. */
int main(int argc, char **argv)
{
	unsigned short head[20], rest[32768], type, size;
	FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
	int wanted = argc > 2 ? atoi(argv[2]) : 0;
	long count = 0;

	if (!file)
		fail(argc > 1 ? argv[1] : "usage", strerror(errno), 0);
	while (read_whole(file, head, sizeof(head), argv[1])) {
		if (!memcmp(head, "MOSTDEV\n", 8))
			continue;
		type = head[0];
		size = head[1];
		if (size < 72 || size % 8 || !type || type == 3 || type > 4)
			fail(argv[1], "no entry", ftell(file) - (long)sizeof(head));
		if (!read_whole(file, rest, size - sizeof(head), argv[1]))
			fail(argv[1], "ends within an entry", ftell(file));
		count += !wanted || type == wanted;
	}
	printf("%ld\n", count);
	return 0;
}
