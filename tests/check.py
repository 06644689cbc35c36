"""check.py - how the tests that are written in Python count, as tests/unit/check.h does in C: a test is what
its text says, the same text in a loop is one test, also where only numbers in it differ; it passes when the
condition held each time.

    sys.path.append("tests")
    from check import check, same, sum_up
"""
import re

SHOWN_MAX = 5  # that many failures of one test are printed
_failures = {}


def check(ok, what, detail=""):
    """What must hold; detail, of which a failure prints the beginning, is no part of the test's text."""
    text = re.sub("[0-9]+", "0", what)
    _failures[text] = _failures.get(text, 0) + (not ok)
    if not ok and _failures[text] <= SHOWN_MAX:
        print(f"FAILED: {what}{': ' if detail != '' else ''}{detail}"[:400])


def same(expected, got, what, of=""):
    """check() that both are the same; of: of which of those that the text is about."""
    check(expected == got, what, f"{of} expected {expected!r}, got {got!r}".strip())


def sum_up():
    """Prints the line that tests/run.sh wants; the exit status."""
    failed = sum(n > 0 for n in _failures.values())
    print(f"{len(_failures) - failed} passed, {failed} failed")
    return int(failed > 0)
