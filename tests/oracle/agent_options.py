"""agent_options.py HOST.dat GUEST.dat TID OFFSET: adds to two version 7 files of trace-cmd what its agent
would have written: the host's GUEST option (vCPU 0 is thread TID) and the guest's TIME_SHIFT (guest TSC =
host TSC + OFFSET)."""
import struct
import sys

host, guest, tid, offset, name = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), b"vm0\0"


def sections(d):
    at = d.index(b"\0", 10) + 1 + 6
    for _ in range(2):
        at = d.index(b"\0", at) + 1
    return at


def options(d):
    """(id, offset of data, size) of all, and where the last one's link is"""
    at, found = struct.unpack_from("<Q", d, sections(d))[0], []
    while True:
        at += 16
        while True:
            i, n = struct.unpack_from("<HI", d, at)
            if i == 0:
                break
            found.append((i, at + 6, n))
            at += 6 + n
        link = at + 6
        at = struct.unpack_from("<Q", d, link)[0]
        if not at:
            return found, link


def add(path, i, data):
    d = bytearray(open(path, "rb").read())
    _, link = options(d)
    struct.pack_into("<Q", d, link, len(d))
    body = struct.pack("<HI", i, len(data)) + data + struct.pack("<HIQ", 0, 8, 0)
    d += struct.pack("<HHIQ", 0, 0, 0, len(body)) + body
    open(path, "wb").write(d)


def traceid(path):
    d = open(path, "rb").read()
    return next(struct.unpack_from("<Q", d, at)[0] for i, at, _ in options(d)[0] if i == 11)


add(host, 13, name + struct.pack("<QIII", traceid(guest), 1, 0, tid))
add(guest, 12, struct.pack("<QIII", traceid(host), 0, 1, 2) + struct.pack("<QQ", 0, 1 << 62) + struct.pack("<qq", -offset, -offset)
    + struct.pack("<QQ", 1, 1) + struct.pack("<QQ", 0, 0))
