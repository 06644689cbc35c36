/* step_internal.h - what the step engine's files share: step_engine.c (ptrace), step_thread.c (what an instruction did),
 * step_maps.c (mappings, images, sideband). Private to them. */
#ifndef CAPTURE_STEP_INTERNAL_H
#define CAPTURE_STEP_INTERNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/elf_image.h"
#include "capture/step_engine.h"
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

struct step_cached {
	uint64_t ip; /* 0 free */
	struct insn insn;
	bool volatile_code; /* may change: look at the bytes each time */
};
#define STEP_CACHE (1u << 16)

struct step_process {
	struct step_process *next;
	pid_t pid;
	struct step_map *maps;
	size_t map_count;
	struct step_page *pages;
	size_t page_count;
	struct step_cached *cache;
	int threads;
};

enum step_state { STEP_NEW, STEP_STOPPED, STEP_RUNNING };

struct step_thread {
	struct step_thread *next;
	pid_t tid;
	struct step_process *process;
	enum step_state state;
	bool in_kernel;	   /* tracing ended with a system call, signal...: it begins again at the next stop */
	bool far_trap;	   /* by INT n: the next SIGTRAP may be its own */
	bool want_psb;	   /* its mappings changed */
	bool maps_changed; /* the system call at hand may change them */
	bool preempted;	   /* another thread had its turn: tracing ended, and begins again at ip */
	bool renames;	   /* prctl(PR_SET_NAME) is being called */
	bool protects;	   /* mprotect() is: what it makes executable may have been written to */
	bool event;	   /* this stop is no step's end */
	bool traced;	   /* has been told of: FORK, ITRACE_START */
	int signal;	   /* to be delivered with the next step */
	uint64_t ip;
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
	pid_t first;		     /* the program itself */
	struct step_thread *current; /* whom the model's core runs */
	struct step_result *result;
	uint8_t *side; /* sideband records that wait */
	size_t side_bytes, side_room;
	struct pt_error *e;
	bool failed;
	uint64_t last_round;
};

/* step_maps.c. Failures are kept in s->failed. */
int step_attrs(struct step *s, const char *command);
void step_comm(struct step *s, struct step_thread *t, bool exec);
void step_fork(struct step *s, struct step_thread *t, pid_t ppid, pid_t ptid);
void step_exit(struct step *s, struct step_thread *t);
void step_itrace_start(struct step *s, struct step_thread *t);
void step_switch(struct step *s, struct step_thread *t, bool out);
/* Tells of what is mapped now and was not. */
void step_maps_update(struct step *s, struct step_thread *t, bool written);
void step_maps_forget(struct step_process *p);
/* A fork's child begins with its parent's. */
void step_maps_copy(struct step *s, struct step_process *to, const struct step_process *from);
const struct step_map *step_map_at(const struct step_process *p, uint64_t ip);
/* Code outside of files: the container gets the page when it has not got these bytes. True when it was written. */
bool step_code_page(struct step *s, struct step_thread *t, uint64_t ip);
void step_put_side(struct step *s);
/* Writes what the thread has encoded. */
void step_put_aux(struct step *s, struct step_thread *t);
uint64_t step_now_ns(const struct step *s);
void step_fail(struct step *s);

/* step_thread.c */
/* The instruction at t->ip, from the cache or the process. False when it cannot be read. */
bool step_insn(struct step *s, struct step_thread *t, struct insn *ret);
/* The thread went from t->ip to `to` by executing in. Updates t->ip. */
void step_executed(struct step *s, struct step_thread *t, const struct insn *in, uint64_t to);
/* Tracing begins at ip, or ends. */
void step_begin(struct step *s, struct step_thread *t, uint64_t ip);
void step_end(struct step *s, struct step_thread *t, uint64_t from);
void step_async_end(struct step *s, struct step_thread *t);
#endif
