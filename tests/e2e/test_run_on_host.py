"""Scripts on the machine itself: `drydock run-on-host` joins the namespaces of another process and works there.

A process with a mount and a UTS namespace of its own stands for the machine's first one.
"""
import json
import os
import pathlib
import signal
import subprocess

import pytest

DRYDOCK = os.environ.get("DRYDOCK", "build/drydock")
# Its own /run, and a name that only it has; says so when both are there.
MACHINE = "mount -t tmpfs none /run && hostname the-machine && touch /run/here && echo up && exec cat"


@pytest.fixture(name="machine")
def fixture_machine():
    process = subprocess.Popen(["unshare", "--mount", "--uts", "sh", "-c", MACHINE],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    yield process.pid
    process.stdin.close()
    process.wait()


@pytest.fixture(name="message")
def fixture_message(tmp_path):
    path = tmp_path / "message"
    path.touch()
    return path


def run(machine, message, *args, script=None, **options):
    env = {**os.environ, **({"DD_SCRIPT": script} if script else {})}
    return subprocess.run([DRYDOCK, "run-on-host", "--target-pid", str(machine), "--message-file", str(message), *args],
                          env=env, capture_output=True, text=True, check=False, **options)


def test_a_script_runs_on_the_machine(machine, message):
    done = run(machine, message, script="hostname; ls /run; echo $DD_SCRIPT | wc -c >&2; exit 0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["the-machine", "here"]
    assert json.loads(message.read_text()) == {"exitCode": 0, "rebootRequired": False, "stopped": False}
    assert not pathlib.Path("/run/here").exists()


def test_the_first_line_chooses_the_interpreter(machine, message):
    done = run(machine, message, script="#!/usr/bin/perl\nprint 6 * 7, \"\\n\";\n")
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_a_failure_keeps_its_code_and_the_end_of_its_output(machine, message):
    done = run(machine, message, script="i=0; while [ $i -lt 100 ]; do echo line $i; i=$((i+1)); done; echo no space >&2; exit 3")
    result = json.loads(message.read_text())
    assert done.returncode == 3 and result["exitCode"] == 3
    assert result["output"].endswith("line 99\nno space\n") and len(result["output"]) == 256


def test_nothing_to_do_is_no_failure(machine, message):
    done = run(machine, message, script="exit 77")
    assert done.returncode == 0
    assert json.loads(message.read_text())["exitCode"] == 77


def test_the_machine_says_that_it_wants_a_reboot(machine, message):
    run(machine, message, script="touch /run/reboot-required")
    assert json.loads(message.read_text())["rebootRequired"] is True


def test_a_program_and_its_arguments(machine, message):
    done = run(machine, message, "--", "echo", "a b", "c")
    assert (done.returncode, done.stdout) == (0, "a b c\n")
    assert run(machine, message, "--", "no-such-program").returncode == 127


def test_a_run_that_is_told_to_end_ends_its_script(machine, message):
    env = {**os.environ, "DD_SCRIPT": "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.05; done"}
    with subprocess.Popen([DRYDOCK, "run-on-host", "--target-pid", str(machine), "--message-file", str(message)],
                          env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert "told\n" in process.stdout.read()
        assert process.wait() == 5
    assert json.loads(message.read_text())["stopped"] is True


def test_what_is_left_in_the_background_does_not_hold_it_up(machine, message):
    done = run(machine, message, script="sleep 30 & echo $! >/run/pid; echo started", timeout=20)
    assert (done.returncode, done.stdout) == (0, "started\n")
    run(machine, message, script="kill $(cat /run/pid)")


def test_a_reboot_ordered_twice_is_carried_out_once(machine, message):
    done = run(machine, message, "--reboot", "--expect-boot-id", "of-an-earlier-boot")
    assert done.returncode == 0


@pytest.mark.parametrize(("args", "script", "says"), [
    ([], None, "want a script in the environment variable DD_SCRIPT, or a program behind '--', and not both"),
    (["--", "true"], "true", "and not both"),
    (["--reboot"], None, "--reboot wants --expect-boot-id"),
    (["--target-pid", "999999999", "--", "true"], None, "the pod needs hostPID, privileged and user 0"),
])
def test_bad_input_is_told(machine, message, args, script, says):
    done = run(machine, message, *args, script=script)
    assert done.returncode in (1, 2)
    assert says in done.stderr


LOCKED = """#!/usr/bin/python3
import fcntl, os, subprocess, time
subprocess.run(["mount", "-t", "tmpfs", "none", "/var/lib/dpkg"], check=True)
with open("/var/lib/dpkg/lock", "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("locked", flush=True)
    while not os.path.exists("/run/release"):
        time.sleep(0.02)
    print("installed", flush=True)
"""


def test_a_package_manager_is_not_stopped_in_the_middle(machine, message):
    with subprocess.Popen([DRYDOCK, "run-on-host", "--target-pid", str(machine), "--message-file", str(message)],
                          env={**os.environ, "DD_SCRIPT": LOCKED}, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "locked\n"
        process.send_signal(signal.SIGTERM)
        pathlib.Path(f"/proc/{machine}/root/run/release").touch()
        assert process.stdout.readline() == "installed\n"
    assert json.loads(message.read_text())["exitCode"] in (0, 143)  # 143: stopped, but behind the lock
