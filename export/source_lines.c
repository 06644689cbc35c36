/* source_lines.c - see source_lines.h. */
#include "export/source_lines.h"

#include <stdlib.h>
#include <string.h>

#include "schema/array.h"
#include "schema/thread.h"

struct dwfl_of_dso;

struct dso {
	char *name, *build_id;
	bool asked; /* for a line: it is opened, and the caller's alone */
	int status; /* of opening it: 0, or -1 and the error */
	struct pt_error error;
	struct dwfl_of_dso *dwarf; /* NULL: there is none */
};

struct symbol {
	uint64_t base;
	uint32_t dso;
};

struct source_lines {
	struct dso *dsos; /* number n at n - 1 */
	struct symbol *symbols;
	size_t dso_count, dso_room, symbol_count, symbol_room;

	bool has_thread; /* which opens dsos, one after the other */
	pthread_t thread;
	pthread_mutex_t mutex; /* of what follows */
	pthread_cond_t cond;   /* opened has grown */
	size_t opened;
	bool ends; /* no more of them */
};

#ifdef HAVE_LIBDW

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "export/inlined_calls.h"
#include "schema/hash.h"

/* A compilation unit of which anything was found. */
struct unit {
	Dwarf_Off offset;
	struct inlined_calls *inlined;
};

struct dwfl_of_dso {
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf_Addr bias;       /* of the file's addresses */
	Dwarf_Addr dwarf_bias; /* of those in the DWARF, which may be another file's */
	Dwarf_Addr low, high;  /* a range of units[at], that held what was found last */
	size_t at;
	struct unit *units;
	size_t unit_count, unit_room;
	struct pt_hash by_offset; /* number n is units[n - 1] */
};

/* The file is there, is a file, and has that build id. */
static bool is_the_file(const struct dso *dso, int fd)
{
	char hex[3] = "";
	const void *id;
	struct stat st;
	ssize_t bytes;
	bool same;
	Elf *elf;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bytes = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
	same = bytes > 0 && strlen(dso->build_id) == 2 * (size_t)bytes;
	for (ssize_t i = 0; same && i < bytes; i++) {
		snprintf(hex, sizeof hex, "%02x", ((const uint8_t *)id)[i]);
		same = !memcmp(hex, dso->build_id + 2 * i, 2);
	}
	elf_end(elf);
	return same;
}

static void close_dwarf(struct dwfl_of_dso *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->unit_count; i++)
		inlined_calls_destroy(d->units[i].inlined);
	dwfl_end(d->dwfl);
	pt_hash_deinit(&d->by_offset);
	free(d->units);
	free(d);
}

static void close_dwarf_keeping_errno(struct dwfl_of_dso *d, int fd)
{
	int error = errno;

	close_dwarf(d);
	if (fd >= 0)
		close(fd);
	errno = error;
}

/* A file that could have been read at another time: what lines the trace has must not depend on that. */
static int refused(const struct dso *dso, int error, struct pt_error *e)
{
	if (pt_errno_may_pass(error))
		return pt_fail(e, error == ENOMEM ? PT_ERR_NO_MEMORY : PT_ERR_IO, PT_NO_OFFSET,
			       "cannot read the source lines of %s: %s", dso->name, strerror(error));
	return 0;
}

/* text: of an error, NULL none. */
static bool is_no_memory(const char *text)
{
	return text && strstr(text, "out of memory");
}

/* What libdwfl's last failure was, if it was want of memory: else what the system's was. 0: it has failed in
 * nothing, there is no code at the address; whatever is in errno (under valgrind, ENOMEM). */
static int last_error(void)
{
	int error = errno, number = dwfl_errno();
	const char *text = number ? dwfl_errmsg(number) : NULL;

	if (text && strstr(text, "address out of range"))
		return 0;
	return is_no_memory(text) ? ENOMEM : error;
}

/* Why a file of debug information could not be opened now: libdwfl goes on to its next place then, and
 * forgets it. */
static int find_error;

static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **ret_file)
{
	int fd;

	errno = 0;
	fd = dwfl_build_id_find_debuginfo(module, user, name, base, file, link, crc, ret_file);
	if (fd >= 0)
		return fd;
	if (pt_errno_may_pass(errno))
		find_error = errno;
	return dwfl_standard_find_debuginfo(module, user, name, base, file, link, crc, ret_file);
}

