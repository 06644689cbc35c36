/*
 * internal.h - what the step engine's files share. Private to them:
 *
 *     engine.c    turns of the threads
 *     stepping.c  before and after a step
 *     straight.c  instructions up to the next branch in one step
 *     events.c    what a stop means
 *     thread.c    what an executed instruction means for the trace
 *     tasks.c     processes and threads
 *     maps.c      mappings, images, sideband
 *     sigmask.c   SIGTRAP is never blocked
 *     start.c     the program's start and the end of tracing
 */
#ifndef CAPTURE_STEP_INTERNAL_H
#define CAPTURE_STEP_INTERNAL_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/user.h>

#include "capture/code/image_set.h"
#include "capture/step/engine.h"
#include "decode/insn.h"

struct step_map { /* an executable mapping */
	uint64_t start, end, offset;
	bool writable, file;
	char *name;
};

struct step_page { /* code that no file holds: as the container has it */
	uint64_t address;
	uint8_t bytes[4096];
};

/* Instructions that a step by the trap flag changes, or that change the step. */
enum step_quirk {
	STEP_PLAIN,
	STEP_PUSHF,  /* what it pushes has the trap flag, which is ours */
	STEP_MOV_SS, /* no trap follows: the next instruction is executed in the same step */
	STEP_TRAP,   /* INT3, INT1: the SIGTRAP that follows is the program's own */
	STEP_INT80,  /* a 32-bit system call */
	STEP_POPF,   /* may set the trap flag, as the program's own */
	STEP_CPUID   /* a hypervisor executes it, and some lose the trap after it */
};

struct step_insn {
	struct insn insn;
	uint8_t quirk;	   /* enum step_quirk */
	uint8_t condition; /* of a conditional branch, as step_condition() takes it; else 0 */
};

struct step_cached {
	uint64_t ip; /* 0 free */
	struct step_insn insn;
	bool volatile_code; /* may change: look at the bytes each time */
	bool straight_known;
	uint8_t straight_byte;	 /* what is where the breakpoint comes */
	uint16_t straight_bytes; /* how far it is there; 0: there is to be none. See straight.c */
};
#define STEP_CACHE (1u << 16)

struct step_process {
	struct step_process *next;
	pid_t pid;
	bool untraced;		/* its program is a 32-bit one: it runs freely */
	bool read_implies_exec; /* what is readable may be executable, too (personality(2)) */
	struct step_map *maps;
	size_t map_count;
	struct step_page *pages;
	size_t page_count;
	struct step_cached *cache;
	int threads;
	int memory; /* a descriptor of its /proc/PID/mem; -1: not open */
};

enum step_state { STEP_NEW, STEP_STOPPED, STEP_RUNNING };

struct step_thread {
	struct step_thread *next;
	pid_t tid;
	struct step_process *process;
	enum step_state state;
	bool in_kernel;	   /* tracing ended with a system call, signal...: a stop begins it again */
	bool far_trap;	   /* by INT3: the next SIGTRAP is its own */
	bool from_syscall; /* by SYSCALL: R11 will have the trap flag, which is ours */
	bool want_psb;	   /* its mappings changed */
	bool maps_changed; /* the system call at hand may change them */
	bool preempted;	   /* another thread had its turn: tracing ended, and begins again at ip */
	bool renames;	   /* prctl(PR_SET_NAME) is being called */
	bool pokes;	   /* a file /proc/PID/mem is being written to */
	bool protects;	   /* mprotect() is: what it makes executable may have been written to */
	bool forks;	   /* fork() is being called: no breakpoint is to be in what it copies */
	bool event;	   /* this stop is no step's end */
	bool traced;	   /* the container has its FORK, ITRACE_START */
	bool signalled;	   /* a signal was delivered: a handler may begin */
	bool group_stop;   /* this stop is job control's (SIGSTOP): it lasts until SIGCONT */
	int signal;	   /* to be delivered with the next step */
	uint64_t sigset;   /* the program's argument of the rt_sigprocmask() at hand; 0: none was changed */
	uint64_t cpus_at;  /* where the sched_getaffinity() at hand puts its set; 0: none is called */
	pid_t chooses_cpus_of; /* of whom the sched_setaffinity() at hand is; 0: none is called */
	bool chose_cpus;       /* by sched_setaffinity(), or its parent did */
	uint64_t ip;
	/* The step at hand, which began at ip: */
	struct step_insn insn;
	bool known;	    /* insn is what is there */
	bool jumped;	    /* it is a conditional branch to the next instruction, and was taken */
	uint64_t shadow;    /* of the STEP_MOV_SS that is executed with it, 0 none */
	uint64_t emulating; /* it is a call of the vsyscall page: where that returns to, 0 none */
	/* The step is of all instructions up to the breakpoint at straight_end; 0: of one. */
	uint64_t straight_end;
	bool single;	 /* the next step is of one instruction, for it may sleep in a page fault */
	bool breakpoint; /* is there, in place of straight_byte */
	uint8_t straight_byte;
	uint32_t stream;
	uint64_t aux_offset;
	struct pt_encoder encoder;
};

