"""report_counters.py PT-QUERY DB - the report's element "counters" against sums over the view run, by SQLite's own means."""
import json
import re
import sqlite3
import subprocess
import sys

sys.path.append("tests")
from check import check, same, sum_up  # noqa: E402

program, database = sys.argv[1:]
db = sqlite3.connect(database)
for trace, first, last, mult, shift in db.execute("SELECT id, first_tsc, last_tsc, time_mult, time_shift FROM trace").fetchall():
    page = subprocess.run([program, database, "report", "-p", f"trace={trace}"], check=True, capture_output=True, text=True).stdout
    got = json.loads(re.search(r'id="data-counters">(.*?)</script>', page, re.S)[1])
    step = (last - first) // 400 + 1 if first is not None and last is not None else 1
    rows = db.execute("SELECT (r.tsc - ?1) / ?2 AS at, sum(r.repeats * p.insn_count), sum(CASE WHEN r.cyc_count IS NOT NULL THEN r.insn_count END),"
                      " sum(r.cyc_count) FROM run r JOIN path p ON p.id = r.path WHERE r.trace = ?3 AND r.tsc >= ?1 GROUP BY 1 ORDER BY 1",
                      (first, step, trace)).fetchall()
    same(["time", "length", "insns", "timed", "cycles"], got["columns"], "columns")
    check([list(r[1:]) for r in rows] == [r[2:] for r in got["rows"]], f"trace {trace}: {len(rows)} stretches",
          next((f"{a} {b}" for a, b in zip(rows, got["rows"]) if list(a[1:]) != b[2:]), f"{len(got['rows'])} rows"))
    check(first is None or len(rows) > 10, "there are some", len(rows))
    if first is not None and mult:
        ns = [(r[0] * step >> shift) * mult + ((r[0] * step & ((1 << shift) - 1)) * mult >> shift) for r in rows]
        same(ns, [r[0] for r in got["rows"]], f"trace {trace}: when")
sys.exit(sum_up())
