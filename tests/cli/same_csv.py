"""same_csv.py FOLDER NAME... - whether FOLDER/NAME.ours and NAME.shell hold the same rows, whatever the
quoting, and FOLDER/NAME.json as many objects. The sqlite3 shell writes nothing when there is no row. The last
line is "N passed, N failed"."""
import csv
import json
import sys

folder, names = sys.argv[1], sys.argv[2:]
passed = 0
for name in names:
    ours, shell = (list(csv.reader(open(f"{folder}/{name}.{end}", newline=""))) for end in ("ours", "shell"))
    objects = json.load(open(f"{folder}/{name}.json"))
    if ours == (shell or ours[:1]) and len(objects) == len(ours) - 1 and all(list(o) == ours[0] for o in objects):
        passed += 1
    else:
        print(f"FAILED: {name}: {len(ours)} lines, the shell's {len(shell)}, {len(objects)} objects")
print(f"{passed} passed, {len(names) - passed} failed")
