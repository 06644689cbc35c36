#!/usr/bin/env python3
"""perf_viewer_compare.py PERF.DB OURS.DB PERF.TXT OURS.TXT: what perf's viewer shows (perf_viewer.py) of perf's own export and of
ours. A line for each window: rows of each, rows in common; under it some that one only has. Functions with several names count as
one name: perf and we choose differently. Pieces of paths inside a PLT are left out: to perf 6.1 its first entry, which has no
symbol, is no call, and the entries in .plt.sec are "_init". Not compared: counts of instructions and cycles of each row, as we
and perf end a stretch at different branches (their sums are compared, in oracle/ipc.sh)."""
import collections
import re
import sqlite3
import sys

in_plt = re.compile(r"@plt$|\+0x[0-9a-f]+$|^_init$|^unknown$|^\*")


def symbols(path):
    """At run time: perf's symbols begin where their file says."""
    return sqlite3.connect(path).execute("SELECT DISTINCT to_ip - to_sym_offset, name FROM samples JOIN symbols s ON s.id = to_symbol_id "
                                         "WHERE to_ip > 0 AND to_symbol_id > 0").fetchall()


def rows(path):
    windows = collections.defaultdict(list)
    for line in open(path, encoding="utf-8"):
        window, *columns = line.rstrip("\n").split("\t")
        windows[window].append(columns)
    return windows


def aliases(pairs):
    """Each name's first among all that begin at the same addresses as it, or as another of those."""
    first = {}

    def find(name):
        while first.setdefault(name, name) != name:
            name = first[name]
        return name

    at = {}
    for start, name in pairs:
        a, b = find(at.setdefault(start, name)), find(name)
        first[max(a, b)] = min(a, b)
    return {name: find(name) for name in first}


names = aliases(symbols(sys.argv[1]) + symbols(sys.argv[2]))


def name_of(name):
    return names.get(name, name)


def path_of(text):
    return " > ".join(name_of(p) for p in text.split(" > ") if not in_plt.search(p))


def skip(text):
    return in_plt.search(text.split(" > ")[-1])


def of_graph(columns):  # object, calls, path
    return (columns[1], columns[2], path_of(columns[-1])) if not skip(columns[-1]) else None


def of_tree(columns):
    return (columns[1], path_of(columns[-1])) if not skip(columns[-1]) else None


def of_branches(columns):  # command, pid, tid, kind, in transaction, addresses
    return (*columns[2:7], " ".join(re.findall(r"(?:^|-> )([0-9a-f]+)", columns[-1])))


def of_top(columns):
    return (*columns[:3], name_of(columns[3]), columns[4]) if not in_plt.search(columns[3]) else None


def of_all(columns):
    return tuple(columns)


windows = {"graph": of_graph, "tree": of_tree, "all branches": of_branches, "selected branches": of_branches, "top calls": of_top,
           "time chart": of_all, "context_switches_view": of_all, "threads_view": of_all}
perf, ours = rows(sys.argv[3]), rows(sys.argv[4])
for window, key in windows.items():
    a, b = (collections.Counter(k for k in (key(c) for c in side[window]) if k) for side in (perf, ours))
    common = sum((a & b).values())
    print(f"{window}: perf's {sum(a.values())}, ours {sum(b.values())}, in common {common}")
    for side, only in (("perf's", a - b), ("ours", b - a)):
        for k in list(only)[:4]:
            print("  only " + side, only[k], *k)
