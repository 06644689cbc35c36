/* A thread that is not the first calls exec, while others run. They do so conditionally: how often an
 * unconditional jump to itself was taken is nothing that a trace can show. */
#include <pthread.h>
#include <unistd.h>

static char *self;
static volatile int stop;

static void *run(void *arg)
{
	char *argv[] = {self, "again", NULL};

	if (arg)
		while (!stop)
			;
	execv(self, argv);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[2];

	if (argc > 1)
		return 0;
	self = argv[0];
	pthread_create(&t[0], NULL, run, (void *)1);
	pthread_create(&t[1], NULL, run, NULL);
	while (!stop)
		;
}
