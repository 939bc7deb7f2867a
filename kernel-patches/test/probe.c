// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Checks of /dev/mostrace that a shell cannot make. Prints the first fault and exits with 1.
 * usage: probe FILE
 * FILE is on the recorded filesystem, and is written to make entries.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "probe: %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void make_entries(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	need(fd >= 0 && write(fd, "x", 1) == 1 && !fsync(fd) && !close(fd), path);
}

int main(int argc, char **argv)
{
	static char all[1 << 20];
	char *volatile nowhere = (char *)8;
	size_t have = 0, at;
	unsigned short size;
	int fd = open("/dev/mostrace", O_RDONLY | O_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;
	int rounds;

	need(argc == 2 && fd >= 0, "open");
	need(poll(&p, 1, 0) == 1 && p.revents & POLLIN, "poll: the header is there");
	need(read(fd, nowhere, 4096) == -1 && errno == EFAULT, "read to a bad address: EFAULT");
	need(read(fd, all, 0) == 0, "read of nothing");
	/* Read three bytes at a time; the header must come whole. */
	for (at = 0; at < 40; at += n) {
		n = read(fd, all + at, at + 3 > 40 ? 40 - at : 3);
		need(n > 0, "header");
	}
	need(!memcmp(all, "MOSTDEV\n", 8) && all[12] == 40, "magic, header size");
	/* First come entries of what the mount still has to write. */
	for (rounds = 0; rounds < 50; rounds++) {
		while (read(fd, all, sizeof(all)) > 0)
			;
		need(errno == EAGAIN, "nothing left: EAGAIN");
		if (poll(&p, 1, 300) == 0)
			break;
	}
	need(rounds < 50, "poll: nothing to read");
	make_entries(argv[1]);
	need(poll(&p, 1, 5000) == 1 && p.revents & POLLIN, "poll: entries");
	while ((n = read(fd, all + have, 5)) > 0)
		have += n;
	need(errno == EAGAIN, "entries end: EAGAIN");
	for (at = 0; at < have; at += size) {
		memcpy(&size, all + at + 2, 2);
		need(size >= 72 && size % 8 == 0 && (all[at] == 1 || all[at] == 2 || all[at] == 4), "entries are whole");
	}
	need(at == have && have, "no half entry");
	need(lseek(fd, 0, SEEK_SET) == -1 && errno == ESPIPE, "no seeking");
	need(write(fd, all, 1) == -1, "no writing");
	return 0;
}
