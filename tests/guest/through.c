// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A daemon of FUSE without a library: one folder of files, which are those of another folder. Two threads serve requests, each
 * one at a time, as libfuse's do.
 * usage: through FOLDER MOUNT-POINT [splice | mixed]
 * It ends when it is unmounted. With `splice`, requests come through a pipe; with `mixed`, one thread serves two at a time, if
 * there are two, and answers the last one first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER (1 << 20)
#define FILES 64
#define FIRST 2 /* the number of the first file; 1 is the folder */

static int device, folder, splices, mixes;
static char names[FILES][NAME_MAX + 1];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __u64 node_of(const char *name)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < FILES - 1 && names[i][0] && strcmp(names[i], name); i++)
		;
	strncpy(names[i], name, NAME_MAX);
	pthread_mutex_unlock(&lock);
	return FIRST + i;
}

static const char *name_of(__u64 node)
{
	return node < FIRST ? "." : names[node - FIRST];
}

static int tell_attr(__u64 node, struct fuse_attr *attr)
{
	struct stat st;

	if (fstatat(folder, name_of(node), &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	*attr = (struct fuse_attr){
		.ino = node, .size = st.st_size, .blocks = st.st_blocks, .mode = st.st_mode | 0777,
		.nlink = st.st_nlink, .uid = st.st_uid, .gid = st.st_gid, .blksize = 4096,
	};
	return 0;
}

static int tell_entry(const char *name, struct fuse_entry_out *entry)
{
	memset(entry, 0, sizeof(*entry));
	entry->nodeid = node_of(name);
	return tell_attr(entry->nodeid, &entry->attr);
}

static int open_file(__u64 node, int flags, uint64_t *handle)
{
	int fd = openat(folder, name_of(node), flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW), 0666);

	*handle = fd;
	return fd < 0 ? -errno : 0;
}

static int write_all(struct fuse_write_in *in, struct fuse_write_out *out)
{
	ssize_t done = pwrite(in->fh, in + 1, in->size, in->offset);

	out->size = done;
	return done < 0 ? -errno : 0;
}

static int create(struct fuse_create_in *in, char *out)
{
	struct fuse_open_out *opened = (void *)(out + sizeof(struct fuse_entry_out));
	const char *name = (void *)(in + 1);
	int fd = openat(folder, name, in->flags | O_CREAT, in->mode);

	memset(opened, 0, sizeof(*opened));
	opened->fh = fd;
	return fd < 0 ? -errno : tell_entry(name, (void *)out);
}

/* Serves one request; returns the length of the answer's body, or a negative error. */
static int serve(struct fuse_in_header *header, char *out)
{
	void *in = header + 1;
	struct fuse_attr_out *attr = (void *)out;
	struct fuse_open_out *opened = (void *)out;
	struct fuse_init_in *init = in;
	struct fuse_setattr_in *set = in;
	int error = 0;

	switch (header->opcode) {
	case FUSE_INIT:
		*(struct fuse_init_out *)out = (struct fuse_init_out){
			.major = FUSE_KERNEL_VERSION, .minor = init->minor < 31 ? init->minor : 31,
			.max_write = 1 << 17, .max_readahead = init->max_readahead,
		};
		return sizeof(struct fuse_init_out);
	case FUSE_LOOKUP:
		error = tell_entry(in, (void *)out);
		return error ?: (int)sizeof(struct fuse_entry_out);
	case FUSE_SETATTR:
		if (set->valid & FATTR_SIZE) {
			int fd = openat(folder, name_of(header->nodeid), O_WRONLY);

			if (fd < 0 || ftruncate(fd, set->size))
				error = -errno;
			close(fd);
		}
		/* fall through */
	case FUSE_GETATTR:
		memset(attr, 0, sizeof(*attr));
		error = error ?: tell_attr(header->nodeid, &attr->attr);
		return error ?: (int)sizeof(*attr);
	case FUSE_OPEN:
		memset(opened, 0, sizeof(*opened));
		error = open_file(header->nodeid, ((struct fuse_open_in *)in)->flags, &opened->fh);
		return error ?: (int)sizeof(*opened);
	case FUSE_OPENDIR:
		memset(opened, 0, sizeof(*opened));
		return sizeof(*opened);
	case FUSE_CREATE:
		error = create(in, out);
		return error ?: (int)(sizeof(struct fuse_entry_out) + sizeof(*opened));
	case FUSE_WRITE:
		memset(out, 0, sizeof(struct fuse_write_out));
		error = write_all(in, (void *)out);
		return error ?: (int)sizeof(struct fuse_write_out);
	case FUSE_FSYNC:
		return fsync(((struct fuse_fsync_in *)in)->fh) ? -errno : 0;
	case FUSE_RELEASE:
		close(((struct fuse_release_in *)in)->fh);
		return 0;
	case FUSE_UNLINK:
		return unlinkat(folder, in, 0) ? -errno : 0;
	case FUSE_FLUSH:
	case FUSE_RELEASEDIR:
		return 0;
	}
	return -ENOSYS;
}

static ssize_t receive(int *pipe, char *request)
{
	ssize_t bytes;

	if (!splices)
		return read(device, request, BUFFER);
	bytes = splice(device, 0, pipe[1], 0, BUFFER, 0);
	return bytes > 0 ? read(pipe[0], request, bytes) : bytes;
}

struct served {
	char *request, *out;
	int done;
};

/* Reads a request; returns 1 if it needs an answer, and -1 if there are no more. */
static int take(int *pipe, struct served *served)
{
	struct fuse_in_header *header = (void *)served->request;

	if (receive(pipe, served->request) <= 0)
		return errno == EINTR || errno == ENOENT ? 0 : -1;
	return header->opcode != FUSE_FORGET && header->opcode != FUSE_BATCH_FORGET;
}

static void answer(struct served *served)
{
	struct fuse_in_header *header = (void *)served->request;
	int bytes = served->done < 0 ? 0 : served->done;
	struct fuse_out_header answer = {
		.unique = header->unique, .error = served->done < 0 ? served->done : 0, .len = sizeof(answer) + bytes,
	};
	struct iovec parts[2] = { { &answer, sizeof(answer) }, { served->out, bytes } };

	if (writev(device, parts, 2) < 0)
		perror("answer");
}

static void *work(void *unused)
{
	struct served served[2];
	struct pollfd more = { .fd = device, .events = POLLIN };
	int pipe[2], taken, n, i;

	for (i = 0; i < 2; i++)
		served[i] = (struct served){ malloc(BUFFER), malloc(4096), 0 };
	if (pipe2(pipe, 0) || fcntl(pipe[0], F_SETPIPE_SZ, BUFFER) < 0)
		exit(1);
	while ((taken = take(pipe, &served[0])) >= 0) {
		if (!taken)
			continue;
		n = mixes && poll(&more, 1, 20) > 0 && take(pipe, &served[1]) > 0 ? 2 : 1;
		for (i = 0; i < n; i++)
			served[i].done = serve((void *)served[i].request, served[i].out);
		while (n--)
			answer(&served[n]);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t other;
	char options[128];

	if (argc < 3)
		return 2;
	splices = argc > 3 && !strcmp(argv[3], "splice");
	mixes = argc > 3 && !strcmp(argv[3], "mixed");
	umask(0);
	folder = open(argv[1], O_DIRECTORY | O_RDONLY);
	device = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
	if (folder < 0 || device < 0 || mount("through", argv[2], "fuse", 0, options)) {
		perror(argv[2]);
		return 1;
	}
	if (!mixes && pthread_create(&other, 0, work, 0))
		return 1;
	work(0);
	if (!mixes)
		pthread_join(other, 0);
	return 0;
}
