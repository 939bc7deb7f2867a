// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Prints every BPF program that is loaded: its name, runs, ns per run (while kernel.bpf_stats_enabled is 1) and bytes of
 * machine code; and every map: its name and the bytes of memory that the kernel says it takes.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int open_id(int command, unsigned int id)
{
	union bpf_attr attr = { .prog_id = id };

	return bpf(command, &attr);
}

static void get_info(int fd, void *info, unsigned int len)
{
	union bpf_attr attr = { .info = { .bpf_fd = fd, .info_len = len, .info = (unsigned long)info } };

	bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* The number that a line of a descriptor's fdinfo states. */
static unsigned long long fdinfo(int fd, const char *what)
{
	char path[64], line[256];
	unsigned long long value = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, what, strlen(what)))
			sscanf(line + strlen(what), ":%llu", &value);
	if (file)
		fclose(file);
	return value;
}

int main(void)
{
	union bpf_attr next = {};
	unsigned long long sum = 0;

	while (next.start_id = next.next_id, !bpf(BPF_PROG_GET_NEXT_ID, &next)) {
		int fd = open_id(BPF_PROG_GET_FD_BY_ID, next.next_id);
		struct bpf_prog_info info = {};

		if (fd < 0)
			continue;
		get_info(fd, &info, sizeof(info));
		printf("program %s %llu %llu %u\n", info.name, (unsigned long long)info.run_cnt,
		       (unsigned long long)(info.run_cnt ? info.run_time_ns / info.run_cnt : 0), info.jited_prog_len);
		close(fd);
	}
	memset(&next, 0, sizeof(next));
	while (next.start_id = next.next_id, !bpf(BPF_MAP_GET_NEXT_ID, &next)) {
		int fd = open_id(BPF_MAP_GET_FD_BY_ID, next.next_id);
		struct bpf_map_info info = {};
		unsigned long long bytes;

		if (fd < 0)
			continue;
		get_info(fd, &info, sizeof(info));
		bytes = fdinfo(fd, "memlock");
		sum += bytes;
		printf("map %s %llu\n", info.name, bytes);
		close(fd);
	}
	printf("maps %llu\n", sum);
	return 0;
}
