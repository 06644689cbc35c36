/*
 * shim.c - a library to preload: the N-th call of some functions fails, or ends the process. sweep.py tries
 * one N after the other.
 *
 *   FAULT_CALLS   which calls count: memory, write, sync, rename, open, read, mmap, unlink, truncate, link,
 *                 close; a list
 *   FAULT_AT      N, from 1; 0: none fails
 *   FAULT_HOW     once: that call fails; on: it and all after it; short: a write or a read of half the bytes;
 *                 kill: SIGKILL before the call; crash: the same, and the files lose what was not synchronised
 *                 (crash.h)
 *   FAULT_ERRNO   the error; default 5 (EIO). Memory is always ENOMEM.
 *   FAULT_LOG     a file that gets a hash of the call stack of each call that counts: 8 bytes each
 *   FAULT_SHOW    whatever it is: the stacks of the calls that fail, on stderr (addr2line -e says more)
 *   FAULT_SEED    crash: for its choices
 *   FAULT_FOLDER  crash: only files whose names begin with it are changed
 *
 * Only programs whose names begin with "pt-" have faults, not what these start. Calls are counted in a page
 * that a forked child shares. Files of stdio become cookies, since the C library's own calls of write() and
 * read() are not to be seen from here. With gcov (FAULT_GCOV is set) nothing fails any more once main() has
 * returned: its counters are written then.
 */
#include "tests/faults/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/faults/crash.h"

#define STACK_DEPTH 24

int __libc_start_main(int (*to_run)(int, char **, char **), int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define SEEN	   __attribute__((visibility("default")))

void *__libc_malloc(size_t n);			   /* NOLINT(bugprone-reserved-identifier) */
void *__libc_calloc(size_t n, size_t bytes);	   /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *p, size_t n);	   /* NOLINT(bugprone-reserved-identifier) */
void *__libc_memalign(size_t alignment, size_t n); /* NOLINT(bugprone-reserved-identifier) */

enum how { HOW_ONCE, HOW_ON, HOW_SHORT, HOW_KILL, HOW_CRASH };

static struct {
	bool ready, show;
	unsigned calls; /* that count: 1 << enum call */
	uint64_t at;
	enum how how;
	int error, log;
	_Atomic uint64_t *count;
} shim = {.log = -1};

static __thread bool inside; /* a call of the shim's own */

static const char *const call_names[CALLS] = {"memory", "write",  "sync",     "rename", "open", "read",
					      "mmap",	"unlink", "truncate", "link",	"close"};

static void log_stack(void)
{
	void *frames[STACK_DEPTH];
	uint64_t hash = 14695981039346656037u;
	int n = backtrace(frames, STACK_DEPTH);

	for (int i = 2; i < n; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
	syscall(SYS_write, shim.log, &hash, sizeof hash);
}

static void show_stack(void)
{
	void *frames[STACK_DEPTH];

	inside = true;
	backtrace_symbols_fd(frames, backtrace(frames, STACK_DEPTH), STDERR_FILENO);
	inside = false;
}

/* Counts a call. True: it is to fail, or to be cut short. */
static bool counts(enum call call)
{
	uint64_t n;

	if (!shim.ready || inside || !(shim.calls & 1u << call))
		return false;
	n = atomic_fetch_add(shim.count, 1) + 1;
	if (shim.log >= 0) {
		inside = true;
		log_stack();
		inside = false;
	}
	if (!shim.at || n < shim.at || (shim.how != HOW_ON && n != shim.at))
		return false;
	if (shim.how == HOW_CRASH) {
		inside = true;
		crash_now();
	}
	if (shim.how >= HOW_KILL)
		syscall(SYS_kill, getpid(), SIGKILL);
	if (shim.show)
		show_stack();
	errno = call == CALL_MEMORY ? ENOMEM : shim.error;
	return true;
}

static bool fails(enum call call)
{
	return counts(call) && shim.how != HOW_SHORT;
}

/* How many of n bytes are written or read; 0: the call fails. */
static size_t bytes_of(enum call call, size_t n)
{
	if (!counts(call))
		return n;
	return shim.how == HOW_SHORT && n > 1 ? n / 2 : 0;
}

/* ---- Memory ---- */

SEEN void *malloc(size_t n)
{
	return fails(CALL_MEMORY) ? NULL : __libc_malloc(n);
}

SEEN void *calloc(size_t n, size_t bytes)
{
	return fails(CALL_MEMORY) ? NULL : __libc_calloc(n, bytes);
}

SEEN void *realloc(void *p, size_t n)
{
	return fails(CALL_MEMORY) ? NULL : __libc_realloc(p, n);
}

SEEN void *aligned_alloc(size_t alignment, size_t n)
{
	return fails(CALL_MEMORY) ? NULL : __libc_memalign(alignment, n);
}

SEEN int posix_memalign(void **ret, size_t alignment, size_t n)
{
	void *p = fails(CALL_MEMORY) ? NULL : __libc_memalign(alignment, n);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

SEEN void *mmap(void *at, size_t n, int rights, int flags, int fd, off_t offset)
{
	if (fails(CALL_MMAP))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, n, rights, flags, fd, offset);
}

SEEN void *mmap64(void *at, size_t n, int rights, int flags, int fd, off64_t offset)
{
	return mmap(at, n, rights, flags, fd, offset);
}

/* A container's UUID is the same in each run. */
SEEN ssize_t getrandom(void *p, size_t n, unsigned flags)
{
	if (!shim.ready)
		return syscall(SYS_getrandom, p, n, flags);
	memset(p, 0x5a, n);
	return (ssize_t)n;
}

/* ---- Files ---- */

SEEN ssize_t write(int fd, const void *p, size_t n)
{
	/* Nobody can say more on stderr. */
	size_t now = fd == STDERR_FILENO || !n ? n : bytes_of(CALL_WRITE, n);

	if (n && !now)
		return -1;
	crash_before_change(fd);
	return syscall(SYS_write, fd, p, now);
}

SEEN ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	size_t now = bytes_of(CALL_WRITE, n);

	if (n && !now)
		return -1;
	crash_before_change(fd);
	return syscall(SYS_pwrite64, fd, p, now, at);
}

