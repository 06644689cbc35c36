/* crash.c - see crash.h. Only system calls: what it calls must not count as the program's. */
#include "tests/faults/crash.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_MAX 64
#define NAMES_MAX 64
#define BLOCK	  4096u
#define ROOM	  ((size_t)16 << 20) /* of the copy of a file */

struct file {
	dev_t dev;
	ino_t ino;
	int fd; /* our own */
	uint8_t *old;
	size_t old_bytes;
};

struct removed {
	char name[512];
	int fd; /* O_PATH, to link it again */
};

static struct {
	bool on;
	uint64_t seed;
	const char *folder;
	struct file files[FILES_MAX];
	size_t file_count;
	struct removed removed[NAMES_MAX];
	size_t removed_count;
} state;

/* splitmix64 */
static uint64_t choose(void)
{
	uint64_t z = state.seed += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static void give_up(const char *why)
{
	syscall(SYS_write, STDERR_FILENO, why, strlen(why));
	abort();
}

void crash_begin(uint64_t seed, const char *folder)
{
	state.seed = seed;
	state.folder = folder;
	state.on = true;
}

/* Where fd is in the folder: a regular file. */
static bool is_ours(int fd, struct stat *st)
{
	char link[40], name[512];
	ssize_t n;

	if (fstat(fd, st) || !S_ISREG(st->st_mode))
		return false;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof name - 1);
	if (n <= 0)
		return false;
	name[n] = 0;
	return strncmp(name, state.folder, strlen(state.folder)) == 0;
}

static struct file *find(const struct stat *st)
{
	for (size_t i = 0; i < state.file_count; i++)
		if (state.files[i].dev == st->st_dev && state.files[i].ino == st->st_ino)
			return &state.files[i];
	return NULL;
}

static void remember(struct file *f)
{
	struct stat st;

	if (fstat(f->fd, &st) || (size_t)st.st_size > ROOM)
		give_up("crash.c: no room\n");
	f->old_bytes = (size_t)st.st_size;
	if (syscall(SYS_pread64, f->fd, f->old, f->old_bytes, 0) != (ssize_t)f->old_bytes)
		give_up("crash.c: cannot read\n");
}

void crash_before_change(int fd)
{
	struct stat st;
	struct file *f;
	char link[40];

	if (!state.on || !is_ours(fd, &st) || find(&st))
		return;
	if (state.file_count == FILES_MAX)
		give_up("crash.c: too many files\n");
	f = &state.files[state.file_count++];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	f->fd = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDWR | O_CLOEXEC, 0);
	f->old = (uint8_t *)syscall(SYS_mmap, NULL, ROOM, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (f->fd < 0 || f->old == MAP_FAILED)
		give_up("crash.c: cannot open\n");
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	remember(f);
}

void crash_synced(int fd)
{
	struct stat st;
	struct file *f;

	if (!state.on || fstat(fd, &st))
		return;
	if (S_ISDIR(st.st_mode)) {
		for (size_t i = 0; i < state.removed_count; i++)
			syscall(SYS_close, state.removed[i].fd);
		state.removed_count = 0;
		return;
	}
	f = find(&st);
	if (f)
		remember(f);
}

void crash_before_unlink(const char *name)
{
	struct removed *r;
	int fd;

	if (!state.on || strncmp(name, state.folder, strlen(state.folder)) != 0)
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (state.removed_count == NAMES_MAX)
		give_up("crash.c: too many names\n");
	r = &state.removed[state.removed_count++];
	snprintf(r->name, sizeof r->name, "%s", name);
	r->fd = fd;
}

static void lose_block(const struct file *f, size_t at, const uint8_t *now, size_t now_bytes)
{
	uint8_t old[BLOCK] = {0};
	size_t have = at < f->old_bytes ? f->old_bytes - at : 0;

	memcpy(old, f->old + at, have < BLOCK ? have : BLOCK);
	if (memcmp(old, now, BLOCK) == 0)
		return;
	switch (choose() % 4) {
	case 0: return;
	case 1: break;
	case 2: memcpy(old, now, BLOCK / 2); break;
	default: memset(old, 0, sizeof old); break;
	}
	syscall(SYS_pwrite64, f->fd, old, now_bytes, at);
}

static void lose(const struct file *f)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return;
	for (size_t at = 0; at < (size_t)st.st_size; at += BLOCK) {
		uint8_t now[BLOCK] = {0};
		ssize_t n = syscall(SYS_pread64, f->fd, now, sizeof now, at);

		if (n > 0)
			lose_block(f, at, now, (size_t)n);
	}
	if ((size_t)st.st_size != f->old_bytes && choose() % 2)
		syscall(SYS_ftruncate, f->fd, f->old_bytes);
}

/*
 * A file's name again, where its removal was not synchronised. Files of a folder are removed in order, so
 * from some removal on all are undone.
 */
static void restore_names(void)
{
	size_t from = state.removed_count ? choose() % (state.removed_count + 1) : 0;

	for (size_t i = from; i < state.removed_count; i++) {
		struct stat st;
		const char *name = state.removed[i].name;
		uint8_t bytes[BLOCK];
		off_t at = 0;
		ssize_t n;
		int fd;

		if (lstat(name, &st) == 0)
			continue;
		/* A file without a name cannot get one again: a copy does. */
		fd = (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		while (fd >= 0 && (n = syscall(SYS_pread64, state.removed[i].fd, bytes, BLOCK, at)) > 0) {
			syscall(SYS_pwrite64, fd, bytes, n, at);
			at += n;
		}
		if (fd >= 0)
			syscall(SYS_close, fd);
	}
}

void crash_now(void)
{
	for (size_t i = 0; i < state.file_count; i++)
		lose(&state.files[i]);
	restore_names();
}
