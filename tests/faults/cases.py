"""cases.py - the runs whose calls are made to fail."""
import dataclasses
import os
import subprocess
import typing

from contents import content_of_compressed, content_of_database, content_of_file


def prepared_environment():
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": "/nonexistent", "TZ": "UTC0"}
    if "PT_COVERAGE" in os.environ:
        env["FAULT_GCOV"] = "1"
        if "GCOV_PREFIX" in os.environ:
            env["GCOV_PREFIX"] = os.environ["GCOV_PREFIX"]
    return env


@dataclasses.dataclass
class Case:
    name: str
    command: list
    before: dict = dataclasses.field(default_factory=dict)  # name in the run's folder: what it is a copy of
    outputs: list = dataclasses.field(default_factory=list)
    stdin: typing.Optional[str] = None
    content: typing.Callable = content_of_file
    ignored: typing.Callable = bytes
    again: typing.Optional[typing.Callable] = None  # after a kill
    excuse: typing.Optional[bytes] = None  # in the stacks of calls that fail: the fault is not ours
    crashes: bool = False  # a power failure is tried, too
    incomplete: typing.Optional[bytes] = None  # what makes a run good that ends with 3: a stretch that is an error row
    warns: typing.Optional[bytes] = None  # what makes a run good that ends with 0, and with less than without faults


def tool(name):
    return os.path.join(os.environ["PT_BIN"], name)


def run(*command):
    status = subprocess.run(command, check=False, env=prepared_environment(), stdout=subprocess.PIPE).returncode
    assert status in (0, 3), f"{command}: {status}"


TINY = """
.globl _start
_start:	mov $20, %ecx
1:	call f
	dec %ecx
	jnz 1b
	mov $60, %eax
	xor %edi, %edi
	syscall
f:	test $1, %cl
	jz 2f
	nop
2:	ret
"""


def perf_recording():
    """A perf.data of a physical CPU, where there is one; and the folder with the traced machine's files."""
    folder = os.path.join(os.path.realpath(os.environ.get("PT_SHARED", "../shared")), "traces/hase/loopy-broadwell-20180514")
    return folder if os.path.exists(folder + "/perf.data") else None


def fixtures(work):
    """Small inputs of each kind, made once."""
    made = os.path.join(work, "made")
    os.mkdir(made)
    files = {name: os.path.join(made, name) for name in
             ("tiny", "tiny.ptc", "tiny.pts", "perf.ptc", "perf.pts", "dat.ptc", "dat.pts", "tiny.db", "packed.db", "old", "raw.pt")}
    with open(os.path.join(made, "tiny.s"), "w", encoding="utf-8") as f:
        f.write(TINY)
    run("cc", "-nostdlib", "-static", "-o", files["tiny"], os.path.join(made, "tiny.s"))
    run(tool("pt-capture"), "-q", "--engine", "step", "-o", files["tiny.ptc"], "--", files["tiny"])
    run(tool("pt-decode"), "-q", "-o", files["tiny.pts"], files["tiny.ptc"])
    run(tool("pt-load"), "-q", files["tiny.db"], files["tiny.pts"])
    run(tool("pt-load"), "-q", "--compress", files["packed.db"], files["tiny.pts"])
    files["vm.ptc"] = os.path.realpath("tests/data/vm/tracepoint.ptc")
    files["vm.pts"] = os.path.join(made, "vm.pts")
    run(tool("pt-decode"), "-q", "--guest-code", "-o", files["vm.pts"], files["vm.ptc"])
    files["host.dat"] = os.path.realpath("tests/data/trace-cmd/host.dat")
    files["guest.dat"] = os.path.realpath("tests/data/trace-cmd/guest.dat")
    run(tool("pt-capture"), "import", "-q", "-o", files["dat.ptc"], files["host.dat"])
    run(tool("pt-decode"), "-q", "-o", files["dat.pts"], files["dat.ptc"])
    perf = perf_recording()
    if perf:
        files["perf.data"] = perf + "/perf.data"
        files["symfs"] = perf + "/symfs"
        run(tool("pt-capture"), "import", "-q", "--symfs", files["symfs"], "-o", files["perf.ptc"], files["perf.data"])
        run(tool("pt-decode"), "-q", "-o", files["perf.pts"], files["perf.ptc"])
    with open(files["old"], "w", encoding="utf-8") as f:
        f.write("old\n")
    return files