SEEN ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
	return pwrite(fd, p, n, at);
}

SEEN ssize_t writev(int fd, const struct iovec *v, int n)
{
	if (counts(CALL_WRITE) && shim.how != HOW_SHORT)
		return -1;
	crash_before_change(fd);
	return syscall(SYS_writev, fd, v, n);
}

SEEN ssize_t read(int fd, void *p, size_t n)
{
	size_t now = bytes_of(CALL_READ, n);

	return n && !now ? -1 : syscall(SYS_read, fd, p, now);
}

SEEN ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	size_t now = bytes_of(CALL_READ, n);

	return n && !now ? -1 : syscall(SYS_pread64, fd, p, now, at);
}

SEEN ssize_t pread64(int fd, void *p, size_t n, off64_t at)
{
	return pread(fd, p, n, at);
}

SEEN int openat(int folder, const char *name, int flags, ...)
{
	va_list arguments;
	unsigned mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	return fails(CALL_OPEN) ? -1 : (int)syscall(SYS_openat, folder, name, flags, mode);
}

SEEN int open(const char *name, int flags, ...)
{
	va_list arguments;
	unsigned mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	return openat(AT_FDCWD, name, flags, mode);
}

SEEN int open64(const char *name, int flags, ...)
{
	va_list arguments;
	unsigned mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, unsigned) : 0;
	va_end(arguments);
	return openat(AT_FDCWD, name, flags, mode);
}

SEEN int fsync(int fd)
{
	int ret = fails(CALL_SYNC) ? -1 : (int)syscall(SYS_fsync, fd);

	if (!ret)
		crash_synced(fd);
	return ret;
}

SEEN int fdatasync(int fd)
{
	return fsync(fd);
}

SEEN int ftruncate(int fd, off_t n)
{
	if (fails(CALL_TRUNCATE))
		return -1;
	crash_before_change(fd);
	return (int)syscall(SYS_ftruncate, fd, n);
}

SEEN int ftruncate64(int fd, off64_t n)
{
	return ftruncate(fd, n);
}

SEEN int unlink(const char *name)
{
	if (fails(CALL_UNLINK))
		return -1;
	crash_before_unlink(name);
	return (int)syscall(SYS_unlink, name);
}

SEEN int rename(const char *from, const char *to)
{
	return fails(CALL_RENAME) ? -1 : (int)syscall(SYS_rename, from, to);
}

SEEN int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags)
{
	return fails(CALL_RENAME) ? -1 : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

SEEN int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	return fails(CALL_LINK) ? -1 : (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
}

/* The file is closed all the same, as Linux does. */
SEEN int close(int fd)
{
	bool bad = fcntl(fd, F_GETFL) >= 0 && fails(CALL_CLOSE);
	int error = errno, ret = (int)syscall(SYS_close, fd);

	if (!bad)
		return ret;
	errno = error;
	return -1;
}

/* A process id that a failure left at -1 would end all processes. */
SEEN int kill(pid_t pid, int sig)
{
	if (pid <= 0 && shim.ready)
		abort();
	return (int)syscall(SYS_kill, pid, sig);
}

/* ---- stdio: each file is a cookie whose functions are those above ---- */

#define FILES_MAX 256

static struct {
	FILE *f;
	int fd;
} files[FILES_MAX];

static ssize_t cookie_read(void *cookie, char *p, size_t n)
{
	return read((int)(intptr_t)cookie, p, n);
}

/* fopencookie() wants 0 for an error, and all is to be written. */
static ssize_t cookie_write(void *cookie, const char *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t now = write((int)(intptr_t)cookie, p + done, n - done);

		if (now <= 0)
			return 0;
		done += (size_t)now;
	}
	return (ssize_t)done;
}

