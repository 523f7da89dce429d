"""share: several pytest processes run the suite together, each with a cluster of its own (`--share FOLDER`, see tools/e2e).

Whoever is free takes the next module that nobody has taken. A module stays whole, because fixtures and the order of
cases are its own business. What a process has collected and run is written down: the folder tells whether all was run, once.
"""

import itertools
import os


def module(item):
    return item.nodeid.split("::")[0]


def take(folder, name):
    """True for one process alone."""
    try:
        os.close(os.open(os.path.join(folder, name.replace("/", "-") + ".taken"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def taken(items, folder):
    for name, cases in itertools.groupby(items, module):
        if take(folder, name):
            yield from cases


def write(folder, kind, items):
    with open(os.path.join(folder, f"{os.getpid()}.{kind}"), "a", encoding="utf-8") as f:
        f.writelines(item.nodeid + "\n" for item in items)


def run(session, folder):
    """As pytest's own loop, over the cases that are ours. A module is taken one case before it begins: what the case before
    may end depends on what follows."""
    write(folder, "collected", session.items)
    cases = taken(session.items, folder)
    case = next(cases, None)
    while case is not None:
        following = next(cases, None)
        case.config.hook.pytest_runtest_protocol(item=case, nextitem=following)
        write(folder, "ran", [case])
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        case = following
    return True
