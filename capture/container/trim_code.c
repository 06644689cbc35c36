/* trim_code.c - see trim_code.h. */
#include "capture/container/trim_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/container/copy.h"
#include "schema/array.h"

#define LAST_SYMBOL_BYTES 4096u

struct range { /* half-open */
	uint64_t start, end;
};

/* How a file's symbols' values relate to its offsets. */
struct piece {
	uint64_t vaddr, offset, size;
};

/* What names an image. */
struct image_key {
	bool memory; /* then all memory images of the machine and pid, whatever their names */
	int32_t machine_pid, pid;
	char build_id[41];
	const char *name;
	size_t name_bytes;
};

struct image { /* what of one image is used, and what of it was seen so far */
	struct image_key key;
	char *name; /* the key's */
	struct range *used;
	size_t used_count, used_room;
	struct piece *pieces;
	size_t piece_count, piece_room;
	bool begun; /* in what is written */
};

struct trim_code {
	struct image *images;
	size_t image_count, image_room;
};

static bool is_same(const struct image_key *a, const struct image_key *b)
{
	if (a->memory != b->memory || a->machine_pid != b->machine_pid)
		return false;
	return a->memory ? a->pid == b->pid
			 : !strcmp(a->build_id, b->build_id) && a->name_bytes == b->name_bytes &&
			       !memcmp(a->name, b->name, a->name_bytes);
}

/* NULL: nothing of it is used. */
static struct image *find(struct trim_code *t, const struct image_key *key)
{
	for (size_t i = 0; i < t->image_count; i++)
		if (is_same(&t->images[i].key, key))
			return &t->images[i];
	return NULL;
}

/* An image of which nothing is used yet. NULL: no memory. */
static struct image *add(struct trim_code *t, const struct image_key *key)
{
	struct image *m;

	if (pt_array_grow(&t->images, t->image_count, &t->image_room, NULL))
		return NULL;
	m = &t->images[t->image_count];
	*m = (struct image){.key = *key, .name = strndup(key->name, key->name_bytes)};
	m->key.name = m->name;
	if (!m->name)
		return NULL;
	t->image_count++;
	return m;
}

/* ---- The list ---- */

static int take_line(struct trim_code *t, char *line, struct pt_error *e)
{
	struct image_key key = {0};
	uint64_t start, bytes;
	struct image *m;
	char kind[8];
	int name = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%7s %" SCNd32 " %" SCNd32 " %40s %" SCNx64 " %" SCNu64 " %n", kind,
		   &key.machine_pid, &key.pid, key.build_id, &start, &bytes, &name) != 6 ||
	    !name || (strcmp(kind, "file") && strcmp(kind, "memory")))
		return pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET,
			       "pt-decode --used-code: '%.80s' is none of its lines", line);
	if (!strcmp(key.build_id, "-"))
		key.build_id[0] = 0;
	key.memory = kind[0] == 'm';
	key.name = line + name;
	key.name_bytes = strlen(key.name);
	m = find(t, &key);
	if (!m)
		m = add(t, &key);
	if (!m)
		return pt_fail_no_memory(e, NULL);
	if (pt_array_grow(&m->used, m->used_count, &m->used_room, e))
		return -1;
	m->used[m->used_count++] = (struct range){start, start + bytes};
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorted and disjoint: several images of memory may have had code at one place. */
static void tidy(struct image *m)
{
	size_t n = 0;

	qsort(m->used, m->used_count, sizeof *m->used, by_start);
	for (size_t i = 0; i < m->used_count; i++) {
		if (n && m->used[i].start <= m->used[n - 1].end) {
			if (m->used[i].end > m->used[n - 1].end)
				m->used[n - 1].end = m->used[i].end;
		} else {
			m->used[n++] = m->used[i];
		}
	}
	m->used_count = n;
}

/*
 * In the child: pt-decode, the one beside this program first. Guests' code may be their process's own, as who
 * decodes what is trimmed may say.
 */
