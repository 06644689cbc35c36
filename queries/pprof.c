/* pprof.c - see pprof.h. */
#include "queries/pprof.h"

#ifdef HAVE_PROTOBUF_C

#include <pprof.pb-c.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "queries/stacks.h"

#define GZIP_WINDOW (15 + 16) /* zlib: the largest window, and gzip's header */

/* The messages of a profile: as many functions and locations as frames. */
struct profile {
	Perftools__Profiles__Profile profile;
	Perftools__Profiles__ValueType type, *types;
	Perftools__Profiles__Sample *samples, **sample_list;
	Perftools__Profiles__Line *lines, **line_list;
	Perftools__Profiles__Location *locations, **location_list;
	Perftools__Profiles__Function *functions, **function_list;
	uint64_t *ids; /* of the samples' locations, the innermost first */
	char **strings;
};

enum { STRING_EMPTY, STRING_TYPE, STRING_UNIT, STRINGS }; /* and then the frames */

static int allocate(struct profile *p, const struct stacks *s, struct pt_error *e)
{
	size_t frames = s->frame_count + 1, samples = s->weight_count + 1;

	p->samples = calloc(samples, sizeof *p->samples);
	p->sample_list = calloc(samples, sizeof(void *));
	p->lines = calloc(frames, sizeof *p->lines);
	p->line_list = calloc(frames, sizeof(void *));
	p->locations = calloc(frames, sizeof *p->locations);
	p->location_list = calloc(frames, sizeof(void *));
	p->functions = calloc(frames, sizeof *p->functions);
	p->function_list = calloc(frames, sizeof(void *));
	p->ids = calloc(s->stack_count + 1, sizeof *p->ids);
	p->strings = calloc(frames + STRINGS, sizeof *p->strings);
	return p->samples && p->sample_list && p->lines && p->line_list && p->locations && p->location_list &&
		       p->functions && p->function_list && p->ids && p->strings
		   ? 0
		   : pt_fail_no_memory(e, "the profile");
}

static void deinit(struct profile *p)
{
	free(p->samples);
	free(p->sample_list);
	free(p->lines);
	free(p->line_list);
	free(p->locations);
	free(p->location_list);
	free(p->functions);
	free(p->function_list);
	free(p->ids);
	free(p->strings);
}

static void set_frames(struct profile *p, const struct stacks *s)
{
	for (size_t i = 0; i < s->frame_count; i++) {
		perftools__profiles__line__init(&p->lines[i]);
		perftools__profiles__location__init(&p->locations[i]);
		perftools__profiles__function__init(&p->functions[i]);
		p->strings[STRINGS + i] = s->frames[i];
		p->functions[i].has_id = p->functions[i].has_name = p->functions[i].has_system_name = 1;
		p->functions[i].id = i + 1;
		p->functions[i].name = p->functions[i].system_name = (int64_t)(STRINGS + i);
		p->lines[i].has_function_id = 1;
		p->lines[i].function_id = i + 1;
		p->line_list[i] = &p->lines[i];
		p->locations[i].has_id = 1;
		p->locations[i].id = i + 1;
		p->locations[i].n_line = 1;
		p->locations[i].line = &p->line_list[i];
		p->location_list[i] = &p->locations[i];
		p->function_list[i] = &p->functions[i];
	}
	p->profile.n_location = p->profile.n_function = s->frame_count;
	p->profile.location = p->location_list;
	p->profile.function = p->function_list;
}

static void set_samples(struct profile *p, struct stacks *s)
{
	size_t at = 0;

	for (size_t i = 0; i < s->weight_count; i++) {
		uint32_t n = s->stacks[at];

		perftools__profiles__sample__init(&p->samples[i]);
		for (uint32_t k = 0; k < n; k++)
			p->ids[at + k] = s->stacks[at + n - k];
		p->samples[i].n_location_id = n;
		p->samples[i].location_id = &p->ids[at];
		p->samples[i].n_value = 1;
		p->samples[i].value = &s->weights[i];
		p->sample_list[i] = &p->samples[i];
		at += n + 1;
	}
	p->profile.n_sample = s->weight_count;
	p->profile.sample = p->sample_list;
}

static void set_type(struct profile *p, const char *column)
{
	size_t n = strlen(column);

	perftools__profiles__value_type__init(&p->type);
	p->type.has_type = p->type.has_unit = 1;
	p->type.type = STRING_TYPE;
	p->type.unit = STRING_UNIT;
	p->types = &p->type;
	p->profile.n_sample_type = 1;
	p->profile.sample_type = &p->types;
	p->strings[STRING_EMPTY] = (char *)"";
	p->strings[STRING_TYPE] = (char *)column;
	p->strings[STRING_UNIT] = (char *)(n > 3 && !strcmp(column + n - 3, "_ns") ? "nanoseconds" : "count");
}

static int compress_to(FILE *out, uint8_t *bytes, size_t n, struct pt_error *e)
{
	z_stream z = {.next_in = bytes};
	uint8_t packed[65536];
	int ret;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return pt_fail_no_memory(e, "the profile");
	do {
		if (!z.avail_in) {
			z.avail_in = n < (1 << 30) ? (uInt)n : 1 << 30;
			n -= z.avail_in;
		}
		z.next_out = packed;
		z.avail_out = sizeof packed;
		ret = deflate(&z, n ? Z_NO_FLUSH : Z_FINISH);
		fwrite(packed, 1, sizeof packed - z.avail_out, out);
	} while (ret != Z_STREAM_END);
	deflateEnd(&z);
	return 0;
}

static int write_profile(struct stacks *s, const char *column, FILE *out, struct pt_error *e)
{
	struct profile p = {.profile = PERFTOOLS__PROFILES__PROFILE__INIT};
	uint8_t *bytes = NULL;
	size_t n;
	int ret = allocate(&p, s, e);

	if (!ret) {
		set_type(&p, column);
		set_frames(&p, s);
		set_samples(&p, s);
		p.profile.n_string_table = STRINGS + s->frame_count;
		p.profile.string_table = p.strings;
		n = perftools__profiles__profile__get_packed_size(&p.profile);
		bytes = malloc(n + 1);
		ret = bytes ? 0 : pt_fail_no_memory(e, "the profile");
	}
	if (!ret) {
		perftools__profiles__profile__pack(&p.profile, bytes);
		ret = compress_to(out, bytes, n, e);
	}
	free(bytes);
	deinit(&p);
	return ret;
}

int pprof_print(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	struct stacks s;
	int ret = stacks_read(&s, st, "pprof", e);

	if (!ret)
		ret = write_profile(&s, sqlite3_column_name(st, sqlite3_column_count(st) - 1), out, e);
	stacks_deinit(&s);
	return ret;
}

#else

int pprof_print(sqlite3_stmt *st, FILE *out, struct pt_error *e)
{
	(void)st, (void)out;
	return pt_fail(e, PT_ERR_REFUSED, PT_NO_OFFSET,
		       "this pt-query was built without protobuf-c: install libprotobuf-c-dev and "
		       "protobuf-c-compiler, and build again");
}

#endif
