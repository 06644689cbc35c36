/* A thread that serves another's page faults (userfaultfd(2)): who steps both must not wait for the one
 * that waits. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 20
static int faults;

static void *serve(void *arg)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct pollfd p = {.fd = faults, .events = POLLIN};

	(void)arg;
	for (int i = 0; i < PAGES; i++) {
		struct uffd_msg m;
		struct uffdio_copy copy;

		if (poll(&p, 1, -1) != 1 || read(faults, &m, sizeof m) != sizeof m)
			break;
		memset(page, i + 1, sizeof page);
		copy = (struct uffdio_copy){.dst = m.arg.pagefault.address & ~4095ULL,
					    .src = (unsigned long)page,
					    .len = sizeof page};
		ioctl(faults, UFFDIO_COPY, &copy);
	}
	return NULL;
}

int main(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	char *memory = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t server;
	int sum = 0;

	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api))
		return 77;
	range.range.start = (unsigned long)memory;
	range.range.len = PAGES * 4096;
	if (ioctl(faults, UFFDIO_REGISTER, &range))
		return 77;
	pthread_create(&server, NULL, serve, NULL);
	for (int i = 0; i < PAGES; i++)
		sum += memory[i * 4096];
	pthread_join(server, NULL);
	printf("%d\n", sum);
	return 0;
}
