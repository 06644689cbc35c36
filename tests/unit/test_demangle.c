/* Names of C++ and Rust (export/demangle.h); oracle/demangle.sh compares with nm -C. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/demangle.h"
#include "tests/unit/check.h"

static char to[DEMANGLED_BYTES];

static void is(const char *name, const char *meaning)
{
	check(demangle(name, to) && !strcmp(to, meaning), name);
}

static void is_none(const char *name, const char *why)
{
	check(!demangle(name, to), why);
}

/* A name of a few hundred bytes that stands for a text of 2^n: each template argument twice in the next. */
static void bomb(void)
{
	char name[2048] = "_Z1fI", *p = name + strlen(name);

	p += sprintf(p, "1AIiiE");
	for (int i = 0; i < 30; i++)
		p += sprintf(p, "S%.*s_S%.*s_", i > 0, "0", i > 0, "0");
	strcpy(p, "EvT_");
	demangle(name, to); /* it ends */
	/* Pairs of pairs: 1A<T, T>, where T is the one before. */
	strcpy(name, "_Z1f");
	p = name + strlen(name);
	for (int i = 0; i < 40; i++)
		p += sprintf(p, "1AI");
	p += sprintf(p, "i");
	for (int i = 0; i < 40; i++)
		p += sprintf(p, "S%c_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36]);
	demangle(name, to);
	check(true, "what stands for a text that is too long ends");
}

int main(void)
{
	static char longest[2 * DEMANGLED_BYTES];

#ifdef HAVE_LIBIBERTY
	is("_ZN6shapes3BoxIiE4areaEv", "shapes::Box<int>::area()");
	is("_ZN6shapes3BoxIiE4areaEv@plt", "shapes::Box<int>::area()@plt");
	is("_Z3fooi.cold", "foo(int) [clone .cold]");
	is("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	is("_RNvC7mycrate3foo", "mycrate::foo");
#else
	(void)is;
#endif
	is_none("main", "C");
	is_none("", "no name");
	is_none("_Z", "not a name");
	is_none("_ZN", "not a whole name");
	is_none("_R", "not a name of Rust");
	is_none("@plt", "of nothing");
	memset(longest, 'x', sizeof longest - 1);
	memcpy(longest, "_Z65535", 7);
	is_none(longest, "too long");
	bomb();
	return sum_up();
}