struct step {
	const struct step_options *options;
	struct ptc_writer *w;
	struct pt_model model;
	struct image_set *images;
	struct step_process *processes;
	struct step_thread *threads;
	cpu_set_t cpus_before;	     /* given back to a program that runs on without us */
	pid_t first;		     /* the program itself */
	struct step_thread *current; /* which the model's core runs */
	struct step_result *result;
	uint8_t *sideband; /* records that wait */
	size_t sideband_bytes, sideband_room;
	struct pt_error *e;
	bool failed;
	bool single;	    /* each step is of one instruction */
	bool shadow_stacks; /* a program has, or had, one: only the CPU calls and returns */
	uint64_t last_round;
};

/* sigmask.c. After a signal's delivery: a handler of SIGTRAP, or with it in its mask, may begin. */
void step_unblock_trap(struct step_thread *t);
/*
 * Before rt_sigprocmask() is called: what it blocks is without SIGTRAP. Its argument is another one until...
 */
void step_keep_trap_unblocked(struct step_thread *t);
/* ...the thread's next stop, where the program's own is put back. */
void step_sigmask_set(struct step_thread *t);

/* affinity.c. Before a system call, and when it has returned. */
void step_affinity_called(struct step *s, struct step_thread *t, uint64_t number);
void step_affinity_returned(struct step *s, struct step_thread *t);

/* tasks.c. NULL: no memory, and s->failed is set. */
struct step_process *step_process_add(struct step *s, pid_t pid);
struct step_process *step_process_find(struct step *s, pid_t pid);
void step_process_drop(struct step *s, struct step_process *p);
struct step_thread *step_thread_find(struct step *s, pid_t tid);
struct step_thread *step_thread_add(struct step *s, pid_t tid, struct step_process *p);
/* The thread is gone; its trace ends where it was. Frees it, and its process with the last one. */
void step_thread_end(struct step *s, struct step_thread *t);
/* Puts it at the end of the queue for a turn. */
void step_thread_last(struct step *s, struct step_thread *t);
pid_t step_tgid_of(pid_t tid);
pid_t step_tracer_of(pid_t tid); /* 0: none */
/* Does not run: it sleeps in the kernel, or is a zombie. A process's first thread, when another one
 * calls exec, is one that wait() does not report until the others are gone. False when that is not
 * known. */
bool step_waits(pid_t tid);
/* Has ended, though wait() may not report it yet; true also when that is not known. */
bool step_ended(pid_t tid);
/* Is what the process may read executable, too (personality(2))? True also when that is not known. */
bool step_read_implies_exec(pid_t pid);
/* Is sig handled by a function of the program? */
bool step_is_caught(pid_t tid, int sig);
/*
 * A register of a stopped thread, at that offset in struct user. False when it cannot be read, and
 * *ret is as it was: the thread is being killed, so it counts as running until waitpid() reports its
 * end.
 */
bool step_peek(struct step_thread *t, size_t offset, uint64_t *ret);
#define STEP_PEEK(t, reg, ret) step_peek((t), offsetof(struct user_regs_struct, reg), (ret))
/* Keeps errno's message, if none was kept before; -1. */
int step_error(struct step *s, const char *what);

/* start.c */
/* Starts the program: its first thread is stopped after its exec, with waitpid()'s *ret_status. 0, or
 * -1 as step_run(). */
int step_start(struct step *s, char **argv, int *ret_status);
/* All threads run on without us. */
void step_detach(struct step *s);
void step_kill_all(struct step *s);

