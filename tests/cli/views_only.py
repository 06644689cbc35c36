"""views_only.py DB FILE... - "FILE: table table" for each file of SQL: the tables that it names itself, besides views. (In a
database where the views are tables, too, so that what SQLite says is read is what the text names.)"""
import os
import re
import sqlite3
import sys

real, made, read = sqlite3.connect(sys.argv[1]), sqlite3.connect(":memory:"), set()
views, tables = ({name for (name,) in real.execute("SELECT name FROM sqlite_schema WHERE type = ?", (kind,))}
                 for kind in ("view", "table"))
for name in views | tables:
    columns = ", ".join(f'"{row[1]}"' for row in real.execute("SELECT * FROM pragma_table_info(?)", (name,)))
    made.execute(f'CREATE TABLE "{name}" ({columns})')


def watch(action, table, *_):
    if action == sqlite3.SQLITE_READ and table in tables:
        read.add(table)
    return sqlite3.SQLITE_OK


made.set_authorizer(watch)
for path in sys.argv[2:]:
    sql = open(path).read()
    read.clear()
    made.execute("EXPLAIN " + sql, dict.fromkeys(re.findall(r":(\w+)", sql)))
    print(os.path.basename(path) + ":", *sorted(read))
