/* changed_aux.c - changed_aux BYTES SEED CONTAINER: the same container, but of each BYTES of its AUX data one
 * byte is another one, to standard output. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/container/copy.h"
#include "schema/hash.h"
#include "tests/tools/rewriting.h"

/* Where the changes are depends on the seed and on the offsets in the stream only. */
static uint8_t *changed(const struct ptc_aux *aux, uint64_t bytes, uint64_t seed)
{
	uint8_t *copy = malloc(aux->size + 1);

	if (!copy)
		exit(1);
	memcpy(copy, aux->bytes, aux->size);
	for (uint64_t n = aux->aux_offset / bytes; n * bytes < aux->aux_offset + aux->size; n++) {
		uint64_t random = pt_hash_mix(seed << 32 | n), at = n * bytes + random % bytes;

		if (at >= aux->aux_offset && at < aux->aux_offset + aux->size)
			copy[at - aux->aux_offset] = (uint8_t)(random >> 56);
	}
	return copy;
}

static void put_changed(struct ptc_writer *w, const struct ptc_chunk *c, uint64_t bytes, uint64_t seed)
{
	struct ptc_aux aux;
	uint8_t *copy;

	ok(ptc_parse_aux(c, &aux, &error), "AUX data");
	copy = changed(&aux, bytes, seed);
	aux.bytes = copy;
	ok(ptc_put_aux(w, c->stream, &aux, &error), "AUX data");
	free(copy);
}

static void copy(const char *path, struct ptc_writer *w, uint64_t bytes, uint64_t seed)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), more;
	struct ptc_reader *r = ptc_reader_create(fd, &error);
	struct ptc_chunk c;

	ok(r ? 0 : -1, path);
	while ((more = ptc_next(r, &c, &error)) > 0) {
		if (c.type == PTC_AUX)
			put_changed(w, &c, bytes, seed);
		else
			ok(container_copy_chunk(w, &c, &error), "a chunk");
	}
	ok(more, path);
	ptc_reader_destroy(r);
	close(fd);
}

int main(int argc, char **argv)
{
	struct ptc_writer *w = argc == 4 ? ptc_writer_create(STDOUT_FILENO, NULL, 1, &error) : NULL;

	if (!w || strtoull(argv[1], NULL, 0) == 0) {
		fprintf(stderr, "usage: changed_aux BYTES SEED CONTAINER >FILE\n");
		return 2;
	}
	copy(argv[3], w, strtoull(argv[1], NULL, 0), strtoull(argv[2], NULL, 0));
	ok(ptc_writer_finish(w, &error), "the end");
	ptc_writer_destroy(w);
	return 0;
}
