// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two processes read one open /dev/mostrace, each into a file of its own, until the first is ended.
 * usage: share FILE FILE
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* This is more than all rings hold, so that each read returns whole entries. */
static char all[1 << 20];

int main(int argc, char **argv)
{
	int from = open("/dev/mostrace", O_RDONLY), to;
	ssize_t n;

	if (from < 0 || argc != 3) {
		fprintf(stderr, "share: %s\n", strerror(errno));
		return 1;
	}
	if (fork()) {
		to = open(argv[1], O_CREAT | O_WRONLY | O_TRUNC, 0600);
	} else {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		to = open(argv[2], O_CREAT | O_WRONLY | O_TRUNC, 0600);
	}
	while ((n = read(from, all, sizeof(all))) > 0)
		if (write(to, all, n) != n)
			break;
	fprintf(stderr, "share: %s\n", strerror(errno));
	return 1;
}
