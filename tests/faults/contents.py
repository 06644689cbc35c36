"""contents.py - what a file of the fault sweep holds, so that two can be compared."""
import os
import sqlite3
import subprocess


def rows_of(db, table):
    """When a trace was loaded is of the one run."""
    columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")') if row[1] != "load_time"]
    listed = ", ".join(f'"{c}"' for c in columns)
    return table, sorted(map(repr, db.execute(f'SELECT {listed} FROM "{table}"')))


def content_of_database(path):
    """All rows of all tables and the text of all else; "damaged: ..." where integrity_check says so."""
    try:
        db = sqlite3.connect(path)
        try:
            check = db.execute("PRAGMA integrity_check").fetchall()
            if check != [("ok",)]:
                return f"damaged: {check[:3]}"
            schema = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
            rows = [rows_of(db, name) for kind, name, _, _ in schema if kind == "table"]
            return repr((schema, rows))
        finally:
            db.close()
    except sqlite3.Error as e:
        return f"damaged: {e}"


def content_of_compressed(path):
    """content_of_database() of what zstd unpacks."""
    plain = path + ".plain"
    with open(plain, "wb") as to:
        done = subprocess.run(["zstd", "-qdc", path], check=False, stdout=to, stderr=subprocess.PIPE)
    content = content_of_database(plain) if done.returncode == 0 else f"damaged: {done.stderr!r}"
    os.unlink(plain)
    return content


def content_of_file(path):
    with open(path, "rb") as f:
        return f.read()


def differs(case, got, expected):
    """Standard output, where that is what the case is about."""
    return case.ignored(got) != case.ignored(expected)

