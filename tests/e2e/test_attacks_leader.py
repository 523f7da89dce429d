"""The leader is killed and frozen in the middle of a roll of profiles and requests, with two controllers."""

import contextlib
import signal
import threading

from attacks import ASKS, LONG, Observer, ask, controller, each, limit, node, phases, sandbox
from contract import LEASE, PROFILE
from requests_api import path
from wait import wait_for

FAULTS = (signal.SIGKILL, signal.SIGSTOP) * (6 if LONG else 1)
LIMIT, ROLL_MAX = 3, 2
NODES = 24
ASKED = 40 * len(FAULTS)
ROLL = f"""\
intervals: {{requeue: 1s}}
instances:
  check:
  - {{type: hasLabel, name: needed, config: {{key: example.com/roll, value: needed}}}}
  - {{type: hasLabel, name: doing, config: {{key: example.com/roll, value: doing}}}}
  - {{type: maxMaintenance, name: few, config: {{max: {ROLL_MAX}}}}}
  trigger:
  - {{type: alterLabel, name: begin, config: {{key: example.com/roll, value: doing}}}}
  - {{type: alterLabel, name: finish, config: {{key: example.com/roll, value: needed}}}}
profiles:
- name: roll
  operational:
    transitions: [{{check: needed, next: maintenance-required}}]
  maintenance-required:
    transitions: [{{check: few, next: in-maintenance, trigger: begin}}]
  in-maintenance:
    transitions: [{{check: doing, next: operational, trigger: finish}}]
"""


class Actor(threading.Thread):
    """Begins and completes what is approved, until it is told to end."""

    def __init__(self, access):
        super().__init__(daemon=True)
        self.access, self.ended = access, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()

    def run(self):
        following = {"Approved": "InProgress", "InProgress": "Completed"}
        while not self.ended.wait(0.1):
            for item in self.access.request("GET", path(ASKS))[1]["items"]:
                state = item["spec"].get("state")
                if state in following and item.get("status", {}).get("phase") == state:
                    self.access.request("PATCH", path(ASKS, item["metadata"]["name"]),
                                        {"metadata": {"resourceVersion": item["metadata"]["resourceVersion"]},
                                         "spec": {"state": following[state]}}, "application/merge-patch+json")


def leading(one):
    return one.alive() and one.metric("leader_election_master_status", name=LEASE) == 1


def test_a_roll_survives_leaders_that_are_killed_and_frozen(tmp_path):
    config = tmp_path / "roll.yaml"
    config.write_text(ROLL, encoding="utf-8")
    with sandbox(tmp_path) as server, contextlib.ExitStack() as running:
        access = server.access
        each(access, (node(f"r{i}", {"case": "requests"}) for i in range(NODES)))
        each(access, (node(f"p{i}", {PROFILE: "roll", "example.com/roll": "needed"}) for i in range(NODES)))
        each(access, [limit("few", LIMIT, {"case": "requests"})])
        names = (f"c{i}" for i in range(100))

        def start():
            return running.enter_context(controller(server.kubeconfig, tmp_path, next(names), ["--config", str(config)]))

        def leader():
            return next((one for one in pair if leading(one)), None)

        with Observer(access) as seen, Actor(access):
            pair = [start().wait_ready(), start().wait_ready()]
            each(access, (ask(f"a{i}", f"r{i % NODES}") for i in range(ASKED)))
            for fault in FAULTS:
                old = wait_for(leader, "somebody leads")
                done = phases(access)["Completed"]
                wait_for(lambda d=done: phases(access)["Completed"] > d, "requests are being served")
                old.send(fault)
                pair.remove(old)
                wait_for(leader, "the other leads")
                if fault == signal.SIGSTOP:
                    old.send(signal.SIGCONT)
                assert old.wait() != 0, "it has lost the Lease, and ends"
                pair.append(start().wait_ready())
            wait_for(lambda: phases(access) == {"Completed": ASKED}, "every request ends", interval=0.5)
            assert not seen.wrong, seen.wrong
            assert 0 < seen.most_open <= LIMIT
            assert 0 < seen.most_inside <= ROLL_MAX
            assert len(seen.holders) == len(FAULTS) + 1, seen.holders
            for one in pair:
                one.stop()
