/* speedscope.c - see speedscope.h. */
#include "queries/speedscope.h"

#include <inttypes.h>

#include "queries/print.h"
#include "queries/stacks.h"
#include "schema/version.h"

static void write_profile(const struct stacks *p, const char *name, FILE *out)
{
	int64_t sum = 0;

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"pt-query " PT_VERSION "\",\"name\":",
	      out);
	print_json_string(out, name);
	fputs(",\n\"shared\":{\"frames\":[", out);
	for (size_t i = 0; i < p->frame_count; i++) {
		fputs(i ? ",\n{\"name\":" : "\n{\"name\":", out);
		print_json_string(out, p->frames[i]);
		putc('}', out);
	}
	for (size_t i = 0; i < p->weight_count; i++)
		sum += p->weights[i];
	fputs("]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":", out);
	print_json_string(out, name);
	fprintf(out, ",\"unit\":\"none\",\"startValue\":0,\"endValue\":%" PRId64 ",\n\"samples\":[", sum);
	for (size_t at = 0; at < p->stack_count; at += p->stacks[at] + 1) {
		fputs(at ? ",\n[" : "\n[", out);
		for (uint32_t k = 1; k <= p->stacks[at]; k++)
			fprintf(out, k > 1 ? ",%" PRIu32 : "%" PRIu32, p->stacks[at + k] - 1);
		putc(']', out);
	}
	fputs("],\n\"weights\":[", out);
	for (size_t i = 0; i < p->weight_count; i++)
		fprintf(out, i ? ",%" PRId64 : "%" PRId64, p->weights[i]);
	fputs("]}]}\n", out);
}

int speedscope_print(sqlite3_stmt *st, const char *name, FILE *out, struct pt_error *e)
{
	struct stacks p;
	int ret = stacks_read(&p, st, "speedscope", e);

	if (ret == 0)
		write_profile(&p, name ? name : "pt-query", out);
	stacks_deinit(&p);
	return ret;
}
