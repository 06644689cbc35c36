/*
 * schema_sql.h - the SQL of schema/, embedded: text with a NUL at its end. Indexes and views have
 * macros (schema/sql_macros.h).
 */
#ifndef EXPORT_SCHEMA_SQL_H
#define EXPORT_SCHEMA_SQL_H

extern const char pt_tables_sql[], pt_indexes_sql[], pt_views_sql[], pt_fact_views_sql[], pt_code_views_sql[];

#endif