static int cookie_seek(void *cookie, off64_t *at, int whence)
{
	off64_t now = lseek((int)(intptr_t)cookie, *at, whence);

	if (now < 0)
		return -1;
	*at = now;
	return 0;
}

static int cookie_close(void *cookie)
{
	int fd = (int)(intptr_t)cookie;

	for (size_t i = 0; i < FILES_MAX; i++)
		if (files[i].f && files[i].fd == fd)
			files[i].f = NULL;
	return close(fd);
}

static FILE *cookie_file(int fd, const char *mode)
{
	static const cookie_io_functions_t functions = {cookie_read, cookie_write, cookie_seek, cookie_close};
	FILE *f = fopencookie((void *)(intptr_t)fd, mode, functions);

	for (size_t i = 0; f && i < FILES_MAX; i++) {
		if (files[i].f)
			continue;
		files[i].f = f;
		files[i].fd = fd;
		return f;
	}
	return f;
}

SEEN int fileno(FILE *f)
{
	for (size_t i = 0; i < FILES_MAX; i++)
		if (files[i].f == f && f)
			return files[i].fd;
	return NEXT(fileno)(f);
}

SEEN FILE *fdopen(int fd, const char *mode)
{
	return shim.ready ? cookie_file(fd, mode) : NEXT(fdopen)(fd, mode);
}

SEEN FILE *fopen(const char *name, const char *mode)
{
	int flags = O_RDONLY, fd;
	FILE *f;

	if (!shim.ready)
		return NEXT(fopen)(name, mode);
	if (*mode != 'r')
		flags = O_CREAT | (*mode == 'a' ? O_APPEND : O_TRUNC) | O_WRONLY;
	if (strchr(mode, '+'))
		flags = (flags & ~O_ACCMODE) | O_RDWR;
	if (strchr(mode, 'e'))
		flags |= O_CLOEXEC;
	fd = open(name, flags, 0666);
	f = fd >= 0 ? cookie_file(fd, mode) : NULL;
	if (!f && fd >= 0)
		syscall(SYS_close, fd);
	return f;
}

SEEN FILE *fopen64(const char *name, const char *mode)
{
	return fopen(name, mode);
}

/* ---- Begin ---- */

static unsigned calls_of(const char *list)
{
	unsigned ret = 0;

	for (unsigned i = 0; i < CALLS; i++)
		if (strstr(list, call_names[i]))
			ret |= 1u << i;
	return ret;
}

static enum how how_of(const char *name)
{
	static const char *const names[] = {"once", "on", "short", "kill", "crash"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return (enum how)i;
	return HOW_ONCE;
}

/* ---- gcov ---- */

static int (*program_main)(int, char **, char **);

static int main_then_none(int argc, char **argv, char **environment)
{
	int status = program_main(argc, argv, environment);

	fflush(NULL);
	shim.ready = shim.ready && !getenv("FAULT_GCOV");
	return status;
}

SEEN int __libc_start_main(int (*to_run)(int, char **, char **), int argc, char **argv, void (*init)(void),
			   void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
	program_main = to_run;
	return NEXT(__libc_start_main)(main_then_none, argc, argv, init, fini, rtld_fini, stack_end);
}

__attribute__((constructor)) static void begin(void)
{
	const char *calls = getenv("FAULT_CALLS"), *at = getenv("FAULT_AT"), *how = getenv("FAULT_HOW"),
		   *error = getenv("FAULT_ERRNO"), *log = getenv("FAULT_LOG"), *seed = getenv("FAULT_SEED"),
		   *folder = getenv("FAULT_FOLDER");
	void *warm[1];

	if (!calls || strncmp(program_invocation_short_name, "pt-", 3) != 0)
		return;
	shim.calls = calls_of(calls);
	shim.at = at ? strtoull(at, NULL, 10) : 0;
	shim.how = how_of(how ? how : "once");
	shim.error = error ? atoi(error) : EIO;
	shim.count = (_Atomic uint64_t *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE,
						 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shim.show = getenv("FAULT_SHOW") != NULL;
	if (shim.show)
		backtrace(warm, 1);
	if (log) {
		shim.log =
		    (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		backtrace(warm, 1); /* which loads a library */
	}
	if (shim.how == HOW_CRASH)
		crash_begin(seed ? strtoull(seed, NULL, 10) : 0, folder ? folder : "/");
	shim.ready = inside = true;
	stdout = cookie_file(STDOUT_FILENO, "w");
	stdin = cookie_file(STDIN_FILENO, "r");
	if (!stdout || !stdin)
		abort();
	if (isatty(STDOUT_FILENO))
		setlinebuf(stdout);
	unsetenv("LD_PRELOAD");
	inside = false;
}
