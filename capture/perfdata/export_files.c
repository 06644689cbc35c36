/* export_files.c - see export_files.h. */
#include "capture/perfdata/export_files.h"
#include "capture/perfdata/path.h"
#include "schema/array.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MACHINES_MAX 1024
#define PAGE	     4096u

/* Opens the machine's perf.data. */
static int open_data(const struct export_files *f, struct export_machine *m, struct pt_error *e)
{
	if (output_open(&m->out, f->to, "a perf.data", e))
		return -1;
	if (lseek(m->out.fd, 0, SEEK_CUR) < 0)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is no file: a perf.data cannot be written to a pipe", f->to);
	return perf_data_begin(&m->data, m->out.fd, f->to, m->pid, f->meta, e);
}

/* The machine's index; f->count: it is not there. */
static size_t find(const struct export_files *f, int32_t pid)
{
	size_t i = 0;

	while (i < f->count && f->all[i]->pid != pid)
		i++;
	return i;
}

struct export_machine *export_files_of(struct export_files *f, int32_t pid, struct pt_error *e)
{
	size_t known = find(f, pid);
	struct export_machine *m;

	if (known < f->count)
		return f->all[known];
	if (f->count == MACHINES_MAX) {
		pt_fail(e, PT_ERR_BAD_INPUT, PT_NO_OFFSET, "records of more than %d guests", MACHINES_MAX);
		return NULL;
	}
	if (pt_array_grow(&f->all, f->count, &f->room, e))
		return NULL;
	m = calloc(1, sizeof *m);
	if (!m) {
		pt_fail_no_memory(e, "the perf.data");
		return NULL;
	}
	m->pid = pid;
	f->all[f->count++] = m;
	return open_data(f, m, e) ? NULL : m;
}

int export_files_event(struct export_files *f, const struct ptc_attr *attr, bool is_pt, struct pt_error *e)
{
	struct export_machine *m = export_files_of(f, attr->machine_pid, e);

	if (!m || pt_array_grow(&f->attrs, f->attr_count, &f->attr_room, e))
		return -1;
	f->attrs[f->attr_count++] = (struct export_attr){.machine = (uint32_t)find(f, attr->machine_pid),
							 .event = (uint32_t)m->data.contents.event_count};
	return perf_data_event(&m->data, attr, is_pt, e);
}

/* The kernel's mapping, when no record has it. */
static int put_kernel_map(struct export_machine *m, struct pt_error *e)
{
	const struct perf_kcore *k = &m->kcore;
	uint64_t start = k->stext ? k->stext : k->code_start, end = k->etext;

	if (k->has_map || !perf_kcore_has_code(k))
		return 0;
	for (size_t i = 0; i < k->count; i++)
		if (end <= start && k->pieces[i].start <= start && start < k->pieces[i].end)
			end = k->pieces[i].end;
	return perf_data_kernel(&m->data, start, (end + PAGE - 1) / PAGE * PAGE, k->text ? k->text : start,
				e);
}

/* Whether there is anything of the guest. */
static bool has_any(const struct export_machine *m)
{
	return m->data.contents.event_count > 0 || perf_kcore_has_code(&m->kcore);
}

/* FOLDER/data and FOLDER/kcore_dir. */
static int commit_folder(struct export_machine *m, const char *folder, struct pt_error *e)
{
	char *path;
	int ret;

	if (mkdir(folder, 0700))
		return pt_fail_errno(e, "cannot make the folder %s", folder);
	if (path_make(&path, e, "%s/data", folder))
		return -1;
	free(m->out.path);
	m->out.path = path;
	if (output_commit(&m->out, e))
		return -1;
	if (!perf_kcore_has_code(&m->kcore))
		return 0;
	if (path_make(&path, e, "%s/kcore_dir", folder))
		return -1;
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
	if (path_make(&path, e, "%s/guest__%" PRId32, folder, m->pid))
		return -1;
	ret = commit_folder(m, path, e);
	free(path);
	return ret;
}

/* Removes what commit_folder() has made for the machine; the host (0) last. */
static void remove_folder(const char *folder, int32_t pid)
{
	static const char *const parts[] = {
	    "data", "kcore_dir/kcore", "kcore_dir/kallsyms", "kcore_dir/modules", "kcore_dir", ""};
	char inner[32] = "", *path;

	if (pid)
		snprintf(inner, sizeof inner, "guest__%" PRId32 "/", pid);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (asprintf(&path, "%s/%s%s", folder, inner, parts[i]) >= 0) {
			remove(path);
			free(path);
		}
}

/* The folder takes the place of `to`, which may be a file. */
static int take_place(const char *folder, const char *to, struct pt_error *e)
{
	if (renameat2(AT_FDCWD, folder, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EEXIST || renameat2(AT_FDCWD, folder, AT_FDCWD, to, RENAME_EXCHANGE))
		return pt_fail_errno(e, "cannot name the output %s", to);
	unlink(folder); /* the file that was there */
	return 0;
}

/* Makes all of it under a name of its own first. */
static int commit_all(struct export_files *f, const char *to, struct pt_error *e)
{
	char *folder;
	int ret;

	if (path_make(&folder, e, "%s.%d", to, (int)getpid()))
		return -1;
	ret = commit_folder(f->all[0], folder, e);
	for (size_t i = 1; i < f->count && ret == 0; i++)
		ret = commit_guest(f->all[i], folder, e);
	if (ret == 0)
		ret = take_place(folder, to, e);
	for (size_t i = f->count; ret && i-- > 0;)
		remove_folder(folder, f->all[i]->pid);
	free(folder);
	return ret;
}

/* (The host's output has its path until it is committed.) */
static int commit_as_folder(struct export_files *f, struct pt_error *e)
{
	char *to;
	int ret;

	if (!f->all[0]->out.path)
		return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
			       "%s is no file: with kernel code or guests, a folder is to be written", f->to);
	if (path_make(&to, e, "%s", f->all[0]->out.path))
		return -1;
	ret = commit_all(f, to, e);
	free(to);
	return ret;
}

int export_files_commit(struct export_files *f, struct pt_error *e)
{
	bool more = false;

	for (size_t i = 0; i < f->count; i++) {
		struct export_machine *m = f->all[i];

		if (put_kernel_map(m, e) || perf_data_finish(&m->data, e))
			return -1;
		more = more || perf_kcore_has_code(&m->kcore) || (i > 0 && has_any(m));
	}
	return more ? commit_as_folder(f, e) : output_commit(&f->all[0]->out, e);
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
	free(f->attrs);
	*f = (struct export_files){0};
}
