/* jit.c - see jit.h. */
#include "capture/perfdata/jit.h"
#include "capture/code/jit_symbols.h"
#include "capture/code/jitdump.h"
#include "capture/code/regular_file.h"
#include "capture/perfdata/path.h"
#include "schema/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLS_BYTES_MAX ((size_t)4 << 20) /* of one chunk */

struct perf_jit {
	const struct perf_description *d;
	const char *symfs, *folder;
	struct import_perf_notes *notes;
	int32_t *named; /* processes whose names were looked for */
	size_t named_count, named_room;
};

struct pieces {
	struct jitdump_code *at;
	size_t count, room;
};

struct perf_jit *perf_jit_create(const struct perf_description *d, const char *symfs, const char *folder,
				 struct import_perf_notes *notes)
{
	struct perf_jit *j = calloc(1, sizeof *j);

	if (j)
		*j = (struct perf_jit){.d = d, .symfs = symfs ? symfs : "", .folder = folder, .notes = notes};
	return j;
}

void perf_jit_destroy(struct perf_jit *j)
{
	if (j)
		free(j->named);
	free(j);
}

/* ---- Code ---- */

static int put_piece(const struct jitdump_code *c, int32_t pid, uint64_t time_ns, struct ptc_writer *w,
		     struct pt_error *e)
{
	const struct ptc_image image = {.kind = PTC_IMAGE_MEMORY,
					.pid = pid,
					.vaddr = c->address,
					.time_ns = time_ns,
					.name = PTC_IMAGE_JITDUMP_NAME,
					.name_bytes = sizeof PTC_IMAGE_JITDUMP_NAME - 1,
					.bytes = c->bytes,
					.size = c->size};

	return c->size ? ptc_put_image(w, &image, e) : 0;
}