static void run_decoder(int fd, int out)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 16);
	char *slash;

	dup2(fd, 0);
	dup2(out, 1);
	if (n > 0) {
		path[n] = 0;
		slash = strrchr(path, '/');
		memcpy(slash + 1, "pt-decode", sizeof "pt-decode");
		execl(path, "pt-decode", "-q", "--guest-code", "--used-code", "-", (char *)NULL);
	}
	execlp("pt-decode", "pt-decode", "-q", "--guest-code", "--used-code", "-", (char *)NULL);
	_exit(127);
}

/* Starts pt-decode on the container in fd. What it prints is to be read from the file. NULL: *e says why. */
static FILE *start_decoder(int fd, pid_t *ret_pid, struct pt_error *e)
{
	int ends[2];
	FILE *f;

	if (pipe(ends) < 0) {
		pt_fail_errno(e, "cannot make a pipe");
		return NULL;
	}
	*ret_pid = fork();
	if (*ret_pid == 0) {
		close(ends[0]);
		run_decoder(fd, ends[1]);
	}
	close(ends[1]);
	f = fdopen(ends[0], "r");
	if (*ret_pid >= 0 && f)
		return f;
	pt_fail_errno(e, "cannot start pt-decode");
	if (f)
		fclose(f);
	else
		close(ends[0]);
	return NULL;
}

static int check_status(int status, struct pt_error *e)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "--used-code needs pt-decode, which is neither beside pt-capture nor in PATH");
	/* 3: decoded, with places that were not seen; what was read is known all the same. */
	if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 3))
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET, "pt-decode --used-code failed (status %d)",
			       status);
	return 0;
}

static int list(struct trim_code *t, int fd, struct pt_error *e)
{
	int status, ret = 0;
	char *line = NULL;
	size_t room = 0;
	pid_t pid;
	FILE *f;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return pt_fail_errno(e, "cannot read the container twice");
	f = start_decoder(fd, &pid, e);
	if (!f)
		return -1;
	while (ret == 0 && getline(&line, &room, f) > 0)
		ret = take_line(t, line, e);
	free(line);
	fclose(f);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (ret || check_status(status, e))
		return -1;
	for (size_t i = 0; i < t->image_count; i++)
		tidy(&t->images[i]);
	return 0;
}

struct trim_code *trim_code_create(int fd, struct pt_error *e)
{
	struct trim_code *t = calloc(1, sizeof *t);

	if (!t) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	if (list(t, fd, e) < 0) {
		trim_code_destroy(t);
		return NULL;
	}
	return t;
}

void trim_code_destroy(struct trim_code *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->image_count; i++) {
		free(t->images[i].name);
		free(t->images[i].used);
		free(t->images[i].pieces);
	}
	free(t->images);
	free(t);
}

/* ---- Images and symbols ---- */

static void set_build_id(struct image_key *key, const uint8_t *id, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes && i < 20; i++)
		snprintf(key->build_id + (size_t)2 * i, 3, "%02x", id[i]);
}

static int copy_image(struct trim_code *t, struct ptc_writer *w, const struct ptc_chunk *c,
		      struct pt_error *e)
{
	struct image_key key;
	struct ptc_image in;
	struct image *m;
	uint64_t at;

