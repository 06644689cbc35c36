/*
 * test_mapped_files.c - which file's code is put for a mapping (capture/record/images.h): only of the file that
 * was mapped, as it was then; an empty image where that is not certain. Files and their times are real ones,
 * perf's clock is the system's time.
 */
#include "capture/code/regular_file.h"
#include "capture/record/images.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 0x3fffffff /* above each pid_max */
#define NS     UINT64_C(1000000000)
#define PAGE   4096u

static char file[64];

static uint64_t now_ns(const void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

/* ---- What the container has ---- */

struct image {
	uint64_t size, offset;
	uint32_t continues;
	uint8_t first; /* byte */
};

static struct image images[64];
static size_t count;
/* How many images there were when the pending records were put, the first time; 0: they were not. */
static size_t put_at;

static struct ptc_writer *w;
static struct hw_images *im;
static int fd;

static int put_records(void *arg, struct pt_error *e)
{
	(void)arg;
	return ptc_put_round(w, 1, e);
}

static struct hw_images_pending pending = {.put = put_records};

static void begin(void)
{
	struct pt_error e = {0};

	fd = memfd_create("container", MFD_CLOEXEC);
	w = ptc_writer_create(fd, NULL, 1, &e);
	im = hw_images_create(w);
	if (!w || !im)
		exit(1);
	hw_images_clock(im, now_ns, NULL);
	hw_images_pending(im, &pending);
}

static void end(void)
{
	struct pt_error e = {0};
	struct ptc_reader *r;
	struct ptc_image i;
	struct ptc_chunk c;

	check(ptc_writer_finish(w, &e) == 0, "a container");
	ptc_writer_destroy(w);
	hw_images_destroy(im);
	lseek(fd, 0, SEEK_SET);
	r = ptc_reader_create(fd, &e);
	count = put_at = 0;
	while (r && count < 64 && ptc_next(r, &c, &e) > 0) {
		if (c.type == PTC_ROUND && !put_at)
			put_at = count;
		if (c.type == PTC_IMAGE && ptc_parse_image(&c, &i, &e) == 0)
			images[count++] =
			    (struct image){i.size, i.offset, i.continues, i.size ? *i.bytes : 0};
	}
	ptc_reader_destroy(r);
	close(fd);
}

/* ---- Files ---- */

/* Written now; its time is so many seconds ago. */
static void make(const char *from, int seconds_ago)
{
	struct timespec times[2];
	char command[256];

	unlink(file);
	snprintf(command, sizeof command, "cp -L %s %s", from, file);
	if (system(command))
		exit(1);
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= seconds_ago;
	times[1] = times[0];
	utimensat(AT_FDCWD, file, times, 0);
}

/* The same file, with another content. */
static void make_in_place(const char *from)
{
	char command[256];

	snprintf(command, sizeof command, "cat %s >%s", from, file);
	if (system(command))
		exit(1);
}

/* A mapping of the file as it is, by a process that has ended, so many seconds ago. */
static struct hw_mapping mapping(int seconds_ago)
{
	unsigned long generation = 0;
	int f = open(file, O_RDONLY | O_CLOEXEC);
	struct hw_mapping m = {.pid = NOBODY,
			       .name = file,
			       .start = 0x400000,
			       .bytes = PAGE,
			       .time_ns = now_ns(NULL) - (uint64_t)seconds_ago * NS};
	struct stat st;

	if (fstat(f, &st))
		exit(1);
	m.inode = st.st_ino;
	if (ioctl(f, FS_IOC_GETVERSION, &generation) == 0)
		m.generation = (uint32_t)generation;
	close(f);
	return m;
}

static void put(const struct hw_mapping *m)
{
	struct pt_error e = {0};

	check(hw_images_mapping(im, m, &e) == 0, "a mapping");
}

static uint64_t missing(void)
{
	const char *why;

	return hw_images_missing(im, &why);
}

/* ---- Tests ---- */

static void test_times(void)
{
	struct hw_mapping m;

	begin();
	make("/bin/true", 100);
	m = mapping(50);
	put(&m);
	put(&m);
	check(missing() == 0, "a file that is older than its mapping is taken");
	m = mapping(200);
	put(&m);
	check(missing() == 1, "one that was written since is not");
	make("/bin/true", -1000);
	m = mapping(50);
	put(&m);
	check(missing() == 1, "one whose time is to come is taken");
	m.time_ns = 0;
	make("/bin/true", 50);
	put(&m);
	end();
	check(count >= 3 && images[0].size && !images[1].size && images[2].size,
	      "the code of the old file, an empty image, that of the new one");
}

static void test_tick(void)
{
	struct hw_mapping m;
	struct stat st;

	begin();
	make("/bin/true", 10);
	m = mapping(0);
	if (stat(file, &st))
		exit(1);
	/* Twice the tick, and nearly: what was seen in ptbox/mappings.sh. */
	m.time_ns =
	    (uint64_t)st.st_mtim.tv_sec * NS + (uint64_t)st.st_mtim.tv_nsec + file_time_lag_ns() * 2 / 3 - 1;
	put(&m);
	check(missing() == 1, "mapped two ticks after the file's time, its process has ended: not taken");
	m.time_ns += NS / 10;
	put(&m);
	check(missing() == 1, "mapped long after it: taken");
	end();
}

static void test_replaced(void)
{
	struct hw_mapping old, other;

	begin();
	make("/bin/true", 100);
	old = mapping(50);
	put(&old);
	check(rename(file, "/tmp/pt-mapped-files-old") == 0, "renamed");
	make("/bin/false", 100);
	other = mapping(50);
	put(&other);
	check(missing() == 0 && old.inode != other.inode, "the file, and another one of its name");
	put(&old);
	check(missing() == 1,
	      "the first one again, which cannot be read any more: its image is not the last one");
	unlink(file);
	put(&other);
	check(missing() == 2, "nor is the second one's, by then");
	unlink("/tmp/pt-mapped-files-old");
	end();
	check(count >= 3 && images[0].size && images[count - 1].size == 0, "code, then an empty image");
	check(put_at && put_at < count, "the records before it were put before another image of the name");
}

static bool rewrites;

/* Before an image is put: the file is read after that. */
static int write_meanwhile(void *arg, struct pt_error *e)
{
	(void)arg, (void)e;
	if (rewrites)
		make_in_place("/bin/false");
	rewrites = false;
	return 0;
}

/* What was read is neither what was there nor what is there now. */
static void test_written_meanwhile(void)
{
	struct hw_images_pending writes = {.put = write_meanwhile};
	struct hw_mapping m;

	begin();
	hw_images_pending(im, &writes);
	make("/bin/false", 100);
	m = mapping(50);
	put(&m);
	make("/bin/true", 90);
	m = mapping(50);
	rewrites = true;
	put(&m);
	check(!rewrites && missing() == 1, "a file that is written while it is read is not taken");
	hw_images_pending_end(im, &writes);
	end();
	check(count >= 3 && images[0].size && images[count - 1].size == 0, "an empty image is the last one");
}

/* How many images a file of that age has that is put, written again with the same size and time, and put. */
static size_t images_of_same_time(int seconds_ago)
{
	struct timespec times[2];
	struct hw_mapping m;
	struct stat st;

	begin();
	make("/bin/true", seconds_ago);
	m = mapping(0);
	m.time_ns += NS;
	put(&m);
	if (stat(file, &st))
		exit(1);
	times[0] = times[1] = st.st_mtim;
	make_in_place("/bin/true");
	utimensat(AT_FDCWD, file, times, 0);
	put(&m);
	end();
	return count;
}

static void test_same_time(void)
{
	size_t old = images_of_same_time(50);
	bool again = false;

	/* (That the first one is read so soon takes a machine that is not too busy.) */
	for (int i = 0; i < 100 && !again; i++)
		again = images_of_same_time(0) == 2 * old;
	check(old && again, "read when it was just written: it is read again");
}

static void test_gone(void)
{
	struct hw_mapping m;

	begin();
	make("/bin/true", 100);
	m = mapping(50);
	put(&m);
	unlink(file);
	put(&m);
	check(missing() == 0, "a file that is gone, but is the one that the container has");
	m.generation++;
	put(&m);
	check(missing() == 1, "not of another generation");
	end();
	check(put_at > 0, "records were put");
}

static void test_generation(void)
{
	struct hw_mapping m;

	begin();
	make("/bin/true", 100);
	m = mapping(50);
	if (m.generation) {
		m.generation++;
		put(&m);
		check(missing() == 1, "the inode's number was used again");
	} else {
		printf("no generations on the file system of /tmp: not tested\n");
	}
	end();
}

/* A process whose root directory is a folder of its own with the file in it, as "/program"; 0: it cannot be. */
static pid_t begin_in_root(const char *root)
{
	char command[256], done = 0;
	int ends[2];
	pid_t pid;

	snprintf(command, sizeof command, "mkdir -p %s && cp -p %s %s/program", root, file, root);
	if (system(command) || pipe2(ends, O_CLOEXEC))
		exit(1);
	pid = fork();
	if (pid == 0) {
		if (chroot(root) == 0 && write(ends[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ends[1]);
	if (read(ends[0], &done, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ends[0]);
	return pid;
}

static void test_parent(void)
{
	const char *root = "/tmp/pt-mapped-files-root";
	struct hw_mapping m;
	pid_t parent;

	begin();
	make("/bin/true", 100);
	parent = begin_in_root(root);
	if (parent) {
		char path[64];
		struct stat st;

		snprintf(path, sizeof path, "%s/program", root);
		if (stat(path, &st))
			exit(1);
		m = (struct hw_mapping){.pid = NOBODY,
					.name = "/program",
					.bytes = PAGE,
					.inode = st.st_ino,
					.time_ns = now_ns(NULL)};
		put(&m);
		check(missing() == 1, "a file in another root directory");
		hw_images_forked(im, NOBODY, parent);
		put(&m);
		check(missing() == 1, "found in that of the process's parent");
		kill(parent, SIGKILL);
		waitpid(parent, NULL, 0);
		unlink(path);
		rmdir(root);
	} else {
		printf("no process with another root directory can be made here: not tested\n");
	}
	end();
}

/* What is no ELF file: the bytes that are mapped, once. */
static void test_raw(void)
{
	char bytes[4 * PAGE];
	struct hw_mapping m;
	struct timespec times[2] = {{1000, 0}, {1000, 0}};
	int f;

	begin();
	unlink(file);
	memset(bytes, 0xc3, sizeof bytes);
	f = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (write(f, bytes, sizeof bytes - 100) != (ssize_t)sizeof bytes - 100)
		exit(1);
	close(f);
	utimensat(AT_FDCWD, file, times, 0);
	m = mapping(50);
	m.offset = (uint64_t)9 * PAGE;
	put(&m);
	check(missing() == 1, "a mapping beyond the file's end has no code");
	m.offset = PAGE;
	m.bytes = (uint64_t)2 * PAGE;
	put(&m);
	m.offset = (uint64_t)2 * PAGE;
	m.bytes = PAGE;
	put(&m);
	m.offset = (uint64_t)3 * PAGE;
	m.bytes = (uint64_t)8 * PAGE;
	put(&m);
	check(missing() == 1, "all others were read");
	end();
	check(count == 3 && !images[0].size && images[1].offset == PAGE && images[1].size == 2 * PAGE &&
		  !images[1].continues && images[2].offset == 3 * PAGE && images[2].size == PAGE - 100 &&
		  images[2].continues,
	      "two ranges of it, the second one up to the file's end");
}

/* Three pages of a file, mapped here, the first one of them at *at. It is replaced then. */
static struct hw_mapping map_and_replace(uint8_t byte, uint8_t **at)
{
	static char bytes[3 * PAGE];
	struct hw_mapping m;
	int f;

	unlink(file);
	memset(bytes, byte, sizeof bytes);
	f = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (write(f, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
		exit(1);
	*at = mmap(NULL, sizeof bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0);
	if (*at == MAP_FAILED)
		exit(1);
	m = mapping(50);
	m.pid = getpid();
	m.start = (uintptr_t)*at;
	m.bytes = sizeof bytes;
	close(f);
	make("/bin/true", 100);
	return m;
}

/* Who is not root may not open what /proc/PID/map_files has. What is mapped is read from the process. */
static void test_memory(void)
{
	uint8_t *at, *last;
	struct hw_mapping m;

	if ((getuid() == 0 && setresuid(65534, 65534, 65534)) || prctl(PR_SET_DUMPABLE, 1))
		exit(1);
	begin();
	m = map_and_replace(0xc3, &at);
	put(&m);
	put(&m);
	check(missing() == 0, "a file that was replaced, of a process that has it mapped");
	mprotect(at + 2 * PAGE, PAGE, PROT_READ);
	put(&m);
	check(missing() == 0, "its mapping has changed, but the container has it");
	munmap(at, 3 * PAGE);
	m = map_and_replace(0x90, &last);
	m.inode++;
	put(&m);
	check(missing() == 1, "another file is mapped there than the record says");
	m.inode--;
	m.offset = PAGE;
	put(&m);
	check(missing() == 2, "or another part of it");
	m.offset = 0;
	put(&m);
	check(missing() == 2, "the file that is mapped now");
	end();
	check(count == 3 && images[0].size == 3 * PAGE && images[0].first == 0xc3 && !images[1].size &&
		  images[2].size == 3 * PAGE && images[2].first == 0x90,
	      "the code of the first, none, that of the second");
}

int main(void)
{
	int made;

	strcpy(file, "/tmp/pt-mapped-files-XXXXXX");
	made = mkstemp(file);
	if (made < 0)
		return 1;
	close(made);
	test_times();
	test_tick();
	test_replaced();
	test_written_meanwhile();
	test_same_time();
	test_gone();
	test_generation();
	test_parent();
	test_raw();
	unlink(file);
	strcat(file, "-nobody");
	test_memory();
	unlink(file);
	return sum_up();
}
