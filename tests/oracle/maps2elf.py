#!/usr/bin/env python3
"""maps2elf.py MAPS OUT - an ELF file with the code of ../shared/bench/X.maps at its addresses, for tools that
read code from ELF files only (perf). A MAPS line is START END OFFSET FILE, hex; FILE or FILE.zst is beside
MAPS."""
import os
import struct
import subprocess
import sys

maps, out = sys.argv[1:]
segments, files = [], {}
for line in open(maps):
    start, end, offset, name = line.split()
    path = os.path.join(os.path.dirname(maps), name)
    if path not in files:
        files[path] = open(path, "rb").read() if os.path.exists(path) else \
            subprocess.run(["zstd", "-dcq", path + ".zst"], stdout=subprocess.PIPE, check=True).stdout
    start, end, offset = int(start, 16), int(end, 16), int(offset, 16)
    segments.append((start, files[path][offset:offset + end - start]))
at = 4096
headers, body = b"", b""
for start, code in segments:
    headers += struct.pack("<IIQQQQQQ", 1, 5, at, start, start, len(code), len(code), 4096)
    code += bytes(-len(code) % 4096)
    body += code
    at += len(code)
# perf crashes on a file without sections: one for each segment, and their names.
names = b"\0.text\0.shstrtab\0"
sections = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
where = 4096
for start, code in segments:
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 6, start, where, len(code), 0, 0, 16, 0)
    where += len(code) + -len(code) % 4096
sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, at, len(names), 0, 0, 1, 0)
elf = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
    "<HHIQQQIHHHHHH", 2, 62, 1, segments[0][0], 64, at + 64, 0, 64, 56, len(segments), 64, len(segments) + 2,
    len(segments) + 1)
with open(out, "wb") as f:
    f.write((elf + headers).ljust(4096, b"\0") + body + names.ljust(64, b"\0") + sections)
