"""perf2raw.py PERF_DATA DIR: takes a perf.data apart as other tools keep traces: DIR/cpuN.pt, each CPU's AUX
bytes; DIR/side, the kernel's records one after the other; DIR/options, what `pt-capture import --raw` needs
beside them."""
import os
import struct
import sys

AUXTRACE_INFO, AUXTRACE, FIRST_OF_PERF = 70, 71, 64
SAMPLE = 9


def main():
    data = open(sys.argv[1], "rb").read()
    folder = sys.argv[2]
    magic, _, attr_size, attrs_at, _, data_at, data_size = struct.unpack_from("<8s6Q", data)
    assert magic == b"PERFILE2"
    sample_type, = struct.unpack_from("<Q", data, attrs_at + 24)
    at, end, options = data_at, data_at + data_size, ["--sample-type", hex(sample_type)]
    cpus = {}
    with open(os.path.join(folder, "side"), "wb") as side:
        while at < end:
            kind, _, size = struct.unpack_from("<IHH", data, at)
            if kind == AUXTRACE:
                aux_size, _, _, _, _, cpu = struct.unpack_from("<3Q2Ii", data, at + 8)
                cpus.setdefault(cpu, bytearray()).extend(data[at + size:at + size + aux_size])
                at += aux_size
            elif kind == AUXTRACE_INFO:
                words = struct.unpack_from("<18Q", data, at + 16)
                options += ["--time-shift", words[1], "--time-mult", words[2], "--time-zero", words[3]]
                mtc_bits, numerator, denominator, nominal = words[11], words[12], words[13], words[15]
                config, = struct.unpack_from("<Q", data, attrs_at + 8)
                options += ["--pt-config", hex(config), "--tsc-ratio", f"{numerator}/{denominator}"]
                if mtc_bits:
                    shift = (mtc_bits & -mtc_bits).bit_length() - 1
                    options += ["--mtc-freq", (config & mtc_bits) >> shift]
                options += ["--nom-freq", nominal]
            elif kind < FIRST_OF_PERF and kind != SAMPLE:
                side.write(data[at:at + size])
            at += size
    for cpu, aux in cpus.items():
        with open(os.path.join(folder, f"cpu{cpu}.pt"), "wb") as out:
            out.write(aux)
        options += ["--raw", f"cpu{cpu}.pt", "--on-cpu", cpu]
    print(*options, "--sideband", "side")


main()
