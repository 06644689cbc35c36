/* export_files.c - see export_files.h. */
#include "capture/perfdata/export_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MACHINES_MAX 1024
#define PAGE	     4096u

struct export_machine *export_files_of(struct export_files *f, int32_t pid, struct pt_error *e)
{
	struct export_machine **grown, *m;

	for (size_t i = 0; i < f->count; i++)
		if (f->all[i]->pid == pid)
			return f->all[i];
	if (f->count == MACHINES_MAX) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "records of more than %d guests", MACHINES_MAX);
		return NULL;
	}
	grown = realloc(f->all, (f->count + 1) * sizeof(struct export_machine *));
	if (grown)
		f->all = grown;
	m = grown ? calloc(1, sizeof *m) : NULL;
	if (!m) {
		pt_fail_no_memory(e, "the perf.data");
		return NULL;
	}
	m->pid = pid;
	f->all[f->count++] = m;
	if (output_open_private(&m->out, f->to, "a perf.data", e))
		return NULL;
	if (lseek(m->out.fd, 0, SEEK_CUR) < 0) {
		pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			"%s is no file: a perf.data cannot be written to a pipe", f->to);
		return NULL;
	}
	return perf_data_begin(&m->data, m->out.fd, pid, e) ? NULL : m;
}

int export_files_event(struct export_files *f, const struct ptc_attr *attr, bool is_pt, struct pt_error *e)
{
	struct export_machine *m = export_files_of(f, attr->machine_pid, e);
	uint32_t *machines, *events, room = f->attr_count + 64;

	if (!m)
		return -1;
	if (f->attr_count % 64 == 0) {
		machines = realloc(f->machine_of, room * sizeof *machines);
		if (machines)
			f->machine_of = machines;
		events = realloc(f->event_of, room * sizeof *events);
		if (events)
			f->event_of = events;
		if (!machines || !events)
			return pt_fail_no_memory(e, "the perf.data");
	}
	for (uint32_t i = 0; i < f->count; i++)
		if (f->all[i] == m)
			f->machine_of[f->attr_count] = i;
	f->event_of[f->attr_count++] = m->data.event_count;
	return perf_data_event(&m->data, attr, is_pt, e);
}

/* The kernel's mapping, when no record told it. */
static int put_kernel_map(struct export_machine *m, const struct ptc_meta *meta, struct pt_error *e)
{
	const struct perf_kcore *k = &m->kcore;
	uint64_t start = k->stext ? k->stext : k->code_start, end = k->etext;

	if (k->has_map || !perf_kcore_there(k))
		return 0;
	for (size_t i = 0; i < k->count; i++)
		if (end <= start && k->pieces[i].start <= start && start < k->pieces[i].end)
			end = k->pieces[i].end;
	return perf_data_kernel(&m->data, meta, start, (end + PAGE - 1) / PAGE * PAGE,
				k->text ? k->text : start, e);
}

/* Whether there is anything of the guest. */
static bool has_any(const struct export_machine *m)
{
	return m->data.event_count > 0 || perf_kcore_there(&m->kcore);
}

/* FOLDER/data and FOLDER/kcore_dir. */
static int commit_folder(struct export_machine *m, const char *folder, struct pt_error *e)
{
	char *path;
	int ret;

	if (mkdir(folder, 0700))
		return pt_fail_errno(e, "cannot make the folder %s", folder);
	if (asprintf(&path, "%s/data", folder) < 0)
		return pt_fail_no_memory(e, "the perf.data");
	free(m->out.path);
	m->out.path = path;
	if (output_commit(&m->out, e))
		return -1;
	if (!perf_kcore_there(&m->kcore))
		return 0;
	if (asprintf(&path, "%s/kcore_dir", folder) < 0)
		return pt_fail_no_memory(e, "the perf.data");
	ret = perf_kcore_commit(&m->kcore, path, e);
	free(path);
	return ret;
}

static int commit_guest(struct export_machine *m, const char *folder, struct pt_error *e)
{
	char *path;
	int ret;

	if (!has_any(m))
		return 0;
	if (asprintf(&path, "%s/guest__%" PRId32, folder, m->pid) < 0)
		return pt_fail_no_memory(e, "the perf.data");
	ret = commit_folder(m, path, e);
	free(path);
	return ret;
}

/* Takes away what commit_folder() has made. */
static void remove_folder(const char *folder, bool guest, int32_t pid)
{
	static const char *const parts[] = {
	    "data", "kcore_dir/kcore", "kcore_dir/kallsyms", "kcore_dir/modules", "kcore_dir", ""};
	char inner[32] = "", *path;

	if (guest)
		snprintf(inner, sizeof inner, "guest__%" PRId32 "/", pid);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (asprintf(&path, "%s/%s%s", folder, inner, parts[i]) >= 0) {
			remove(path);
			free(path);
		}
}

/* All of it under a name of its own first; then that takes its place. What was there before was a file. */
static int commit_all(struct export_files *f, struct pt_error *e)
{
	char *to = f->all[0]->out.path ? strdup(f->all[0]->out.path) : NULL, *folder;
	int ret = 0;

	if (!to)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is no file: with kernel code or guests, a folder is to be written", f->to);
	if (asprintf(&folder, "%s.%d", to, (int)getpid()) < 0) {
		free(to);
		return pt_fail_no_memory(e, "the perf.data");
	}
	ret = commit_folder(f->all[0], folder, e);
	for (size_t i = 1; i < f->count && ret == 0; i++)
		ret = commit_guest(f->all[i], folder, e);
	if (ret == 0 && renameat2(AT_FDCWD, folder, AT_FDCWD, to, RENAME_NOREPLACE)) {
		if (errno != EEXIST || renameat2(AT_FDCWD, folder, AT_FDCWD, to, RENAME_EXCHANGE))
			ret = pt_fail_errno(e, "cannot name the output %s", to);
		else
			unlink(folder); /* the file that was there */
	}
	if (ret) {
		for (size_t i = f->count; i-- > 0;)
			remove_folder(folder, i > 0, f->all[i]->pid);
	}
	free(folder);
	free(to);
	return ret;
}

int export_files_commit(struct export_files *f, const struct ptc_meta *meta, struct pt_error *e)
{
	bool more = false;

	for (size_t i = 0; i < f->count; i++) {
		struct export_machine *m = f->all[i];

		if (put_kernel_map(m, meta, e) || perf_data_finish(&m->data, meta, e))
			return -1;
		more = more || perf_kcore_there(&m->kcore) || (i > 0 && has_any(m));
	}
	return more ? commit_all(f, e) : output_commit(&f->all[0]->out, e);
}

void export_files_deinit(struct export_files *f)
{
	for (size_t i = 0; i < f->count; i++) {
		perf_data_deinit(&f->all[i]->data);
		perf_kcore_deinit(&f->all[i]->kcore);
		if (f->all[i]->out.path || f->all[i]->out.fd > STDERR_FILENO)
			output_abort(&f->all[i]->out);
		free(f->all[i]);
	}
	free(f->all);
	free(f->machine_of);
	free(f->event_of);
	*f = (struct export_files){0};
}
