/*
 * kernel_loads.c - what modules that were loaded have changed in module space, by its pages: see kcore.h,
 * hw_kernel_put_loaded().
 *
 * When they are read a load is some time past, and others may have followed, and may follow meanwhile: a
 * module's initialization has been freed, another module lies where it was. So only a page of a module that was
 * there before and after it was read is what that module's load has put there. What is patched in modules that
 * stay is in TEXT_POKE records.
 */
#include "capture/code/kcore_internal.h"
#include "schema/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE	  ((uint64_t)4096)
#define PIECE	  ((size_t)1 << 20)

#define NOT_KNOWN 0 /* a hash that a page has by chance only */

int kcore_collect_pages(struct module_pages *to, uint64_t address, const uint8_t *bytes, size_t n,
			struct pt_error *e)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at + PAGE <= n; at += PAGE)
		if (!kcore_page_is_unused(bytes + at))
			r = module_pages_add(to, address + at, bytes + at, e);
	return r;
}

/* What the areas' pages hold. 0, or -1: PT_ERR_NO_MEMORY. */
static int read_pages(const struct hw_kernel *k, const struct hw_kernel_area *areas, size_t count,
		      struct module_pages *ret, struct pt_error *e)
{
	uint8_t *buffer = malloc(PIECE);
	int r = buffer ? 0 : pt_fail_no_memory(e, "the kernel's code");

	for (size_t i = 0; r == 0 && i < count; i++) {
		uint64_t at = areas[i].start & ~(PAGE - 1);

		while (r == 0 && at < areas[i].end) {
			size_t n = areas[i].end - at < PIECE ? areas[i].end - at : PIECE,
			       got = kcore_read(k, at, buffer, (n + PAGE - 1) & ~(size_t)(PAGE - 1)) &
				     ~(size_t)(PAGE - 1);

			if (!got)
				break;
			r = kcore_collect_pages(ret, at, buffer, got, e);
			at += got;
		}
	}
	free(buffer);
	module_pages_sort(ret);
	return r;
}

/* ---- Modules ---- */

static int by_start(const void *a, const void *b)
{
	const struct hw_kernel_module *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static uint64_t identity_of(const char *name)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof path, "/sys/module/%s", name);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static uint64_t load_of(const struct hw_module_loads *loads, const char *name)
{
	for (size_t i = loads ? loads->count : 0; i-- > 0;)
		if (strcmp(loads->all[i].name, name) == 0)
			return loads->all[i].time_ns;
	return 0;
}

/* loads NULL: none. */
static int read_modules(const struct hw_kernel *k, const struct hw_module_loads *loads,
			struct hw_kernel_modules *ret, struct pt_error *e)
{
	char name[HW_MODULE_NAME_BYTES];
	uint64_t start, bytes;
	FILE *f = kcore_open_modules(k);
	int r = 0;

	while (f && r == 0 && kcore_next_module(f, name, &start, &bytes)) {
		r = pt_array_grow(&ret->all, ret->count, &ret->room, e);
		if (r == 0)
			ret->all[ret->count++] = (struct hw_kernel_module){
			    start, start + bytes, identity_of(name), load_of(loads, name)};
	}
	if (f)
		fclose(f);
	if (ret->count)
		qsort(ret->all, ret->count, sizeof *ret->all, by_start);
	return r;
}

/*
 * Since Linux 6.4 the size is that of all areas of a module together, of which the first one is its code: that
 * ends at a page that is not there, or where the next module begins.
 */
static void find_ends(struct hw_kernel_modules *m, const struct module_pages *pages)
{
	for (size_t i = 0; i < m->count; i++) {
		uint64_t at = m->all[i].start & ~(PAGE - 1), end = m->all[i].end;

		if (i + 1 < m->count && end > m->all[i + 1].start)
			end = m->all[i + 1].start;
		while (at < end && module_pages_find(pages, at))
			at += PAGE;
		m->all[i].end = at < end ? at : end;
	}
}

