"""tools/progress: whoever waits for a build or a lane sees that something happens."""

import os
import pathlib
import pty
import subprocess

import pytest

TOOLS = pathlib.Path(__file__).parents[2] / "tools"


@pytest.fixture
def step(tmp_path):
    """A command that writes a line, waits until it is let go, and ends with 3."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    return gate, ["bash", "-c", f"echo '[1/2] first'; read -r _ <'{gate}'; exit 3"]


def test_a_pipe_gets_a_line_now_and_then(step, tmp_path):
    gate, command = step
    env = {**os.environ, "PROGRESS_SECONDS": "1"}
    with subprocess.Popen([TOOLS / "progress", "nap", tmp_path / "log", *command], stdout=subprocess.PIPE, text=True,
                          env=env) as process:
        line = process.stdout.readline()
        gate.write_text("go\n", encoding="utf-8")
    assert line.startswith("nap ") and line.endswith(" s  [1/2] first\n")
    assert process.returncode == 3
    assert (tmp_path / "log").read_text(encoding="utf-8") == "[1/2] first\n"


def test_nobody_is_told_what_nobody_reads(tmp_path):
    env = {**os.environ, "PROGRESS_SECONDS": "0"}
    told = subprocess.run([TOOLS / "progress", "nap", tmp_path / "log", "echo", "done"], capture_output=True, text=True,
                          env=env, check=True)
    assert told.stdout == "" and (tmp_path / "log").read_text(encoding="utf-8") == "done\n"


def test_a_terminal_has_one_line_that_is_kept_up_to_date(step, tmp_path):
    gate, command = step
    ours, theirs = pty.openpty()
    with subprocess.Popen([TOOLS / "progress", "nap", tmp_path / "log", *command], stdout=theirs) as process:
        os.close(theirs)
        seen = ""
        while "[1/2] first" not in seen:
            seen += os.read(ours, 4096).decode()
        gate.write_text("go\n", encoding="utf-8")
    os.close(ours)
    assert process.returncode == 3
    assert "\n" not in seen and seen.count("\r") >= 1
