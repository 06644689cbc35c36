/* version.h - the release, printed by every program's --version. */
#ifndef SCHEMA_VERSION_H
#define SCHEMA_VERSION_H

#define PT_VERSION "0.1.0"

#endif