int kcore_read_modules(const struct hw_kernel *k, struct hw_kernel_modules *ret, struct pt_error *e)
{
	return read_modules(k, NULL, ret, e);
}

static bool is_among(const struct hw_kernel_module *m, const struct hw_kernel_modules *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->all[i].start == m->start && all->all[i].identity == m->identity)
			return true;
	return false;
}

/* The module whose page it is; NULL: none's. */
static const struct hw_kernel_module *module_at(const struct hw_kernel_modules *m, uint64_t address)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->all[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < m->all[low - 1].end ? &m->all[low - 1] : NULL;
}

/* It was there at the last look, and was not loaded again: it is patched at most, as records say. */
static bool remains(const struct hw_kernel *k, const struct hw_kernel_module *m)
{
	const struct hw_kernel_module *before = module_at(&k->modules, m->start);

	return before && before->start == m->start && before->identity == m->identity && !m->loaded_ns;
}

/* ---- Ranges of pages ---- */

struct look {
	struct hw_kernel *k; /* with what the last look found */
	struct ptc_writer *w;
	const struct hw_module_loads *loads;
	struct hw_kernel_modules modules;
	struct module_pages now;
	uint64_t read_ns;	      /* when that was read; 0: not known */
	struct hw_kernel_area *fresh; /* what is put */
	size_t fresh_count, fresh_room;
};

/* What happens to a page. */
struct fate {
	bool put, unknown;
	uint64_t from_ns; /* put: valid from then on */
};

static bool same_fate(const struct fate *a, const struct fate *b)
{
	return a->put == b->put && a->unknown == b->unknown && a->from_ns == b->from_ns;
}

/* Of a page that is there. */
static struct fate fate_of(const struct look *l, const struct module_page *page)
{
	const struct module_page *before = module_pages_find(&l->k->pages, page->address);
	const struct hw_kernel_module *m = module_at(&l->modules, page->address);
	struct fate f = {.put = true, .unknown = before};

	/* (A page of no module that is the same has been there all the time.) */
	if (before && (m ? remains(l->k, m) : before->hash == page->hash))
		return (struct fate){0};
	if (m && m->loaded_ns)
		f.from_ns = m->loaded_ns;
	else
		f.from_ns = l->read_ns ? l->read_ns : l->loads->all[l->loads->count - 1].time_ns;
	return f;
}

/* Reads n bytes of pages once more, to `to`. What is not as it was is left out, and new at the next look. */
static void read_again(struct look *l, uint64_t start, uint8_t *to, size_t n)
{
	size_t got = kcore_read(l->k, start, to, n);

	memset(to + got, 0, n - got);
	for (size_t at = 0; at < n; at += PAGE) {
		struct module_page *known = module_pages_find(&l->now, start + at);

		if (module_page_hash(to + at) == known->hash)
			continue;
		memset(to + at, 0, PAGE);
		known->hash = NOT_KNOWN;
	}
}

static int put_pages(struct look *l, uint64_t start, uint64_t end, uint64_t from_ns, struct pt_error *e)
{
	uint8_t *buffer = malloc(PIECE);
	int r = buffer ? 0 : pt_fail_no_memory(e, "the kernel's code");

	for (size_t n = 0; r == 0 && start < end; start += n) {
		n = end - start < PIECE ? end - start : PIECE;
		read_again(l, start, buffer, n);
		r = kcore_put_bytes(l->k, l->w, start, buffer, n, from_ns, e);
	}
	free(buffer);
	return r;
}

/* [start, end), pages of one fate. */
static int apply(struct look *l, uint64_t start, uint64_t end, const struct fate *f, struct pt_error *e)
{
	if (f->unknown && l->loads->unknown(l->loads->arg, start, end, l->loads->all[0].time_ns, e))
		return -1;
	if (!f->put)
		return 0;
	if (pt_array_grow(&l->fresh, l->fresh_count, &l->fresh_room, e))
		return -1;
	l->fresh[l->fresh_count++] = (struct hw_kernel_area){start, end, 0};
	return put_pages(l, start, end, f->from_ns, e);
}

