"""grafana.py DASHBOARD - its statements as a dashboard asks them, a line each: WHAT, a tab, the statement. Variables have all values: what
their own statements answer is asked with the command in $ASK (statement in, a value a line out)."""
import json
import os
import re
import subprocess
import sys

dashboard = json.load(open(sys.argv[1], encoding="utf-8"))
assert dashboard["title"] and dashboard["uid"] and dashboard["panels"] and dashboard["annotations"]["list"]
values = {}
for v in dashboard["templating"]["list"]:
    query = v["query"]
    text = query if isinstance(query, str) else query.get("rawQueryText", query.get("query"))
    if "label_values" in text:
        values[v["name"]] = None  # Prometheus: .*
        continue
    answer = subprocess.run(os.environ["ASK"], input=text, shell=True, check=True, capture_output=True, text=True).stdout
    values[v["name"]] = answer.splitlines()
    assert values[v["name"]], v["name"]


def filled(text):
    def value(m):
        found = values[m[1] or m[2]]
        return ".*" if found is None else ",".join("'" + x.replace("'", "''") + "'" for x in found)
    return re.sub(r"\$\{(\w+):\w+\}|\$(\w+)", value, text)


ids = [p["id"] for p in dashboard["panels"]]
assert len(set(ids)) == len(ids)
for what in dashboard["panels"] + dashboard["annotations"]["list"]:
    for target in what.get("targets", [what.get("target", what)]):
        text = target.get("rawQueryText") or target.get("rawSql") or target["expr"]
        print(what.get("title") or "annotation " + what["name"], filled(text), sep="\t")
