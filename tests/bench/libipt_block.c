/*
 * libipt_block.c - what pt-decode is measured against: libipt's block decoder over one raw AUX file.
 *
 *     libipt_block AUX MAPS
 *
 * MAPS has lines "start end offset file" (hexadecimal; file relative to MAPS). The sections remain in
 * libipt's section cache, so that its block cache works: without that it is 100 times slower. Time is
 * configured as the inputs of ../shared/bench were made. Prints the number of instructions; exit
 * status 1 on any decode error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <intel-pt.h>

static int failed(const char *what, int code)
{
	fprintf(stderr, "libipt_block: %s: %s\n", what, pt_errstr(pt_errcode(code)));
	exit(1);
}

static void map(struct pt_image_section_cache *cache, struct pt_image *image, const char *maps)
{
	const char *slash = strrchr(maps, '/');
	FILE *f = fopen(maps, "r");
	char line[4096], name[2048], path[8192];
	uint64_t start, end, offset;

	if (!f) {
		perror(maps);
		exit(1);
	}
	while (fgets(line, sizeof line, f)) {
		int id;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %2047s", &start, &end, &offset, name) !=
		    4)
			continue;
		snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - maps) : 0, maps, name);
		id = pt_iscache_add_file(cache, path, offset, end - start, start);
		if (id < 0)
			failed(path, id);
		id = pt_image_add_cached(image, cache, id, NULL);
		if (id < 0)
			failed(path, id);
	}
	fclose(f);
}

static uint8_t *slurp(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");
	long size;
	uint8_t *p;

	if (!f || fseek(f, 0, SEEK_END) < 0 || (size = ftell(f)) < 0) {
		perror(path);
		exit(1);
	}
	rewind(f);
	p = malloc((size_t)size + 1);
	if (!p || fread(p, 1, (size_t)size, f) != (size_t)size) {
		perror(path);
		exit(1);
	}
	fclose(f);
	*ret_size = (size_t)size;
	return p;
}

int main(int argc, char **argv)
{
	struct pt_image_section_cache *cache = pt_iscache_alloc(NULL);
	struct pt_image *image = pt_image_alloc(NULL);
	struct pt_block_decoder *d;
	struct pt_config config;
	uint64_t insns = 0, blocks = 0, events = 0, tsc = 0;
	size_t size;
	int status;

	if (argc != 3) {
		fprintf(stderr, "usage: libipt_block AUX MAPS\n");
		return 2;
	}
	pt_iscache_set_limit(cache, (uint64_t)1 << 30);
	map(cache, image, argv[2]);
	pt_config_init(&config);
	config.begin = slurp(argv[1], &size);
	config.end = config.begin + size;
	config.mtc_freq = 3;
	config.nom_freq = 20;
	config.cpuid_0x15_eax = 2;
	config.cpuid_0x15_ebx = 160;
	d = pt_blk_alloc_decoder(&config);
	if (!d)
		failed("decoder", -pte_nomem);
	status = pt_blk_set_image(d, image);
	if (status < 0)
		failed("image", status);
	status = pt_blk_sync_forward(d);
	while (status >= 0 && !(status & pts_eos)) {
		struct pt_block block;
		struct pt_event event;

		while (status >= 0 && (status & pts_event_pending)) {
			status = pt_blk_event(d, &event, sizeof event);
			events++;
			if (event.has_tsc)
				tsc = event.tsc;
		}
		if (status < 0 || (status & pts_eos))
			break;
		status = pt_blk_next(d, &block, sizeof block);
		insns += block.ninsn;
		blocks++;
	}
	if (status < 0 && status != -pte_eos)
		failed("decode", status);
	printf("insn %" PRIu64 "\nblocks %" PRIu64 "\nevents %" PRIu64 "\ntsc %" PRIx64 "\n", insns, blocks,
	       events, tsc);
	pt_blk_free_decoder(d);
	pt_image_free(image);
	pt_iscache_free(cache);
	free(config.begin);
	return 0;
}