/*
 * libdw leaves out a section that libelf could not decompress, and returns the others. *ret_partial: that
 * happened, for which the file is to blame, or zlib had no memory. False: libelf had none.
 */
static bool get_dwarf(struct dwfl_of_dso *d, bool *ret_partial)
{
	const char *text;

	elf_errno(); /* which forgets it */
	if (!dwfl_module_getelf(d->module, &d->bias) || !dwfl_module_getdwarf(d->module, &(Dwarf_Addr){0}))
		return false;
	text = elf_errmsg(elf_errno());
	*ret_partial = text && strstr(text, "cannot decompress");
	if (!is_no_memory(text))
		return true;
	errno = ENOMEM;
	return false;
}

/* NULL: there is no such file, or it has no lines; last_error() says why. fd: of the file, which becomes
 * libdwfl's. *ret_partial: as above. */
static struct dwfl_of_dso *open_dwarf(const struct dso *dso, int fd, bool *ret_partial)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
						 .find_debuginfo = find_debuginfo,
						 .section_address = dwfl_offline_section_address};
	struct dwfl_of_dso *d = calloc(1, sizeof *d);

	if (d)
		d->dwfl = dwfl_begin(&callbacks);
	if (d && d->dwfl)
		d->module = dwfl_report_offline(d->dwfl, dso->name, dso->name, fd);
	if (!d || !d->module) {
		close_dwarf_keeping_errno(d, fd);
		return NULL;
	}
	dwfl_report_end(d->dwfl, NULL, NULL);
	if (get_dwarf(d, ret_partial))
		return d;
	close_dwarf_keeping_errno(d, -1);
	return NULL;
}