def of_the_branches(path):
    """What a captured program did. Times and ids are of the one run."""
    text = subprocess.run([tool("pt-decode"), "-q", "--text", "-F", "comm,class,kind,from,to,insns", path], check=False,
                          env=prepared_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return (text.returncode, text.stdout)


def capture_cases(f):
    yield Case("capture", [tool("pt-capture"), "-q", "--engine", "step", "-o", "out", "--", f["tiny"]],
               outputs=["out"], content=of_the_branches)
    yield Case("capture over a file", [tool("pt-capture"), "-q", "--engine", "step", "-o", "out", "--", f["tiny"]],
               before={"out": f["tiny.ptc"]}, outputs=["out"], content=of_the_branches)
    yield Case("info", [tool("pt-capture"), "info", f["tiny.ptc"]])
    yield Case("info --json", [tool("pt-capture"), "info", "--json", f["tiny.ptc"]])
    yield Case("trim --used-code", [tool("pt-capture"), "trim", "-q", "--used-code", "-o", "out", f["tiny.ptc"]],
               before={"out": f["old"]}, outputs=["out"])
    yield Case("trim --time", [tool("pt-capture"), "trim", "-q", "--time", "+0..+1", "-o", "out", f["tiny.ptc"]],
               outputs=["out"])
    yield Case("export", [tool("pt-capture"), "export", "-q", "--perf-data", "out", f["tiny.ptc"]],
               before={"out": f["old"]}, outputs=["out"])
    yield Case("merge", [tool("pt-capture"), "merge", "-o", "out", f["dat.ptc"], "--guest-image",
                         f"1:{f['tiny']}:1000"], outputs=["out"])
    yield Case("import trace.dat", [tool("pt-capture"), "import", "-q", "-o", "out", f["host.dat"]],
               before={"out": f["old"]}, outputs=["out"],
               excuse=rb"tep_register_comm")  # libtraceevent 1.7 goes on without that name
    if "perf.data" in f:
        # A file that cannot be read is left out with a warning, so that one bad disk does not end an import.
        unread = rb"no code for /.*: (Input/output error|Too many open files)"
        yield Case("import perf.data", [tool("pt-capture"), "import", "--symfs", f["symfs"], "-o", "out",
                                        f["perf.data"]], before={"out": f["old"]}, outputs=["out"], warns=unread)
        yield Case("import a pipe", [tool("pt-capture"), "import", "--symfs", f["symfs"], "-"],
                   stdin=f["perf.data"], warns=unread)


def decode_cases(f):
    for name in ("tiny", "perf", "dat"):
        if not os.path.exists(f[name + ".ptc"]):
            continue
        yield Case(f"decode {name}", [tool("pt-decode"), "-j1", "-q", "-o", "out", f[name + ".ptc"]], before={"out": f["old"]},
                   outputs=["out"])
    name = "perf" if "perf.data" in f else "tiny"
    for option in ("--text", "--packets", "--used-code"):
        yield Case(f"decode {option}", [tool("pt-decode"), "-j1", "-q", option, f[name + ".ptc"]])
    # The code graph is emptied over and over; what else knows of its paths is kept.
    for name, options in (("records", ["-o", "out"]), ("sums", ["--detail", "sums", "-o", "out"]), ("text", ["--text"])):
        if "perf.data" in f:
            yield Case(f"decode with little memory: {name}", [tool("pt-decode"), "-j1", "-q", "--memory", "1", *options, f["perf.ptc"]],
                       outputs=["out"] if "out" in options else [])
    yield Case("decode a VM", [tool("pt-decode"), "-j1", "--guest-code", "-o", "out", f["vm.ptc"]], outputs=["out"],
               incomplete=rb"could not be decoded; see the errors")
    yield Case("decode with threads", [tool("pt-decode"), "-j3", "--guest-code", "-o", "out", f["vm.ptc"]], outputs=["out"],
               incomplete=rb"could not be decoded; see the errors")
    yield Case("decode vm-clock", [tool("pt-decode"), "vm-clock", f["vm.ptc"]])
    yield Case("decode --insns", [tool("pt-decode"), "-j1", "-q", "--insns", "-F", "tid,ip,symbol,insn", f["tiny.ptc"]],
               excuse=rb"libcapstone")  # cs_open() of capstone 4 looks at no malloc()
    yield Case("decode from a pipe", [tool("pt-decode"), "-j1", "-q"], stdin=f["tiny.ptc"])
    yield Case("decode --stats", [tool("pt-decode"), "-j1", "-q", "--null", "--stats", f["tiny.ptc"]])


def loads_again(case, whole, killed):
    """After a kill, the same load works, and leaves nothing but the database."""
    path = killed.path(case.outputs[0])
    there = os.path.exists(path) and case.content(path) == whole["files"][case.outputs[0]]
    if there and "--compress" in case.command:  # nothing is added to it
        os.unlink(path)
        there = False
    command = case.command[:1] + (["--replace"] if there else []) + case.command[1:]
    done = subprocess.run(command, cwd=killed.folder, check=False, env=prepared_environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode not in (0, 3):
        return f"the next load fails: {done.stderr!r}"
    if not there and case.content(path) != whole["files"][case.outputs[0]]:
        return "the next load makes another database"
    left = killed.names() - set(case.outputs) - set(case.before)
    return f"{', '.join(sorted(left))} is left after the next load" if left else ""


def load_cases(f):
    second = f["perf.pts"] if "perf.data" in f else f["dat.pts"]
    yield Case("load", [tool("pt-load"), "-q", "-j", "1", "db", f["tiny.pts"]], outputs=["db"], content=content_of_database,
               again=loads_again, crashes=True)
    yield Case("load into a database", [tool("pt-load"), "-q", "-j", "1", "db", second], before={"db": f["tiny.db"]},
               outputs=["db"], content=content_of_database, again=loads_again, crashes=True)
    # libdw 0.188's hash table asserts that it gets memory; glibc's assert() has none for its words.
    yield Case("load a VM", [tool("pt-load"), "-q", "-j", "1", "db", f["vm.pts"]], outputs=["db"], content=content_of_database,
               again=loads_again, excuse=rb"resize_coordinator: Assertion|Unexpected error\.")
    yield Case("load with threads", [tool("pt-load"), "-q", "-j", "5", "db", f["vm.pts"]], outputs=["db"], content=content_of_database,
               again=loads_again, excuse=rb"resize_coordinator: Assertion|Unexpected error\.")
    yield Case("load --compress", [tool("pt-load"), "-q", "-j", "2", "--compress", "db", f["tiny.pts"]], outputs=["db"],
               content=content_of_compressed, again=loads_again, crashes=True)
    yield Case("load --replace", [tool("pt-load"), "-q", "-j", "1", "--name", "other", "--replace", "db", f["tiny.pts"]],
               before={"db": f["tiny.db"]}, outputs=["db"], content=content_of_database, again=loads_again, crashes=True)


def query_cases(f):
    for name in ("table", "csv", "json", "prometheus"):
        yield Case(f"query {name}", [tool("pt-query"), f["tiny.db"], "hot-functions", "--format", name])
    yield Case("query folded", [tool("pt-query"), f["tiny.db"], "folded", "--format", "folded"])
    yield Case("query html", [tool("pt-query"), f["tiny.db"], "--format", "html"],
               excuse=rb"libcapstone")  # capstone 4 looks at no malloc() when it makes its tables
    yield Case("query compressed", [tool("pt-query"), f["packed.db"], "hot-functions"])
    yield Case("query list", [tool("pt-query"), f["tiny.db"]])


def cases(f):
    return [*load_cases(f), *query_cases(f), *decode_cases(f), *capture_cases(f)]
