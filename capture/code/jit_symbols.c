/* jit_symbols.c - see jit_symbols.h. */
#include "capture/code/jit_symbols.h"
#include "schema/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 511

void jit_symbols_deinit(struct jit_symbols *s)
{
	free(s->symbols);
	free(s->strings);
	*s = (struct jit_symbols){0};
}

static int room_for(struct jit_symbols *s, size_t bytes, struct pt_error *e)
{
	size_t room = s->strings_room ? s->strings_room : 4096;
	char *grown;

	while (room - s->strings_bytes < bytes)
		room *= 2;
	if (room == s->strings_room)
		return 0;
	grown = realloc(s->strings, room);
	if (!grown)
		return pt_fail_no_memory(e, "names of code");
	s->strings = grown;
	s->strings_room = room;
	return 0;
}

int jit_symbols_add(struct jit_symbols *s, uint64_t address, uint64_t bytes, const char *name,
		    struct pt_error *e)
{
	size_t name_bytes = strnlen(name, NAME_BYTES);

	if (room_for(s, name_bytes + 1, e) || pt_array_grow(&s->symbols, s->count, &s->room, e))
		return -1;
	s->symbols[s->count++] = (struct ptc_symbol){
	    .value = address, .size = bytes, .name = (uint32_t)s->strings_bytes, .type = 't'};
	memcpy(s->strings + s->strings_bytes, name, name_bytes);
	s->strings_bytes += name_bytes;
	s->strings[s->strings_bytes++] = 0;
	return 0;
}

int jit_symbols_add_line(struct jit_symbols *s, const char *line, struct pt_error *e)
{
	uint64_t address, bytes;
	int at = 0;

	if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &address, &bytes, &at) < 2 || !at || !line[at])
		return 0;
	return jit_symbols_add(s, address, bytes, line + at, e);
}

int jit_symbols_put(struct jit_symbols *s, struct ptc_writer *w, int32_t pid, struct pt_error *e)
{
	static const char name[] = "[jit]";
	const struct ptc_symbols chunk = {.pid = pid,
					  .absolute = 1,
					  .count = (uint32_t)s->count,
					  .name = name,
					  .name_bytes = sizeof name - 1,
					  .symbols = s->symbols,
					  .strings = s->strings,
					  .strings_bytes = s->strings_bytes};
	int ret = s->count ? ptc_put_symbols(w, &chunk, e) : 0;

	s->count = s->strings_bytes = 0;
	return ret;
}