static int put_present(struct look *l, struct pt_error *e)
{
	for (size_t i = 0; i < l->now.count;) {
		const struct module_page *page = &l->now.all[i];
		struct fate f = fate_of(l, page), next;
		uint64_t end = page->address + PAGE;

		for (i++; i < l->now.count && l->now.all[i].address == end; i++, end += PAGE) {
			next = fate_of(l, &l->now.all[i]);
			if (!same_fate(&f, &next))
				break;
		}
		if (apply(l, page->address, end, &f, e))
			return -1;
	}
	return 0;
}

static int put_gone(struct look *l, struct pt_error *e)
{
	const struct module_pages *before = &l->k->pages;
	const struct fate gone = {.unknown = true};

	for (size_t i = 0; i < before->count;) {
		uint64_t start = before->all[i].address, end = start;

		while (i < before->count && before->all[i].address == end &&
		       !module_pages_find(&l->now, before->all[i].address)) {
			end += PAGE;
			i++;
		}
		if (end == start)
			i++;
		else if (apply(l, start, end, &gone, e))
			return -1;
	}
	return 0;
}

/* Forgets the pages of modules that were not there all the time while they were read. */
static void leave_out(struct look *l, const struct hw_kernel_modules *some,
		      const struct hw_kernel_modules *others)
{
	size_t n = 0;

	for (size_t i = 0; i < l->now.count; i++) {
		const struct hw_kernel_module *m = module_at(some, l->now.all[i].address);

		if (!m || is_among(m, others))
			l->now.all[n++] = l->now.all[i];
	}
	l->now.count = n;
}

/* What is there, and whose it is: modules before and after their pages. */
static int read_all(struct look *l, struct pt_error *e)
{
	struct hw_kernel_modules before = {0};
	struct hw_kernel_area *areas = NULL;
	size_t count = 0, n = 0;
	int r = read_modules(l->k, NULL, &before, e);

	if (r == 0)
		r = kcore_find_areas(l->k, &areas, &count, e);
	if (r == 0)
		r = read_pages(l->k, areas, count, &l->now, e);
	if (r == 0)
		r = read_modules(l->k, l->loads, &l->modules, e);
	free(areas);
	if (r == 0) {
		l->read_ns = l->loads->now_ns(l->loads->arg);
		find_ends(&before, &l->now);
		find_ends(&l->modules, &l->now);
		leave_out(l, &before, &l->modules);
		leave_out(l, &l->modules, &before);
		for (size_t i = 0; i < l->modules.count; i++)
			if (is_among(&l->modules.all[i], &before))
				l->modules.all[n++] = l->modules.all[i];
		l->modules.count = n;
	}
	free(before.all);
	return r;
}

static void forget_not_known(struct module_pages *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->count; i++)
		if (p->all[i].hash != NOT_KNOWN)
			p->all[n++] = p->all[i];
	p->count = n;
}

int hw_kernel_put_loaded(struct hw_kernel *k, struct ptc_writer *w, const struct hw_module_loads *loads,
			 struct pt_error *e)
{
	struct look l = {.k = k, .w = w, .loads = loads};
	int r;

	if (k->kcore < 0)
		return 0;
	r = read_all(&l, e);
	if (r == 0)
		r = put_gone(&l, e) || put_present(&l, e) ? -1 : 0;
	/* Once for all of them: kallsyms takes its time. */
	if (r == 0 && l.fresh_count)
		r = kcore_put_symbols(k, w, l.fresh, l.fresh_count, e) ||
			    kcore_put_modules(k, w, l.fresh, l.fresh_count, e)
			? -1
			: 0;
	free(l.fresh);
	module_pages_deinit(&k->pages);
	forget_not_known(&l.now);
	k->pages = l.now;
	free(k->modules.all);
	k->modules = l.modules;
	return r;
}
