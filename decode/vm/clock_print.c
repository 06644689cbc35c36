/* clock_print.c - pt-decode vm-clock. */
#include <inttypes.h>
#include <string.h>

#include "decode/packet/clock_meta.h"
#include "decode/vm/clock_print.h"
#include "decode/vm/scan.h"
#include "decode/vm/vcpus.h"

struct scanner {
	struct ptc_meta *meta;
	struct pt_vm_clocks *clocks;
	struct pt_vm_scan *scan;
	struct pt_vcpus vcpus;
};

/* META is complete when the first chunk of another type comes. */
static int start(struct scanner *s, const struct pt_vm_options *options, struct pt_error *e)
{
	struct pt_clock_config config;

	if (s->scan)
		return 0;
	pt_clock_config_from_meta(s->meta, -1, &config);
	s->clocks = pt_vm_clocks_create(config.ctc_den ? config.ctc_num / config.ctc_den + 1 : 64,
					pt_tsc_khz_from_meta(s->meta));
	s->scan = s->clocks ? pt_vm_scan_create(&config, s->clocks) : NULL;
	if (!s->scan || pt_vcpus_init(&s->vcpus, s->meta) < 0 ||
	    pt_vm_options_apply(options, s->clocks) < 0 || pt_vcpus_apply_all(&s->vcpus, s->clocks) < 0)
		return pt_fail_no_memory(e, NULL);
	return 0;
}

static void print_span(const struct pt_vm_span *span, uint64_t vmcs, FILE *out)
{
	if (vmcs == PTR_UNKNOWN)
		fputs("?\t", out);
	else
		fprintf(out, "0x%" PRIx64 "\t", vmcs >> 12);
	fprintf(out, "%" PRIu64 "\t%" PRId64 "\t0x%016" PRIx64 "\t", span->from_tsc, span->offset,
		(uint64_t)span->offset);
	if (span->ratio == PT_VM_RATIO_ONE)
		fputs("1\t", out);
	else
		fprintf(out, "%.12f\t", (double)span->ratio / (double)PT_VM_RATIO_ONE);
	fprintf(out, "%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", ptr_clock_source_name(span->source),
		span->observations, span->worst_residual, span->slack);
}

static void print(const struct scanner *s, FILE *out)
{
	const struct pt_vm_clock *c;

	fputs("vmcs\tfrom_tsc\toffset\toffset_hex\tratio\tsource\tobservations\tworst_residual_tsc\t"
	      "slack_tsc\n",
	      out);
	for (size_t i = 0; (c = pt_vm_clocks_at(s->clocks, i)); i++) {
		size_t n;
		const struct pt_vm_span *span = pt_vm_clock_spans(c, &n);

		for (; n--; span++)
			print_span(span, pt_vm_clock_vmcs(c), out);
	}
}

/* The chunks of the container, as far as they can be read. 0; 1 if it was cut; -1. */
static int scan(struct scanner *s, struct ptc_reader *r, const struct pt_vm_options *options,
		struct pt_error *e)
{
	struct ptc_chunk c;
	struct ptc_aux aux;
	int n = 0;

	while (n >= 0 && (n = ptc_next(r, &c, e)) > 0) {
		if (c.type == PTC_META) {
			n = ptc_meta_add(s->meta, &c, e);
			continue;
		}
		n = start(s, options, e);
		if (n < 0 || (c.type != PTC_AUX && c.type != PTC_ROUND))
			continue;
		if (c.type == PTC_AUX) {
			n = ptc_parse_aux(&c, &aux, e);
			if (n == 0 && pt_vm_scan_feed(s->scan, c.stream, &aux) < 0)
				n = pt_fail_no_memory(e, NULL);
		} else if (pt_vm_scan_flush(s->scan) < 0) {
			n = pt_fail_no_memory(e, NULL);
		}
	}
	/* What lies before a cut is good. */
	if (n < 0 && s->scan && (e->kind == PT_ERR_TRUNCATED || e->kind == PT_ERR_BAD_INPUT))
		return 1;
	return n;
}

int pt_vm_clock_print(struct ptc_reader *r, const struct pt_vm_options *options, FILE *out,
		      struct pt_error *e)
{
	struct scanner s = {.meta = ptc_meta_create()};
	int ret = s.meta ? scan(&s, r, options, e) : pt_fail_no_memory(e, NULL);

	if (ret >= 0 && start(&s, options, e) < 0)
		ret = -1;
	if (ret >= 0 && pt_vm_scan_flush(s.scan) < 0)
		ret = pt_fail_no_memory(e, NULL);
	if (ret >= 0)
		print(&s, out);
	pt_vcpus_deinit(&s.vcpus);
	pt_vm_scan_destroy(s.scan);
	pt_vm_clocks_destroy(s.clocks);
	ptc_meta_destroy(s.meta);
	return ret;
}
