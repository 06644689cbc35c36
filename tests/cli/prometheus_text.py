"""prometheus_text.py TEXT JSON - reads a Prometheus text exposition strictly, and compares it with the same
rows as JSON: every number must be there, once, in seconds where the column is in ns. Exit 1: not so."""
import json
import re
import sys
from decimal import Decimal
from collections import Counter

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(r"(%s)(?:\{(.*)\})? (\S+)" % NAME)
LABEL = re.compile(r'(%s)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)' % NAME)

typed, got, seen, kind, described = [], Counter(), set(), "", None
buckets = {}  # of a histogram: labels -> [(le, count)]
for line in open(sys.argv[1], encoding="utf-8").read().split("\n")[:-1]:
    if line.startswith("# HELP "):
        described = line.split(" ")[2]
        assert line.count(" ") > 2, line
        continue
    if line.startswith("# TYPE "):
        name, kind = line[7:].split(" ")
        assert re.fullmatch(NAME, name) and kind in ("gauge", "counter", "histogram") and name not in typed, line
        assert name == described and (kind == "counter") == name.endswith("_total"), line
        typed.append(name)
        continue
    m = SAMPLE.fullmatch(line)
    ends = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
    assert m and m[1] in [typed[-1] + end for end in ends], line  # a metric's samples stand together
    at, labels = 0, {}
    while m[2] and at < len(m[2]):
        label = LABEL.match(m[2], at)
        assert label and label[1] not in labels, line
        labels[label[1]] = label[2]
        at = label.end()
    key = (m[1], tuple(sorted(labels.items())))
    assert key not in seen, line
    seen.add(key)
    value = Decimal(m[3].replace("Inf", "Infinity"))
    if kind == "histogram":
        le = labels.pop("le", None)
        of = buckets.setdefault(tuple(sorted(labels.items())), {"bucket": []})
        if le is None:
            of[m[1].rsplit("_", 1)[1]] = value
        else:
            of["bucket"].append((Decimal(le.replace("Inf", "Infinity")), value))
    else:
        got[value] += 1

rows = json.load(open(sys.argv[2], encoding="utf-8"), parse_float=Decimal)
for labels, of in buckets.items():
    named = dict(labels)
    mine = [row for row in rows if all(str(row[k]) == named[k] if k in named else row[k] is None for k in row
                                       if k not in ("le_ns", "exits", "cumulative_count", "sum_ns"))]
    assert of["bucket"] == sorted(of["bucket"]) and [n for _, n in of["bucket"]] == sorted(n for _, n in of["bucket"]), labels
    assert of["bucket"][-1] == (Decimal("Infinity"), of["count"]), labels
    assert [n for _, n in of["bucket"]] == [row["cumulative_count"] for row in mine], labels
    assert of["sum"] == Decimal(mine[0]["sum_ns"]).scaleb(-9), labels
    assert [le for le, _ in of["bucket"][:-1]] == [Decimal(row["le_ns"]).scaleb(-9) for row in mine[:-1]], labels

numbers = Counter()
for row in rows:
    for column, value in row.items():
        if not isinstance(value, (int, Decimal)):
            continue
        value = Decimal(value)
        if abs(value) == Decimal("1e999"):  # our JSON's infinity
            value = Decimal("Infinity").copy_sign(value)
        numbers[value.scaleb(-9) if ("_" + column).endswith("_ns") and value.is_finite() else value] += 1
for value, n in got.items():
    assert numbers[value] >= n, value
