/* events.c - packets that are reported as events; see internal.h. */
#include "decode/flow/internal.h"

#include <stdarg.h>
#include <stdio.h>

void pt_flow_report_held(struct pt_flow *f, uint64_t ip)
{
	const char *name = f->held.name;

	f->held.name = NULL;
	pt_flow_deliver(f);
	if (name)
		f->output->event(f->output_arg, f, name, ip, f->held.fields);
}

void pt_flow_event(struct pt_flow *f, bool fup, const char *name, const char *format, ...)
{
	va_list ap;

	if (f->state <= PT_FLOW_DATA_LOST || f->detail != PT_FLOW_FOLLOW)
		return;
	pt_flow_report_held(f, pt_flow_here(f));
	va_start(ap, format);
	vsnprintf(f->held.fields, sizeof f->held.fields, format, ap);
	va_end(ap);
	f->held.name = name;
	if (!fup)
		pt_flow_report_held(f, pt_flow_here(f));
}

void pt_flow_address_event(struct pt_flow *f, enum pt_type type, uint64_t ip)
{
	if (!ip || (f->detail != PT_FLOW_ADDRESSES && f->detail != PT_FLOW_PSB_ADDRESSES))
		return;
	pt_flow_deliver(f);
	if (f->psb.open)
		f->output->event(f->output_arg, f, "psb", ip, "");
	else if (f->detail == PT_FLOW_ADDRESSES && f->state > PT_FLOW_DATA_LOST)
		f->output->event(f->output_arg, f, pt_type_name(type), ip, "");
}