/* dso->dwarf is what there is. *ret_partial: as above. 0, or -1: it could not be read now. */
static int try_dwarf(struct dso *dso, bool *ret_partial, struct pt_error *e)
{
	int fd = open(dso->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	*ret_partial = false;
	if (fd < 0)
		return refused(dso, errno, e);
	errno = find_error = 0;
	if (is_the_file(dso, fd))
		dso->dwarf = open_dwarf(dso, fd, ret_partial);
	else
		close_dwarf_keeping_errno(NULL, fd);
	if (find_error)
		return refused(dso, find_error, e);
	return dso->dwarf ? 0 : refused(dso, last_error(), e);
}

static int look_for_dwarf(struct dso *dso, struct pt_error *e)
{
	struct stat st;
	bool partial;

	if (dso->name[0] != '/' || !dso->build_id[0])
		return 0;
	/* A trace may name anything: a FIFO or a device is not opened. */
	if (stat(dso->name, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (try_dwarf(dso, &partial, e) < 0)
		return -1;
	if (!partial)
		return 0;
	/* A damaged file is that again. */
	close_dwarf(dso->dwarf);
	dso->dwarf = NULL;
	return try_dwarf(dso, &partial, e);
}

static void open_dso(struct dso *dso)
{
	dso->status = look_for_dwarf(dso, &dso->error);
}

static void *open_ahead(void *arg)
{
	struct source_lines *l = arg;

	pthread_mutex_lock(&l->mutex);
	while (l->opened < l->dso_count && !l->ends) {
		struct dso *dso = &l->dsos[l->opened];

		pthread_mutex_unlock(&l->mutex);
		open_dso(dso);
		pthread_mutex_lock(&l->mutex);
		l->opened++;
		pthread_cond_signal(&l->cond);
	}
	pthread_mutex_unlock(&l->mutex);
	return NULL;
}

void source_lines_open_ahead(struct source_lines *l)
{
	l->has_thread = pt_thread_create(&l->thread, NULL, open_ahead, l) == 0;
}

static void wait_for_dso(struct source_lines *l, size_t at)
{
	pthread_mutex_lock(&l->mutex);
	while (l->opened <= at)
		pthread_cond_wait(&l->cond, &l->mutex);
	pthread_mutex_unlock(&l->mutex);
}

static uint64_t key_of_unit(const void *units, uint32_t n)
{
	return pt_hash_mix(((const struct unit *)units)[n - 1].offset);
}

/* d->at becomes the unit's. 0, or -1 (PT_ERR_NO_MEMORY). */
static int note_unit(struct dwfl_of_dso *d, Dwarf_Die *unit, struct pt_error *e)
{
	struct unit new = {.offset = dwarf_dieoffset(unit)};
	uint64_t key = pt_hash_mix(new.offset);
	uint32_t n;

	if (!d->by_offset.slots && pt_hash_init(&d->by_offset, 6, e) < 0)
		return -1;
	for (uint32_t i = pt_hash_first(&d->by_offset, key); (n = d->by_offset.slots[i]);
	     i = pt_hash_next(&d->by_offset, i)) {
		d->at = n - 1;
		if (d->units[d->at].offset == new.offset)
			return 0;
	}
	if (pt_array_grow(&d->units, d->unit_count, &d->unit_room, e) < 0)
		return -1;
	new.inlined = inlined_calls_read(unit, e);
	if (!new.inlined)
		return -1;
	d->at = d->unit_count++;
	d->units[d->at] = new;
	return pt_hash_insert(&d->by_offset, key, (uint32_t)d->unit_count, key_of_unit, d->units, e);
}

/*
 * Whether a compilation unit has the address: between the code of two, dwfl_module_getsrc() takes the last
 * line of the first one. Then it is units[at]. 1 or 0, or -1 (PT_ERR_NO_MEMORY).
 */
static int find_unit(struct dwfl_of_dso *d, uint64_t address, struct pt_error *e)
{
	Dwarf_Addr bias, base, low, high;
	Dwarf_Die *unit;
	ptrdiff_t at = 0;

	if (address >= d->low && address < d->high)
		return 1;
	unit = dwfl_module_addrdie(d->module, address, &bias);
	if (!unit)
		return 0;
	while ((at = dwarf_ranges(unit, at, &base, &low, &high)) > 0 &&
	       (address - bias < low || address - bias >= high))
		;
	if (at <= 0)
		return 0;
	d->low = low + bias;
	d->high = high + bias;
	d->dwarf_bias = bias;
	return note_unit(d, unit, e) < 0 ? -1 : 1;
}

static int find(struct source_lines *l, size_t at, uint64_t address, struct source_line *ret,
		struct pt_error *e)
{
	struct dso *dso = &l->dsos[at];
	struct dwfl_of_dso *d;
	Dwfl_Line *line = NULL;
	int number = 0, has_unit;

	*ret = (struct source_line){.folder = ""};
	if (!dso->asked) {
		if (l->has_thread)
			wait_for_dso(l, at);
		else
			open_dso(dso);
		dso->asked = true;
	}
	if (dso->status < 0) {
		*e = dso->error;
		return -1;
	}
	d = dso->dwarf;
	if (!d)
		return 0;
	dwfl_errno(); /* which forgets it */
	errno = 0;
	has_unit = find_unit(d, address + d->bias, e);
	if (has_unit < 0)
		return -1;
	if (has_unit)
		line = dwfl_module_getsrc(d->module, address + d->bias);
	if (!line)
		return refused(dso, last_error(), e);
	ret->file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	if (!ret->file || number <= 0)
		return 0;
	ret->line = (uint32_t)number;
	if (ret->file[0] != '/')
		ret->folder = dwfl_line_comp_dir(line);
	if (!ret->folder)
		ret->folder = "";
	ret->inlined = inlined_calls_find(d->units[d->at].inlined, address + d->bias - d->dwarf_bias);
	return 1;
}

static int by_offset(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

typedef int each_fn(void *arg, const struct source_line *line, struct pt_error *e);

/* A row of the line table. One that another row follows at the same address has no code. */
static int tell_row(Dwarf_Lines *lines, size_t i, size_t n, const char *folder, each_fn *each, void *arg,
		    struct pt_error *e)
{
	Dwarf_Line *line = dwarf_onesrcline(lines, i),
		   *next = i + 1 < n ? dwarf_onesrcline(lines, i + 1) : NULL;
	struct source_line ret = {.folder = "", .file = dwarf_linesrc(line, NULL, NULL)};
	Dwarf_Addr address = 0, after = 0;
	bool ends = false;
	int number = 0;

	dwarf_lineno(line, &number);
	dwarf_lineaddr(line, &address);
	dwarf_lineendsequence(line, &ends);
	if (next)
		dwarf_lineaddr(next, &after);
	if (number <= 0 || !ret.file || ends || !address || !next || after == address)
		return 0;
	if (ret.file[0] != '/')
		ret.folder = folder;
	ret.line = (uint32_t)number;
	return each(arg, &ret, e);
}

static int tell_all(struct dwfl_of_dso *d, each_fn *each, void *arg, struct pt_error *e)
{
	Dwarf_Addr bias;
	Dwarf *dwarf = dwfl_module_getdwarf(d->module, &bias);

	if (d->unit_count)
		qsort(d->units, d->unit_count, sizeof *d->units, by_offset);
	for (size_t i = 0; i < d->unit_count; i++) {
		const char *folder = NULL;
		Dwarf_Attribute attribute;
		Dwarf_Lines *lines;
		Dwarf_Die unit;
		size_t n;

		if (!dwarf_offdie(dwarf, d->units[i].offset, &unit) ||
		    dwarf_getsrclines(&unit, &lines, &n) != 0)
			continue;
		if (dwarf_attr(&unit, DW_AT_comp_dir, &attribute))
			folder = dwarf_formstring(&attribute);
		for (size_t k = 0; k < n; k++)
			if (tell_row(lines, k, n, folder ? folder : "", each, arg, e) < 0)
				return -1;
	}
	return 0;
}

#else

typedef int each_fn(void *arg, const struct source_line *line, struct pt_error *e);

static int tell_all(struct dwfl_of_dso *d, each_fn *each, void *arg, struct pt_error *e)
{
	(void)d, (void)each, (void)arg, (void)e;
	return 0;
}

static void close_dwarf(struct dwfl_of_dso *d)
{
	(void)d;
}

static int find(struct source_lines *l, size_t at, uint64_t address, struct source_line *ret,
		struct pt_error *e)
{
	(void)l, (void)at, (void)address, (void)ret, (void)e;
	return 0;
}

void source_lines_open_ahead(struct source_lines *l)
{
	(void)l;
}

#endif

struct source_lines *source_lines_create(struct pt_error *e)
{
	struct source_lines *l = calloc(1, sizeof *l);

	if (!l) {
		pt_fail_no_memory(e, NULL);
		return NULL;
	}
	pthread_mutex_init(&l->mutex, NULL);
	pthread_cond_init(&l->cond, NULL);
	return l;
}

static void end_thread(struct source_lines *l)
{
	if (!l->has_thread)
		return;
	pthread_mutex_lock(&l->mutex);
	l->ends = true;
	pthread_mutex_unlock(&l->mutex);
	pthread_join(l->thread, NULL);
}

void source_lines_destroy(struct source_lines *l)
{
	if (!l)
		return;
	end_thread(l);
	pthread_cond_destroy(&l->cond);
	pthread_mutex_destroy(&l->mutex);
	for (size_t i = 0; i < l->dso_count; i++) {
		close_dwarf(l->dsos[i].dwarf);
		free(l->dsos[i].name);
		free(l->dsos[i].build_id);
	}
	free(l->dsos);
	free(l->symbols);
	free(l);
}

int source_lines_dso(struct source_lines *l, const struct ptr_dso *dso, struct pt_error *e)
{
	struct dso *d;

	if (pt_array_grow(&l->dsos, l->dso_count, &l->dso_room, e) < 0)
		return -1;
	d = &l->dsos[l->dso_count++];
	*d = (struct dso){.name = strdup(dso->name), .build_id = strdup(dso->build_id)};
	return d->name && d->build_id ? 0 : pt_fail_no_memory(e, NULL);
}

int source_lines_symbol(struct source_lines *l, const struct ptr_symbol *symbol, struct pt_error *e)
{
	if (pt_array_grow(&l->symbols, l->symbol_count, &l->symbol_room, e) < 0)
		return -1;
	l->symbols[l->symbol_count++] = (struct symbol){.base = symbol->base, .dso = symbol->dso};
	return 0;
}

int source_lines_find(struct source_lines *l, uint32_t symbol, uint64_t ip, struct source_line *ret,
		      struct pt_error *e)
{
	const struct symbol *s;

	if (!symbol)
		return 0;
	s = &l->symbols[symbol - 1];
	if (!s->dso || s->base == PTR_UNKNOWN)
		return 0;
	return find(l, s->dso - 1, ip - s->base, ret, e);
}

int source_lines_all(struct source_lines *l,
		     int (*each)(void *arg, const struct source_line *line, struct pt_error *e), void *arg,
		     struct pt_error *e)
{
	for (size_t i = 0; i < l->dso_count; i++)
		if (l->dsos[i].asked && l->dsos[i].dwarf && tell_all(l->dsos[i].dwarf, each, arg, e) < 0)
			return -1;
	return 0;
}
