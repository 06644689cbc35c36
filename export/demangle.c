/* demangle.c - see demangle.h. */
#include "export/demangle.h"

#ifndef HAVE_LIBIBERTY

bool demangle(const char *name, char *to)
{
	(void)name;
	(void)to;
	return false;
}

#else

#include <setjmp.h>
#include <string.h>

/* Of libiberty's demangle.h, which not all distributions install with the library. */
#define DMGL_PARAMS 1
#define DMGL_ANSI   2
typedef void (*demangle_callbackref)(const char *, size_t, void *);
int cplus_demangle_v3_callback(const char *mangled, int options, demangle_callbackref, void *opaque);
int rust_demangle_callback(const char *mangled, int options, demangle_callbackref, void *opaque);

struct text {
	char *to;
	size_t bytes, room; /* room: without the NUL */
	jmp_buf full;
};

/* A few hundred bytes can stand for a text that is longer than memory: what is too long is given up at
 * once. */
static void append(const char *s, size_t n, void *arg)
{
	struct text *t = arg;

	if (n > t->room - t->bytes)
		longjmp(t->full, 1);
	memcpy(t->to + t->bytes, s, n);
	t->bytes += n;
}

static bool mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || !strncmp(name, "_GLOBAL_", 8));
}

/* Whether the symbol stands for something, which is then in t. */
static bool put_meaning(const char *symbol, struct text *t)
{
	if (setjmp(t->full))
		return false;
	if (rust_demangle_callback(symbol, DMGL_PARAMS | DMGL_ANSI, append, t))
		return true;
	t->bytes = 0;
	return cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI, append, t) != 0;
}

bool demangle(const char *name, char *to)
{
	const char *rest = strchr(name, '@');
	size_t n = rest ? (size_t)(rest - name) : strlen(name), rest_bytes = rest ? strlen(rest) : 0;
	char symbol[DEMANGLED_BYTES];
	struct text t = {.to = to};

	if (!mangled(name) || n >= sizeof symbol || rest_bytes >= DEMANGLED_BYTES)
		return false;
	memcpy(symbol, name, n);
	symbol[n] = 0;
	t.room = DEMANGLED_BYTES - 1 - rest_bytes;
	if (!put_meaning(symbol, &t))
		return false;
	memcpy(to + t.bytes, rest ? rest : "", rest_bytes + 1);
	return strcmp(to, name) != 0;
}

#endif
