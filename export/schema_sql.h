/*
 * schema_sql.h - schema's SQL, as it was when the program was built. Each ends with a NUL.
 */
#ifndef EXPORT_SCHEMA_SQL_H
#define EXPORT_SCHEMA_SQL_H

extern const char pt_tables_sql[], pt_indexes_sql[], pt_views_sql[];

#endif
