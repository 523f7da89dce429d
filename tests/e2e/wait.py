"""wait: waiting for a condition with a deadline, the only way in which a test spends time."""

import time

# What a busy machine may take for anything at all. Only a failure lasts that long, so no test has a
# reason to ask for less: how fast something is, is the benchmarks' question.
PATIENCE = 120.0


class Late(AssertionError):
    """The condition did not come true in time."""


def wait_for(condition, what=None, interval=0.05):
    """Calls `condition` until it returns something true, and returns that.

    An exception counts as "not yet": while servers come up most calls fail. The last one is part of
    the message when the deadline passes.
    """
    end = time.monotonic() + PATIENCE
    last = None
    while True:
        try:
            value = condition()
            if value:
                return value
            last = f"last value: {value!r}"
        except Exception as error:  # whatever it is, it is reported below
            last = f"last error: {error!r}"
        if time.monotonic() >= end:
            raise Late(f"not within {PATIENCE:g} s: {what or condition}; {last}")
        time.sleep(interval)


def holds_for(condition, seconds, what=None, interval=0.05):
    """Asserts that `condition` stays true for that long: for what must not happen."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert condition(), f"did not hold for {seconds:g} s: {what or condition}"
        time.sleep(interval)
