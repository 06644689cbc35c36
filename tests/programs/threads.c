/* Threads that wait for one another: mutex, condition, a spin on an atomic, join. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int turn, sum;
static atomic_int ready;

static void *work(void *arg)
{
	int me = (int)(long)arg;

	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < 3)
		;
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&lock);
		while (turn != me)
			pthread_cond_wait(&turn_changed, &lock);
		sum += me * i;
		turn = (turn + 1) % 3;
		pthread_cond_broadcast(&turn_changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[3];

	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, work, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	printf("%d\n", sum);
	return 0;
}
