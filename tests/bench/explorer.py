"""explorer.py PT-QUERY DB [TRACE] - what the page of `pt-query DB serve` asks as its user zooms: the whole trace, and 100 ms to 20 ns of it
at ten places; how long each kind of request took, and the server's CPU time for it, as a table. With --cold the system forgets the file
before each request, as far as nobody else has it mapped."""
import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import time
from urllib.parse import urlencode

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("program")
options.add_argument("db")
options.add_argument("trace", type=int, nargs="?", default=1)
options.add_argument("--cold", action="store_true")
options = options.parse_args()
server = subprocess.Popen([options.program, options.db, "serve"], stdout=subprocess.PIPE, text=True)
port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/(\w+)/", server.stdout.readline().strip()).groups()
taken = {}  # kind: [(wall s, CPU s, rows)]


def cpu_s():
    return time.clock_gettime(~server.pid << 3 | 2)  # clock_getcpuclockid(3)


def ask(kind, path, **arguments):
    if options.cold:
        fd = os.open(options.db, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=120)
    wall, cpu = time.monotonic(), cpu_s()
    connection.request("GET", f"/{token}/{path}?{urlencode(arguments)}")
    response = connection.getresponse()
    answer = json.loads(response.read())
    wall, cpu = time.monotonic() - wall, cpu_s() - cpu
    connection.close()
    assert response.status == 200, answer
    taken.setdefault(kind, []).append((wall, cpu, len(answer.get("rows", []))))
    return answer


traces = ask("about", "api/about")["databases"][0]["traces"]
trace = next(t for t in (dict(zip(traces["columns"], r)) for r in traces["rows"]) if t["id"] == options.trace)
first, last = int(trace["first_ns"]), int(trace["last_ns"])
ask("lanes", "api/lanes", **{"p.trace": options.trace})
for length in (last - first, 10**8, 10**7, 10**6, 10**5, 10**3, 20):
    for place in range(10 if length < last - first else 1):
        after = first + (last - first) * place // 10
        part = {"p.trace": options.trace, "p.after": after, "p.until": after + length}
        for what in ("spans", "marks", "calls"):
            ask(what, f"api/{what}", limit=100000, **{"p.pixels": 1270}, **part)
        ask("branches of a time", "api/query", name="branches-between", **part)
branch = ask("branches of a time", "api/query", name="branches-between", **part)["rows"]
for row in branch[:10]:
    ask("a branch by its id", "api/query", name="branches-between", **{"p.from": row[0], "p.to": row[0]})
print("| request | times | CPU s, median | most | wall s, median | most | rows, most |\n|---|---|---|---|---|---|---|")
for kind, all_of in taken.items():
    walls, cpus, rows = zip(*all_of)
    print(f"| {kind} | {len(walls)} | {statistics.median(cpus):.3f} | {max(cpus):.3f} | {statistics.median(walls):.3f} | {max(walls):.3f} | {max(rows)} |")
server.terminate()
server.wait()
