"""serve.py PT-QUERY VM-DB OTHER-DB SUMS-DB CALLS-DB - asks `pt-query serve` as a browser does, as other sites and other users would, and as no
browser does; rows are compared with those of Python's own SQLite. The last line is "N passed, N failed"."""
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from urllib.parse import quote, urlencode

sys.path.append("tests")
from check import check, same, sum_up  # noqa: E402

program, vm, other, sums, calls = sys.argv[1:]


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        m = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/", self.url)
        self.port, self.token = (int(m[1]), m[2]) if m else (0, "")

    def get(self, path, method="GET", host=None, **headers):
        """Status, headers, body of PATH behind the token; of PATH itself when it begins with /."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.putrequest(method, path if path.startswith("/") else f"/{self.token}/{path}", skip_host=True)
        if host != "":
            c.putheader("Host", host or f"127.0.0.1:{self.port}")
        for name, value in headers.items():
            c.putheader(name, value)
        c.endheaders()
        r = c.getresponse()
        ret = r.status, dict(r.getheaders()), r.read()
        c.close()
        return ret

    def ask(self, path="api/query", **arguments):
        status, _, body = self.get(f"{path}?{urlencode(arguments)}")
        return status, json.loads(body)

    def end(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        return self.process.wait(30), self.process.stderr.read()


s = Server("--db", vm, "--db", other, "serve")
check(s.port, "an address with a token", s.url)
again = Server(vm, "serve")
check(again.token != s.token and again.port != s.port, "another server has another token and port")
same(again.end(signal.SIGINT), (0, ""), "Ctrl-C ends it: 0, and nothing said")

# Who may ask.
same(s.get("")[0], 200, "the page")
page = s.get("")[1]
policy = page.get("Content-Security-Policy", "")
check("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, "its policy", policy)
same((page["Cache-Control"], page["Referrer-Policy"], page["X-Content-Type-Options"]), ("no-store", "no-referrer", "nosniff"), "its headers")
for path in ("", "api/about", "report"):
    same(s.get(path, host="evil.example")[0], 403, f"another Host: 403 ({path})")
same(s.get("", host=f"localhost:{s.port}")[0], 200, "localhost")
same(s.get("", host="127.0.0.1")[0], 403, "the Host without its port: 403")
check(s.get("", host="")[0] in (400, 403), "no Host: refused")
for path in ("/", "/api/about", f"/{s.token}", f"/{s.token[:-1]}0/" if s.token[-1] != "0" else f"/{s.token[:-1]}1/", f"/{s.token[:-1]}/",
             f"//{s.token}/", f"/x/../{s.token}/", f"/{s.token.upper()}X/", "/" + "0" * 32 + "/"):
    same(s.get(path)[0], 404, f"without the token: 404 ({path[:12]}...)")
for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
    check(s.get("api/about", method=method)[0] in (400, 405), f"{method}: refused")
with open("/proc/net/tcp", encoding="ascii") as f:
    listening = [line.split()[1] for line in f if line.split()[3] == "0A"]
check(f"0100007F:{s.port:04X}" in listening and f"00000000:{s.port:04X}" not in listening, "it listens on 127.0.0.1 only", listening)

# What is answered.
db = sqlite3.connect(f"file:{vm}?mode=ro", uri=True)
about = s.ask("api/about")[1]
same([d["path"] for d in about["databases"]], [vm, other], "about: the databases")
views = {r[0] for r in about["databases"][0]["schema"]["rows"]}
same(views, {r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")}, "about: the views")
check({q["name"] for q in about["queries"]} >= {"vmexit-latency", "annotate", "why-slow"}, "about: the queries")
sql = "SELECT id, time_ns, reason_name, latency_ns, off_cpu_ns FROM vmexits ORDER BY id"
status, answer = s.ask(sql=sql, limit=100000)
same((status, answer["rows"], answer["more"]), (200, [list(r) for r in db.execute(sql)], False), "SQL: all rows")
status, answer = s.ask(sql=sql, limit=7)
same((status, len(answer["rows"]), answer["more"]), (200, 7, True), "limit: 7 of them, and there are more")
by_shell = subprocess.run([program, vm, "vmexit-latency", "-f", "json"], check=True, stdout=subprocess.PIPE).stdout
answer = s.ask(name="vmexit-latency")[1]
same([dict(zip(answer["columns"], r)) for r in answer["rows"]], json.loads(by_shell), "a canned query's rows")
answer = s.ask(name="branches-between", **{"p.limit": 5})[1]
same(len(answer["rows"]), 5, "a parameter")
by_shell = subprocess.run([program, vm, "annotate", "-f", "json"], check=True, stdout=subprocess.PIPE).stdout
answer = s.ask(name="annotate")[1]
same([dict(zip(answer["columns"], r)) for r in answer["rows"]][:50], json.loads(by_shell)[:50], "annotate's rows")
same(s.ask(sql="SELECT 9007199254740993, -9007199254740993, 1e308*10, x'00ff', 'é\n\"'")[1]["rows"][0][:3],
     ["9007199254740993", "-9007199254740993", "Inf"], "what a browser would round is a text")
same(s.ask(db="all", sql="SELECT count(*) AS n FROM branches")[1]["columns"], ["db", "n"], "all databases: a column says which")
same(s.ask(db=1, sql="SELECT count(*) FROM vmexits")[1]["rows"], [[0]], "the second database")

# The time line: guest runs and exits as SQL has them, at each width; what is summed up adds up.
first, last = db.execute("SELECT min(time_ns), max(time_end_ns) FROM guest_runs").fetchone()
total = db.execute("SELECT sum(residency_ns) FROM guest_runs").fetchone()[0]
count = db.execute("SELECT count(residency_ns) FROM guest_runs").fetchone()[0]
for pixels in (10, 1000, 100000):
    answer = s.ask("api/spans", limit=100000, **{"p.after": first, "p.until": last, "p.pixels": pixels})[1]
    rows = [dict(zip(answer["columns"], r)) for r in answer["rows"]]
    guest = [r for r in rows if r["kind"] == "guest"]
    same((sum(r["total_ns"] for r in guest), sum(r["count"] for r in guest)), (total, count), f"spans: {pixels} pixels: the guest's time")
    lengths = dict(db.execute("SELECT id, latency_ns FROM vmexits WHERE latency_ns IS NOT NULL"))
    check(all(lengths[r["id"]] == r["longest_ns"] for r in rows if r["kind"] == "exit"), f"spans: {pixels} pixels: the longest exit of each")
    check(all(r["longest_ns"] <= r["total_ns"] and r["begin"] <= r["end"] for r in rows), f"spans: {pixels} pixels")
begin, end = first + (last - first) // 3, first + (last - first) // 2
answer = s.ask("api/spans", limit=100000, **{"p.after": begin, "p.until": end, "p.pixels": 10**7})[1]
rows = [dict(zip(answer["columns"], r)) for r in answer["rows"]]
same(sorted(r["id"] for r in rows if r["kind"] == "exit"), [r[0] for r in db.execute(
    "SELECT id FROM vmexits WHERE time_ns <= ? AND time_end_ns >= ? AND latency_ns IS NOT NULL ORDER BY id", (end, begin))],
     "spans: the exits between two times")
answer = s.ask("api/marks", limit=100000, **{"p.after": begin, "p.until": end, "p.pixels": 300})[1]
marks = [dict(zip(answer["columns"], r)) for r in answer["rows"]]
for kind, table in (("event", "events"), ("interrupt", "interrupts")):
    want = db.execute(f"SELECT count(*) FROM {table} WHERE coalesce(cpu, vcpu) IS NOT NULL AND time_ns BETWEEN ? AND ?", (begin, end)).fetchone()[0]
    same(sum(r["count"] for r in marks if r["kind"] == kind), want, f"marks: {table}")
    check(want > 0, f"there are {table}", want)
same({r[0] for r in s.ask("api/lanes")[1]["rows"]}, {r["lane"] for r in rows}, "lanes: those of the spans")



# The longest calls of a time: all that are longer than the answer's least_tsc, by the view calls in Python's own SQLite; also of a
# database that has no runs, and where fewer are looked at. A call at the very edge, whose nanosecond is rounded, may be there or not.
# VIEW has the longest first.
def check_calls(server, name, view, **given):
    low, high = min(c[1] for c in view), max(c[2] for c in view)
    rows_seen = kinds = 0
    for share, length in ((0, 1), (0.1, 0.3), (0.45, 0.1), (0.31, 0.01), (0.62, 0.01), (0.5, 1e-3), (0.93, 1e-3), (0.7, 1e-4), (0.2, 1e-5), (0.81, 1e-6)):
        after, until = int(low + share * (high - low)), int(low + (share + length) * (high - low))
        t = server.ask("api/calls", limit=100000, **{"p.after": after, "p.until": until, **given})[1]
        rows = [dict(zip(t["columns"], r)) for r in t["rows"]]
        least = rows.pop()
        got = {r["id"] for r in rows}
        long = list(itertools.takewhile(lambda c: c[3] >= least["least_tsc"], view))  # noqa: B023
        surely = {i for i, b, e, ticks in long if b < until - 1 and e > after + 1 and ticks > least["least_tsc"]}
        perhaps = {i for i, b, e, _ in long if b <= until + 1 and e >= after - 1}
        check(surely <= got <= perhaps and least["id"] is None, f"calls: {name}, {length} of the time",
              (len(got), "missing", sorted(surely - got)[:3], "too many", sorted(got - perhaps)[:3]))
        rows_seen += len(got)
        kinds += any(b < after - 1 and e > until + 1 for i, b, e, _ in long if i in got)
    check(rows_seen > 300, f"calls: {name}: there are some", rows_seen)
    check(kinds > 3, f"calls: {name}: also ones that begin before and end after", kinds)


in_view = "SELECT id, call_time, return_time, elapsed_tsc FROM calls WHERE elapsed_tsc IS NOT NULL ORDER BY elapsed_tsc DESC"


def unpacked(of, sql):
    """Rows as pt-query unpacks them, which takes it a tenth of the time; cli/unpacked.sh compares the two."""
    text = subprocess.run([program, of, "--sql", sql, "-f", "csv"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [tuple(map(int, line.split(","))) for line in text.split()[1:]]


of_vm = db.execute(in_view).fetchall()
check_calls(s, "all", of_vm)
check_calls(s, "wide pixels", of_vm, **{"p.pixels": 100})
check_calls(s, "few are unpacked", of_vm, **{"p.unpacked": 5000})
check_calls(s, "few rows", of_vm, **{"p.limit": 100})
thread = unpacked(vm, "SELECT thread FROM call GROUP BY 1 ORDER BY count(*) DESC LIMIT 1")[0][0]
of_thread = {r[0] for r in unpacked(vm, f"SELECT id FROM call WHERE thread = {thread}")}
check_calls(s, "one thread", [c for c in of_vm if c[0] in of_thread], **{"p.thread": thread})
only_calls = Server(calls, "serve")
check_calls(only_calls, "without runs", unpacked(calls, in_view))
only_calls.end()

# Statements that do not read, and names that are none.
for wrong in ("DELETE FROM trace", "ATTACH '/tmp/x' AS x", "CREATE TEMP TABLE t(x)", "PRAGMA journal_mode=WAL", "SELECT load_extension('x')",
              "VACUUM INTO '/tmp/x'", "SELECT 1; SELECT 2", "", "SELEC", "SELECT * FROM nothing", "SELECT zeroblob(1000000000)",
              "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x || x FROM r) SELECT max(length(x)) FROM r"):
    status, answer = s.ask(sql=wrong)
    check(status == 400 and answer.get("error"), f"an error: {wrong[:30]}", (status, answer))
for name in ("../tables", "/etc/passwd", "no-such-query", "a\nb"):
    status, answer = s.ask(name=name)
    check(status == 400 and answer["error"], f"no such query: {name!r}", (status, answer))
for path in ("api/nothing", "explorer.js/x", "../", "%2e%2e/%2e%2e/etc/passwd", "api/", "report/../api"):
    same(s.get(path)[0], 404, f"nothing of that name: {path}")
for value in ("x", "-1", "0", "1e9", "99999999999999999999"):
    same(s.ask(sql="SELECT 1", limit=value)[0], 400, f"limit={value}: 400")
same(s.ask(sql="SELECT 1", **{f"p.x{i}": 1 for i in range(100)})[0], 400, "a hundred parameters: 400")

# Long questions: the time that they may take, and clients that go away.
forever = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT sum(x) FROM r"
hasty = Server(vm, "serve", "--timeout", "2")
begin = time.monotonic()
status, answer = hasty.ask(sql=forever)
check(status == 503 and "too long" in answer["error"] and 1.5 < time.monotonic() - begin < 15, "--timeout stops it: 503", (status, answer))
same(hasty.end(), (0, ""), "and the server goes on until it is ended")


def cpu_s():
    with open(f"/proc/{s.process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


for _ in range(20):
    c = socket.create_connection(("127.0.0.1", s.port))
    c.sendall(f"GET /{s.token}/api/query?sql={quote(forever)} HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n\r\n".encode())
    time.sleep(0.02)
    c.close()
time.sleep(0.5)
before = cpu_s()
time.sleep(1)
check(cpu_s() - before < 0.5, "statements that nobody waits for are stopped", cpu_s() - before)

# A thousand hostile requests, and clients that are slow: others are answered meanwhile.
slow = []
for i in range(12):
    c = socket.create_connection(("127.0.0.1", s.port))
    c.sendall(b"GET /" if i % 2 else f"GET /{s.token}/ HTTP/1.1\r\nHost: 127.0.0".encode())
    slow.append(c)
noise = [b"\x00" * 100, b"\xff\xfe" * 50 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 70000 + b"\r\n\r\n",
         b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10000 + b"\r\n",
         b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nx", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
         b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
         f"GET /{s.token}/api/query?sql={'%20' * 20000} HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n\r\n".encode(),
         f"GET /{s.token}/api/query?sql=SELECT%00%FF%FE&name=%F0 HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n\r\n".encode(),
         f"GET /{s.token}/api/spans?p.after=-9223372036854775808&p.until=9223372036854775807&p.pixels=0 HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n\r\n".encode(),
         f"GET /{s.token}/api/spans?p.after=x&p.until=1e999&p.pixels=-1 HTTP/1.1\r\nHost: 127.0.0.1:{s.port}\r\n\r\n".encode()]
answers = []


def hostile(which):
    for i in range(250):
        try:
            c = socket.create_connection(("127.0.0.1", s.port), timeout=0.3)
            c.sendall(noise[(i + which) % len(noise)])
            if i % 3:
                answers.append(c.recv(100))
            c.close()
        except OSError:
            pass


threads = [threading.Thread(target=hostile, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
served = 0
while any(t.is_alive() for t in threads):
    try:
        served += s.ask(sql="SELECT 1")[1]["rows"] == [[1]]
    except (OSError, http.client.HTTPException):
        pass  # too many at once: the browser asks again
for t in threads:
    t.join()
check(served > 5, "answers beside a thousand hostile requests", served)
check(not any(a.startswith(b"HTTP/1.1 200") and b"passwd" in a for a in answers), "none of them got what is not theirs")
same(s.ask(sql="SELECT 1")[1]["rows"], [[1]], "and after them")
for c in slow:
    c.close()
with open(f"/proc/{s.process.pid}/status", encoding="ascii") as f:
    memory = int(re.search(r"VmHWM:\s*(\d+)", f.read())[1])
if not os.environ.get("SANITIZE"):
    check(memory < 600000, "memory", f"{memory} KB")
with open(f"/proc/{s.process.pid}/fd/0", "rb"):
    files = len(os.listdir(f"/proc/{s.process.pid}/fd"))
check(files < 60, "files that are open", files)
status, headers, body = s.get("report")
check(status == 200 and b'id="data-exits"' in body and "script-src" not in headers["Content-Security-Policy"], "the report, with a policy of its own",
      (status, headers, body[:300]))

# Two databases: a load meanwhile does not stand in the way; one port for two is an error.
taken = subprocess.run([program, vm, "serve", "--port", str(s.port)], capture_output=True, text=True, timeout=20)
check(taken.returncode == 1 and "cannot listen" in taken.stderr, "a port that is taken", taken.stderr)
same(s.end(), (0, ""), "SIGTERM ends it: 0, and nothing said")

# A database without branches: they are decoded from the container, a part of the trace at a time; what else it lacks is said.
s = Server(sums, "serve")
whole = sqlite3.connect(vm)
low, high, begin, end = whole.execute("SELECT min(tsc_lo), max(tsc_lo), min(time_ns) - 1000, max(time_ns) + 1000 FROM"
                                      " (SELECT tsc_lo, time_ns FROM branches LIMIT 3000 OFFSET 20000)").fetchone()
status, t = s.ask(name="branches-between", limit=100000, **{"p.limit": 100000, "p.after": begin, "p.until": end})
at = {name: t["columns"].index(name) for name in ("from_ip_hex", "to_ip_hex")} if status == 200 else {}
signed = lambda ip: ip and int(ip, 16) - (int(ip, 16) >> 63 << 64)  # noqa: E731
got = {tuple(signed(row[i]) for i in at.values()) for row in t.get("rows", [])}
expected = [(f, to) for f, to in whole.execute("SELECT from_ip, to_ip FROM branches WHERE tsc_lo > ? AND tsc_lo < ?", (low, high))]
check(status == 200 and len(expected) > 2000 and not set(expected) - got, "branches are decoded", (status, len(got), t.get("error")))
status, t = s.ask(name="branches-between", **{"p.after": begin, "p.until": begin + 200000000})
check(status == 400 and "at most 100 ms" in t["error"], "of a long time they are not", t)
status, t = s.ask(sql="SELECT count(*) FROM branches")
check("branches" in t.get("error", "") + t.get("note", ""), "another question says what is missing", t)
same(s.ask(sql="SELECT count(*) FROM vmexits")[1]["note"], "", "and nothing, where nothing is")
s.end()

# What decodes is stopped when its time is over, its client goes away or the server ends, also when it will not: programs that are
# never done, in the places of pt-decode and pt-load.
folder = os.path.join(os.path.dirname(sums), "never")
os.makedirs(os.path.join(folder, "scratch"))
shutil.copy(program, folder)
pids = os.path.join(folder, "pids")
for name, words in (("pt-decode", ""), ("pt-load", "trap '' TERM\n")):
    with open(os.path.join(folder, name), "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\n{words}echo $$ >>{pids}\nfor i in $(seq 600); do sleep 0.1; done\n")
    os.chmod(f.name, 0o755)
program = os.path.join(folder, "pt-query")
os.environ["TMPDIR"] = os.path.join(folder, "scratch")


def wait_until(what, seconds=30):
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


def running():
    """Of those that were started, how many are not gone."""
    with open(pids, encoding="ascii") as f:
        return sum(os.path.exists(f"/proc/{pid.strip()}") for pid in f)


def decoding(server):
    """A client whose answer is being decoded."""
    if os.path.exists(pids):
        os.remove(pids)
    c = socket.create_connection(("127.0.0.1", server.port))
    c.sendall(f"GET /{server.token}/api/query?name=branches-between&p.after={begin}&p.until={end} HTTP/1.1\r\n"
              f"Host: 127.0.0.1:{server.port}\r\n\r\n".encode())
    check(wait_until(lambda: os.path.exists(pids) and running() == 2), "branches are being decoded")
    return c


def is_stopped(how):
    check(wait_until(lambda: not running(), 10), f"{how}: nothing is decoded any more", running())
    check(wait_until(lambda: not os.listdir(os.environ["TMPDIR"])), f"{how}: no file is left")


s = Server(sums, "serve")
decoding(s).close()
is_stopped("its client went away")
c = decoding(s)
same(s.end()[0], 0, "a server that decodes ends")
is_stopped("the server has ended")
c.close()
s = Server(sums, "serve", "--timeout", "1")
c = decoding(s)
check(b" 503 " in c.recv(100), "its time is over: 503")
is_stopped("its time is over")
c.close()
s.end()
ended = subprocess.run([program, sums, "--timeout", "1", "branches-between", "-p", f"after={begin}", "-p", f"until={end}"],
                       capture_output=True, text=True, timeout=30)
check(ended.returncode == 1 and "too long" in ended.stderr, "pt-query --timeout stops it, too", (ended.returncode, ended.stderr))
is_stopped("pt-query --timeout")
sum_up()
