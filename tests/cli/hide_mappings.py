#!/usr/bin/env python3
"""tests/cli/hide_mappings.py PID FILE - gives the MMAP2 records of a process in a perf.data file to one that there is
not. Prints how many it were."""
import struct
import sys

MMAP2, AUXTRACE, NOBODY = 10, 71, 999999
pid, path = int(sys.argv[1]), sys.argv[2]
with open(path, "rb") as f:
    data = bytearray(f.read())
at, size = struct.unpack_from("<QQ", data, 40)  # struct perf_file_header: data
end, count = at + size, 0
while at < end:
    kind, _, length = struct.unpack_from("<IHH", data, at)
    if kind == MMAP2 and struct.unpack_from("<i", data, at + 8)[0] == pid:
        struct.pack_into("<ii", data, at + 8, NOBODY, NOBODY)
        count += 1
    # The trace follows its record.
    at += length + (struct.unpack_from("<Q", data, at + 8)[0] if kind == AUXTRACE else 0)
with open(path, "wb") as f:
    f.write(data)
print(count)
