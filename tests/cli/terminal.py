"""terminal.py COMMAND... - runs it with standard output on a pseudo terminal, and writes what the terminal gets.

$TERMINAL_STDERR: a file for standard error; empty: it goes to the terminal, too."""
import os
import pty
import sys

sys.stdout.flush()
pid, fd = pty.fork()
if pid == 0:
    if os.environ["TERMINAL_STDERR"]:
        error = os.open(os.environ["TERMINAL_STDERR"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(error, 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.execv(sys.argv[1], sys.argv[1:])
got = b""
while True:
    try:
        more = os.read(fd, 65536)
    except OSError:  # how Linux says that the other side has closed
        break
    if not more:
        break
    got += more
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.stdout.buffer.write(got.replace(b"\r\n", b"\n"))
sys.exit(status if status >= 0 else 1)
