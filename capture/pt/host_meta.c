/* host_meta.c - see host_meta.h. */
#include "capture/pt/host_meta.h"
#include "schema/version.h"

#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>

#define COMMAND_MAX 4096

static int put_uuid(struct ptc_writer *w, char *ret, struct pt_error *e)
{
	unsigned char id[16];
	char hex[HOST_META_UUID_ROOM];

	if (ret)
		*ret = 0;
	if (getrandom(id, sizeof id, 0) != sizeof id)
		return 0;
	for (size_t i = 0; i < sizeof id; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	if (ret)
		memcpy(ret, hex, sizeof hex);
	return ptc_put_meta(w, "uuid", hex, e);
}

/* The arguments with blanks between them, cut to COMMAND_MAX. */
static int put_command(struct ptc_writer *w, char **argv, struct pt_error *e)
{
	char text[COMMAND_MAX] = "";
	size_t n = 0;

	for (char **p = argv; p && *p && n < sizeof text; p++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "", *p);
	return ptc_put_meta(w, "command", text, e);
}

static int put_cpu(struct ptc_writer *w, struct pt_error *e)
{
	unsigned regs[13] = {0}, a, b, c, d;
	int r = 0;

	__cpuid(0, a, regs[0], regs[2], regs[1]);
	r |= ptc_put_meta(w, "cpu_vendor", (char *)regs, e);
	__cpuid(1, a, b, c, d);
	r |= ptc_put_metaf(w, e, "cpu_family", "%u",
			   (a >> 8 & 15) + ((a >> 8 & 15) == 15 ? a >> 20 & 255 : 0));
	r |= ptc_put_metaf(w, e, "cpu_model", "%u", (a >> 4 & 15) | (a >> 16 & 15) << 4);
	r |= ptc_put_metaf(w, e, "cpu_stepping", "%u", a & 15);
	__cpuid(0x80000000, a, b, c, d);
	if (a >= 0x80000004) {
		memset(regs, 0, sizeof regs);
		for (unsigned i = 0; i < 3; i++)
			__cpuid(0x80000002 + i, regs[4 * i], regs[4 * i + 1], regs[4 * i + 2],
				regs[4 * i + 3]);
		r |= ptc_put_meta(w, "cpu_name", (char *)regs, e);
	}
	return r;
}

int host_meta_put(struct ptc_writer *w, const struct host_meta *m, struct pt_error *e)
{
	struct utsname u;
	int r = 0;

	r |= put_uuid(w, m->ret_uuid, e);
	r |= ptc_put_meta(w, "tool", "pt-capture", e);
	r |= ptc_put_meta(w, "tool_version", PT_VERSION, e);
	r |= ptc_put_meta(w, "engine", m->engine, e);
	if (m->synthetic)
		r |= ptc_put_meta(w, "synthetic", "1", e);
	r |= put_command(w, m->command, e);
	r |= ptc_put_metaf(w, e, "start_time", "%lld", (long long)time(NULL));
	if (uname(&u) == 0) {
		r |= ptc_put_meta(w, "host", u.nodename, e);
		r |= ptc_put_meta(w, "kernel", u.release, e);
		r |= ptc_put_meta(w, "arch", u.machine, e);
	}
	r |= put_cpu(w, e);
	return r ? -1 : 0;
}