/* events.c */
/* A stop that waitpid() reported. Afterwards the thread may be stepped, unless it is gone. */
void step_stopped(struct step *s, struct step_thread *t, int status);
/*
 * Anything that waitpid() reported of a thread, also its end or the first stop of one that is not known yet.
 */
void step_reap(struct step *s, pid_t tid, int status);
/* A thread in a group stop waits for SIGCONT, and is no longer stopped for ptrace: its registers must
 * have been read before. */
void step_listen(struct step_thread *t);

/* stepping.c */
/* Before a step of a thread in user code: finds what it will execute. */
void step_prepare(struct step *s, struct step_thread *t);
/* Before a step with a signal: when a handler will run, the instruction at hand does not. */
void step_deliver(struct step *s, struct step_thread *t);
/* The step ended. */
void step_stepped(struct step *s, struct step_thread *t);
/* The step did not end: a signal came first (t->signal), or a clone, exec, ... */
void step_interrupted(struct step *s, struct step_thread *t);

/* straight.c */
/* After step_prepare(). True: a breakpoint is where straight code ends, and the thread may run up to it. */
bool step_straight_begin(struct step *s, struct step_thread *t);
/* The thread has stopped, for whatever reason: the breakpoint is taken away. */
void step_straight_stopped(struct step *s, struct step_thread *t);
/*
 * The thread ended as it ran, or another one's exec put it into a new program: the breakpoint is taken away
 * from where it was, for others may share that memory (vfork(2)).
 */
void step_straight_left(struct step *s, struct step_thread *t);
/*
 * It has not stopped, for it sleeps in a page fault: the breakpoint is taken away, and it stops before it
 * executes anything else. Its next step is of one instruction.
 */
void step_straight_sleeps(struct step_thread *t);
/* What was executed when it stopped at now; and a branch that is there and needs no step. */
void step_straight_executed(struct step *s, struct step_thread *t, uint64_t now);

/* maps.c. Failures are kept in s->failed. */
int step_attrs(struct step *s, const char *command);
void step_comm(struct step *s, struct step_thread *t, bool exec);
void step_fork(struct step *s, struct step_thread *t, pid_t ppid, pid_t ptid);
void step_exit(struct step *s, struct step_thread *t);
void step_itrace_start(struct step *s, struct step_thread *t);
void step_switch(struct step *s, struct step_thread *t, bool out);
/* Writes records and images of what is mapped now and was not. written: mprotect() was called, pages
 * may have been written. */
void step_maps_update(struct step *s, struct step_thread *t, bool written);
/* Any code, of whichever process, may no longer be its file's: it is looked at anew where it is executed. */
void step_maps_written(struct step *s);
void step_maps_forget(struct step_process *p);
/* A fork's child begins with its parent's. */
void step_maps_copy(struct step *s, struct step_process *to, const struct step_process *from);
const struct step_map *step_map_at(const struct step_process *p, uint64_t ip);
/* Code outside of files: the container gets the page when it has not got these bytes. True when it
 * was written. */
bool step_code_page(struct step *s, struct step_thread *t, uint64_t ip);
void step_put_sideband(struct step *s);
/* Writes what the thread has encoded. */
void step_put_aux(struct step *s, struct step_thread *t);
/* The same of all threads: what ran so far ran with the mappings so far. Without time the container's
 * order is the only sign of it. */
void step_put_all(struct step *s);
uint64_t step_now_ns(const struct step *s);
void step_fail(struct step *s);

/* thread.c */
/* The instruction at ip, from the cache or the process. NULL when it cannot be read. */
struct step_cached *step_cached(struct step *s, struct step_thread *t, uint64_t ip);
/* That at t->ip. False when it cannot be read. */
bool step_insn(struct step *s, struct step_thread *t, struct step_insn *ret);
/* Was a conditional branch with that condition taken, by the registers after it? */
bool step_condition(uint8_t condition, uint64_t flags, uint64_t rcx);
/* The thread went from t->ip to `to` by executing in. Updates t->ip. */
void step_executed(struct step *s, struct step_thread *t, const struct insn *in, uint64_t to);
/* Tracing begins at ip, or ends. */
void step_begin(struct step *s, struct step_thread *t, uint64_t ip);
void step_end(struct step *s, struct step_thread *t, uint64_t from);
void step_async_end(struct step *s, struct step_thread *t);
#endif
