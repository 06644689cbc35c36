/*
 * demangle.h - the names that C++ and Rust sources have, of the symbols that compilers made of them; by
 * binutils' libiberty, as nm -C writes them: with parameters, Rust's without their hash.
 *
 * The library is optional: without HAVE_LIBIBERTY when this is compiled (the Makefile looks for it) no name is
 * demangled.
 */
#ifndef EXPORT_DEMANGLE_H
#define EXPORT_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLED_BYTES 65536 /* of the longest, with its NUL */

/*
 * Writes the name that `name` stands for into to, which has DEMANGLED_BYTES. What follows an '@' ("@plt")
 * is kept behind it. Returns whether there is one: name is mangled, and what it stands for is not too long.
 */
bool demangle(const char *name, char *to);

#endif
