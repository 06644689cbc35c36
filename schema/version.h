/* version.h - the release, printed by every program's --version, and the database's own, which
 * tables.sql sets, too. */
#ifndef SCHEMA_VERSION_H
#define SCHEMA_VERSION_H

#define PT_VERSION	  "0.1.0"

#define PT_DB_APPLICATION 1347708002 /* PRAGMA application_id, 'PTdb' */
#define PT_DB_VERSION	  21	     /* PRAGMA user_version: another for each change of the tables */

#endif