static int by_address(const void *a, const void *b)
{
	const struct jitdump_code *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static bool is_same(const struct jitdump_code *a, const struct jitdump_code *b)
{
	return a->address == b->address && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/*
 * Of unknown time: those that no other overlaps. time_ns: when the dump began. *ret_left: how many were
 * left out.
 */
static int put_lasting(struct pieces *p, int32_t pid, uint64_t time_ns, struct ptc_writer *w,
		       size_t *ret_left, struct pt_error *e)
{
	size_t next;

	if (p->count)
		qsort(p->at, p->count, sizeof *p->at, by_address);
	for (size_t i = 0; i < p->count; i = next) {
		uint64_t end = p->at[i].address + p->at[i].size;
		bool alone = true;

		for (next = i + 1; next < p->count && p->at[next].address < end; next++) {
			uint64_t to = p->at[next].address + p->at[next].size;

			alone = alone && is_same(&p->at[i], &p->at[next]);
			end = to > end ? to : end;
		}
		if (alone && put_piece(&p->at[i], pid, time_ns, w, e))
			return -1;
		*ret_left += alone ? 0 : next - i;
	}
	return 0;
}

static int put_code(const struct perf_jit *j, const struct jitdump *d, struct pieces *p,
		    const struct ordered_record *rec, struct ptc_writer *w, struct pt_error *e)
{
	size_t left = 0;

	if (!jitdump_has_tsc(d) || !j->d->clock.mult) {
		if (put_lasting(p, jitdump_pid(d), rec->stamp.time_ns, w, &left, e))
			return -1;
		if (left)
			import_perf_note(
			    j->notes,
			    "jit-%d.dump: %zu of %zu pieces of code were left out: they share addresses, and "
			    "the dump's times are not TSC values (JITDUMP_USE_ARCH_TIMESTAMP=1 with perf's "
			    "agent for Java)",
			    jitdump_pid(d), left, p->count);
		return 0;
	}
	for (size_t i = 0; i < p->count; i++)
		if (put_piece(&p->at[i], jitdump_pid(d), perf_tsc_to_ns(&j->d->clock, p->at[i].timestamp), w,
			      e))
			return -1;
	return 0;
}

static int put_names(const struct pieces *p, int32_t pid, struct ptc_writer *w, struct pt_error *e)
{
	struct jit_symbols s = {0};
	int ret = 0;

	for (size_t i = 0; i < p->count && ret == 0; i++) {
		ret = jit_symbols_add(&s, p->at[i].address, p->at[i].size, p->at[i].name, e);
		if (ret == 0 && s.strings_bytes > SYMBOLS_BYTES_MAX)
			ret = jit_symbols_put(&s, w, pid, e);
	}
	if (ret == 0)
		ret = jit_symbols_put(&s, w, pid, e);
	jit_symbols_deinit(&s);
	return ret;
}

/* All pieces of the dump up to where it is damaged, which is a note. 0, or -1: PT_ERR_NO_MEMORY. */
static int read_pieces(const struct perf_jit *j, struct jitdump *d, const char *path, struct pieces *ret,
		       struct pt_error *e)
{
	struct pt_error damage = {0};
	struct jitdump_code c;
	int got;

	while ((got = jitdump_next(d, &c, &damage)) > 0) {
		if (pt_array_grow(&ret->at, ret->count, &ret->room, e))
			return -1;
		ret->at[ret->count++] = c;
	}
	if (got < 0 && damage.kind == PT_ERR_NO_MEMORY) {
		*e = damage;
		return -1;
	}
	if (got < 0)
		import_perf_note(j->notes, "%s: at byte %" PRIu64 ": %s: what comes before it was taken",
				 path, damage.offset, damage.message);
	else if (jitdump_unfinished(d))
		import_perf_note(j->notes, "%s ends in the middle of a record", path);
	return 0;
}

static int put_dump(const struct perf_jit *j, struct jitdump *d, const char *path,
		    const struct ordered_record *rec, struct ptc_writer *w, struct pt_error *e)
{
	struct pieces p = {0};
	int ret = read_pieces(j, d, path, &p, e);

	if (ret == 0)
		ret = put_names(&p, jitdump_pid(d), w, e);
	if (ret == 0)
		ret = put_code(j, d, &p, rec, w, e);
	free(p.at);
	return ret;
}

/* Under its name, or beside the recording. 0, or -1: PT_ERR_NO_MEMORY; *ret NULL: it is not there, which
 * is a note. */
static int open_dump(const struct perf_jit *j, const char *name, struct jitdump **ret, char **ret_path,
		     struct pt_error *e)
{
	struct pt_error why = {0};

	*ret = NULL;
	if (path_make(ret_path, e, "%s%s", j->symfs, name))
		return -1;
	if (jitdump_open(ret, *ret_path, &why) == 0)
		return 0;
	if (why.kind == PT_ERR_IO && j->folder) {
		free(*ret_path);
		if (path_make(ret_path, e, "%s%s", j->folder, strrchr(name, '/')))
			return -1;
		if (jitdump_open(ret, *ret_path, &why) == 0)
			return 0;
	}
	if (why.kind == PT_ERR_NO_MEMORY) {
		*e = why;
		return -1;
	}
	import_perf_note(j->notes, "%s: the code that it had is missing", why.message);
	return 0;
}

static int take_dump(struct perf_jit *j, const char *name, const struct ordered_record *rec,
		     struct ptc_writer *w, struct pt_error *e)
{
	struct jitdump *d;
	char *path = NULL;
	int ret = open_dump(j, name, &d, &path, e);

	if (ret == 0 && d)
		ret = put_dump(j, d, path, rec, w, e);
	jitdump_close(d);
	free(path);
	return ret;
}

/* ---- Names ---- */

static bool is_named(const struct perf_jit *j, int32_t pid)
{
	for (size_t i = j->named_count; i > 0; i--)
		if (j->named[i - 1] == pid)
			return true;
	return false;
}

static int read_map(FILE *f, int32_t pid, struct ptc_writer *w, struct pt_error *e)
{
	struct jit_symbols s = {0};
	char *line = NULL;
	size_t room = 0;
	int ret = 0;

	while (ret == 0 && getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		ret = jit_symbols_add_line(&s, line, e);
		if (ret == 0 && s.strings_bytes > SYMBOLS_BYTES_MAX)
			ret = jit_symbols_put(&s, w, pid, e);
	}
	if (ret == 0)
		ret = jit_symbols_put(&s, w, pid, e);
	free(line);
	jit_symbols_deinit(&s);
	return ret;
}

/* /tmp/perf-PID.map, or beside the recording. */
static int take_map(struct perf_jit *j, int32_t pid, struct ptc_writer *w, struct pt_error *e)
{
	struct stat st;
	char *path;
	int fd, ret;
	FILE *f;

	if (pt_array_grow(&j->named, j->named_count, &j->named_room, e) ||
	    path_make(&path, e, "%s/tmp/perf-%d.map", j->symfs, pid))
		return -1;
	j->named[j->named_count++] = pid;
	fd = regular_file_open(path, &st);
	free(path);
	if (fd < 0 && j->folder) {
		if (path_make(&path, e, "%s/perf-%d.map", j->folder, pid))
			return -1;
		fd = regular_file_open(path, &st);
		free(path);
	}
	if (fd < 0)
		return 0;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return pt_fail_no_memory(e, "names of code");
	}
	ret = read_map(f, pid, w, e);
	fclose(f);
	return ret;
}

/* ---- Records ---- */

/* The file name of a jitdump: .../jit-PID.dump. */
static bool is_dump(const char *name)
{
	const char *leaf = strrchr(name, '/');
	size_t digits;

	if (!leaf || strncmp(leaf, "/jit-", 5) != 0)
		return false;
	digits = strspn(leaf + 5, "0123456789");
	return digits > 0 && strcmp(leaf + 5 + digits, ".dump") == 0;
}

/* The name of a process's mapping, NUL-terminated. False: it is none. */
static bool name_of(const struct ordered_record *rec, struct perf_mmap *m, char ret[4096])
{
	if (!perf_mmap_read(rec->bytes, rec->size, m) || m->pid <= 0 || m->name_bytes >= 4096)
		return false;
	memcpy(ret, m->name, m->name_bytes);
	ret[m->name_bytes] = 0;
	return true;
}

bool perf_jit_is_dump(const struct ordered_record *rec, char ret_leaf[32])
{
	struct perf_mmap m;
	char name[4096];

	if (!name_of(rec, &m, name) || !is_dump(name))
		return false;
	snprintf(ret_leaf, 32, "%s", strrchr(name, '/') + 1);
	return true;
}

int perf_jit_mapped(struct perf_jit *j, const struct ordered_record *rec, struct ptc_writer *w,
		    bool *ret_taken, struct pt_error *e)
{
	struct perf_mmap m;
	char name[4096];

	*ret_taken = false;
	if (!name_of(rec, &m, name))
		return 0;
	*ret_taken = is_dump(name);
	if (*ret_taken)
		return take_dump(j, name, rec, w, e);
	return m.executable && name[0] != '[' && (name[0] != '/' || strcmp(name, "//anon") == 0) &&
		       !is_named(j, m.pid)
		   ? take_map(j, m.pid, w, e)
		   : 0;
}
