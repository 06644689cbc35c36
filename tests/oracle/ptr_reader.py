"""A second reader of record streams, written from pt-records(5) alone; it shares no code with ours.

ptr_reader.py FILE: checks the checksums, and END's counts; prints "NAME NUMBER" lines: records by type,
branches, and sums over fields, which a database of the same stream must have."""

import struct
import sys
import zlib

M64 = (1 << 64) - 1
UNKNOWN = M64


def crc32c_table():
    table = list(range(256))
    for _ in range(8):
        table = [c >> 1 ^ (0x82f63b78 if c & 1 else 0) for c in table]
    return table


CRC32C = crc32c_table()
# type: (name, fields); as in the manual
FIELDS = {
    1: ("META", "ss"),
    2: ("MACHINE", "vs"),
    3: ("THREAD", "vzzs"),
    4: ("DSO", "ss"),
    5: ("SYMBOL", "vaavvs"),
    6: ("EDGE", "aavvv"),
    7: ("PATH", "P"),
    8: ("SLICE", "vzzvt"),
    13: ("SLICE_END", "vtvuvv"),
    14: ("CALL_PATH", "vva"),
    15: ("CALL", "K"),
    16: ("EVENT", "vvvzztass"),
    17: ("ERROR", "vvzttauss"),
    19: ("GUEST_RUN", "vvzzuuttuuaavvuuuv"),
    20: ("VMEXIT_INTERVAL", "vvzzzvvuttuuavvvuvvuuuuuvuvvvuuuuvv"),
    21: ("VM_CLOCK", "vzutvuvvvuv"),
    22: ("CODE", "C"),
    23: ("PATH_SUM", "vvvvvd"),
    24: ("CALL_SUM", "vvvvvuu"),
    29: ("INTERRUPT", "vvvt"),
}


class Block:
    def __init__(self, payload):
        self.b, self.at, self.ip, self.tsc = payload, 0, 0, 0
        self.slice = self.run_tsc = 0
        self.thread = self.stack = self.return_tsc = self.return_branch = 0

    def v(self):
        value = shift = 0
        while True:
            byte = self.b[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def z(self):
        n = self.v()
        return n >> 1 ^ -(n & 1)

    def u(self):
        return (self.v() - 1) & M64

    def a(self):
        self.ip = (self.ip + self.z()) & M64
        return self.ip

    def t(self):
        return (self.tsc + self.z()) & M64

    def s(self):
        n = self.v()
        self.at += n
        return self.b[self.at - n : self.at]

    def d(self):
        self.at += 8
        return struct.unpack("<d", self.b[self.at - 8 : self.at])[0]

    def P(self):
        start, count, not_taken, tail, end = self.a(), self.v(), self.v(), self.v(), self.a()
        self.v()  # code_version
        return start, [self.v() for _ in range(count)], [self.v() for _ in range(count)], not_taken, tail, end

    def C(self):
        self.v(), self.v(), self.v(), self.a()
        count = self.v()
        self.at += count
        self.at += sum(self.b[self.at - count : self.at])


    def K(self):
        flags = self.v()
        if flags & 1:
            self.thread = self.stack = self.return_tsc = self.return_branch = 0
        if flags & 2:
            self.thread, self.stack = self.v(), self.v()
        self.v()  # call_path
        self.return_tsc = (self.return_tsc + self.z()) & M64
        call_tsc = (self.return_tsc - self.z()) & M64
        self.return_branch = (self.return_branch + self.z()) & M64
        call_branch = (self.return_branch - self.z()) & M64
        branches, insns = self.v(), self.v()
        self.u()  # cyc_count
        return call_tsc, self.return_tsc, call_branch, self.return_branch, branches, insns, self.thread, self.stack, self.v()


def crc32c(data):
    """RFC 3720, B.4."""
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def main():
    f = open(sys.argv[1], "rb")
    head = f.read(16)
    assert head[:8] == b"\x89PTR\r\n\x1a\n", "magic"
    assert struct.unpack("<I", head[12:])[0] == zlib.crc32(head[:12]), "header's checksum"
    assert struct.unpack("<H", head[8:10])[0] == 11, "version"
    counts, sums, lengths, number, ended = [0] * 30, {}, [0], 0, False

    def add(name, n):
        sums[name] = sums.get(name, 0) + n

    while True:
        head = f.read(20)
        if not head:
            break
        magic, n, size, crc, own = struct.unpack("<4sIIII", head)
        payload = f.read(size)
        assert magic == b"PTRB" and n == number and own == zlib.crc32(head[:16]) and crc == crc32c(payload), "block"
        number += 1
        b = Block(payload)
        while b.at < size:
            assert not ended, "something follows END"
            kind = payload[b.at]
            b.at += 1
            if 9 <= kind & 15 <= 12:
                if kind & 0x10:
                    b.slice = b.v()
                if kind & 0x20:
                    b.tsc = (b.tsc + b.z()) & M64
                repeats = b.v() if kind & 0x40 else 1
                if kind & 0x80:
                    add("run_cycles", b.v())
                    b.v()
                path = b.v()
                assert 0 < b.slice <= counts[8], "a run's slice"
                counts[9] += 1
                add("branches", repeats * lengths[path])
                continue
            if kind == 18:
                given = [b.v() for _ in range(30)]
                assert given == [0 if i == 18 else c for i, c in enumerate(counts)], "END's counts"
                assert b.v() == sums.get("branches", 0), "END's branches"
                ended = True
                continue
            name, fields = FIELDS[kind]
            values = [getattr(b, x)() for x in fields]
            counts[kind] += 1
            if kind == 7:
                lengths.append(len(values[0][1]))
            elif kind == 23:
                add("branches", values[3] * lengths[values[0]])
            elif kind == 24:
                add("summed_calls", values[2])
            elif kind == 5:
                add("functions", values[4] == 0)
                assert values[4] < counts[5], "a symbol's first"
            elif kind == 6:
                add("edges_of_kind_%d" % (values[2] % 32), 1)
                add("edge_from", values[0])
            elif kind == 15:
                call_tsc, return_tsc, call_branch, return_branch, branches, insns, thread, stack, depth = values[0]
                add("call_branches", branches)
                add("call_insns", insns)
                if UNKNOWN not in (call_tsc, return_tsc):
                    add("call_elapsed_tsc", return_tsc - call_tsc)
                if call_branch and return_branch:
                    add("call_branch_ids", return_branch - call_branch)
            elif kind == 13:
                add("insns", values[2])
            elif kind == 19 and values[14] != UNKNOWN:
                add("guest_insns", values[14])
            elif kind == 20 and values[29] != UNKNOWN:
                add("host_insns", values[29])
    assert ended, "no END"
    for i, n in enumerate(counts):
        if i in FIELDS:
            print(FIELDS[i][0], n)
    print("RUN", counts[9])
    for name in sorted(sums):
        print(name, sums[name] & M64)


main()
