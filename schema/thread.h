/* thread.h - threads beside the main one, which alone gets the process's signals. */
#ifndef SCHEMA_THREAD_H
#define SCHEMA_THREAD_H

#include <pthread.h>
#include <signal.h>

/* As pthread_create(), all signals blocked in the new thread: the main thread's handlers end what it waits
 * for. */
static inline int pt_thread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
				   void *arg)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(thread, attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

#endif