	if (ptc_parse_image(c, &in, e) < 0)
		return -1;
	key = (struct image_key){.memory = in.kind == PTC_IMAGE_MEMORY,
				 .machine_pid = in.machine_pid,
				 .pid = in.pid,
				 .name = in.name,
				 .name_bytes = in.name_bytes};
	set_build_id(&key, in.build_id, in.build_id_bytes);
	/* What was not read is none of an image of its name that was (code/image_set.h). */
	if (!key.memory && !in.size)
		return ptc_put_image(w, &in, e);
	m = find(t, &key);
	if (!m)
		return 0;
	at = key.memory ? in.vaddr : in.offset;
	if (!in.continues)
		m->begun = false;
	if (pt_array_grow(&m->pieces, m->piece_count, &m->piece_room, e))
		return -1;
	m->pieces[m->piece_count++] = (struct piece){in.vaddr, at, in.size};
	for (size_t i = 0; i < m->used_count; i++) {
		uint64_t from = m->used[i].start > at ? m->used[i].start : at;
		uint64_t to = m->used[i].end < at + in.size ? m->used[i].end : at + in.size;
		struct ptc_image out = in;

		if (from >= to)
			continue;
		out.offset += from - at;
		out.vaddr += from - at;
		out.bytes += from - at;
		out.size = to - from;
		out.continues = key.memory ? in.continues : m->begun;
		if (key.memory)
			out.offset = in.offset;
		if (ptc_put_image(w, &out, e) < 0)
			return -1;
		m->begun = true;
	}
	return 0;
}

static bool used_between(const struct image *m, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < m->used_count; i++)
		if (m->used[i].start < end && start < m->used[i].end)
			return true;
	return false;
}

/* Is any byte of the symbol used? Its end is the next one's beginning when it has none of its own. */
static bool symbol_used(const struct trim_code *t, const struct image *m, const struct ptc_symbols *s,
			const struct ptc_symbol *symbol, uint64_t next)
{
	uint64_t end = symbol->size ? symbol->value + symbol->size : next;

	if (end <= symbol->value)
		end = symbol->value + 1;
	if (s->absolute) {
		for (size_t i = 0; i < t->image_count; i++) {
			const struct image *k = &t->images[i];

			if (k->key.memory && k->key.machine_pid == s->machine_pid && k->key.pid == s->pid &&
			    used_between(k, symbol->value, end))
				return true;
		}
		return false;
	}
	for (size_t i = 0; i < m->piece_count; i++) {
		const struct piece *p = &m->pieces[i];

		if (symbol->value - p->vaddr < p->size &&
		    used_between(m, symbol->value - p->vaddr + p->offset, end - p->vaddr + p->offset))
			return true;
	}
	return false;
}

static int by_value(const void *a, const void *b)
{
	const struct ptc_symbol *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

static int copy_symbols(struct trim_code *t, struct ptc_writer *w, const struct ptc_chunk *c,
			struct pt_error *e)
{
	struct ptc_symbol *all;
	struct ptc_symbols s;
	struct image *m = NULL;
	uint32_t n = 0;
	uint64_t next;
	int r = 0;

	if (ptc_parse_symbols(c, &s, e) < 0)
		return -1;
	if (!s.absolute) {
		struct image_key key = {
		    .machine_pid = s.machine_pid, .name = s.name, .name_bytes = s.name_bytes};

		set_build_id(&key, s.build_id, s.build_id_bytes);
		m = find(t, &key);
		if (!m)
			return 0;
	}
	all = malloc(((size_t)s.count + 1) * sizeof *all);
	if (!all)
		return pt_fail_no_memory(e, NULL);
	if (s.count)
		memcpy(all, s.symbols, s.count * sizeof *all);
	qsort(all, s.count, sizeof *all, by_value);
	for (uint32_t i = 0, k = 0; i < s.count; i++) {
		while (k < s.count && all[k].value == all[i].value)
			k++;
		next = k < s.count ? all[k].value : all[i].value + LAST_SYMBOL_BYTES;
		if (symbol_used(t, m, &s, &all[i], next))
			all[n++] = all[i];
	}
	s.symbols = all;
	s.count = n;
	if (n)
		r = ptc_put_symbols(w, &s, e);
	free(all);
	return r;
}

int trim_code_copy(struct trim_code *t, struct ptc_writer *w, const struct ptc_chunk *c, struct pt_error *e)
{
	switch (c->type) {
	case PTC_IMAGE: return copy_image(t, w, c, e);
	case PTC_SYMBOLS: return copy_symbols(t, w, c, e);
	default: return container_copy_chunk(w, c, e);
	}
}
