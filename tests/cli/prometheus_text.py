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

typed, got, seen = [], Counter(), set()
for line in open(sys.argv[1], encoding="utf-8").read().split("\n")[:-1]:
    if line.startswith("# TYPE "):
        name, kind = line[7:].split(" ")
        assert re.fullmatch(NAME, name) and kind == "gauge" and name not in typed, line
        typed.append(name)
        continue
    m = SAMPLE.fullmatch(line)
    assert m and m[1] == typed[-1], line  # a metric's samples stand together
    at, labels = 0, {}
    while m[2] and at < len(m[2]):
        label = LABEL.match(m[2], at)
        assert label and label[1] not in labels, line
        labels[label[1]] = label[2]
        at = label.end()
    key = (m[1], tuple(sorted(labels.items())))
    assert key not in seen, line
    seen.add(key)
    got[Decimal(m[3].replace("Inf", "Infinity"))] += 1

numbers = Counter()
for row in json.load(open(sys.argv[2], encoding="utf-8"), parse_float=Decimal):
    for column, value in row.items():
        if not isinstance(value, (int, Decimal)):
            continue
        value = Decimal(value)
        if abs(value) == Decimal("1e999"):  # our JSON's infinity
            value = Decimal("Infinity").copy_sign(value)
        numbers[value.scaleb(-9) if ("_" + column).endswith("_ns") and value.is_finite() else value] += 1
for value, n in got.items():
    assert numbers[value] >= n, value
