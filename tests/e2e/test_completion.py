"""Completion as the shells themselves do it: bash, zsh and fish, each with the script that drydock prints for it."""

import os
import pty
import re
import select
import subprocess
import time

import pytest

from process import drydock
from wait import PATIENCE

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r|\x07|\x0f")


@pytest.fixture(name="env")
def fixture_env(backend, tmp_path):
    """drydock is on the path, and nobody's own configuration is read."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "drydock").symlink_to(drydock())
    return {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path), "TERM": "xterm", "LC_ALL": "C.UTF-8",
            "XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "ZDOTDIR": str(tmp_path), "KUBECONFIG": str(backend.kubeconfig)}


def bash(env, line):
    words = line.split(" ")
    script = ("source <(drydock completion bash); COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _drydock; "
              "[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "--norc", "--noprofile", "-c", script, "bash", *words], env=env, check=True, timeout=PATIENCE, capture_output=True, text=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def fish(env, line):
    script = "drydock completion fish | source; complete -C $argv[1]"
    done = subprocess.run(["fish", "--no-config", "-c", script, line], env=env, check=True, timeout=PATIENCE, capture_output=True, text=True)
    assert done.stderr == ""
    return {offered.split("\t")[0] for offered in done.stdout.splitlines()}


def read_until(terminal, wanted, what):
    """What stands on the terminal once it has that."""
    text, until = "", time.monotonic() + PATIENCE
    while not re.search(wanted, text):
        left = until - time.monotonic()
        assert left > 0, f"{what}: there is only {text!r}"
        if select.select([terminal], [], [], left)[0]:
            text += ESCAPES.sub("", os.read(terminal, 65536).decode(errors="replace"))
    return text


def zsh(env, line):
    """A line editor completes at a terminal: what is listed, or what the line has become."""
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**env, "PS1": "ready> ", "COLUMNS": "200", "LINES": "50"})
    try:
        read_until(terminal, "ready> ", "a prompt")
        os.write(terminal, b"unsetopt list_beep prompt_sp; autoload -U compinit && compinit -D -u && source <(drydock completion zsh); print lo''aded\n")
        read_until(terminal, r"loaded\n[^\n]*ready> ", "completion is loaded")
        os.write(terminal, line.encode() + b"\t\x04")  # Ctrl-D lists what may follow
        os.write(terminal, b"\x01print -r -- '<\x05>'\n")  # and the line itself is printed
        text = read_until(terminal, r"\n<.*>", "the line")
    finally:
        os.write(terminal, b"exit\n")
        os.close(terminal)
        os.waitpid(child, 0)
    return set(re.findall(r"[\w./-]+", text))


SHELLS = [bash, zsh, fish]


@pytest.mark.backend("sandbox")
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell.__name__)
def test_a_shell_completes_commands_flags_and_values(env, shell):
    assert "pause" in shell(env, "drydock pau")
    assert {"explain", "status"} <= shell(env, "drydock explai") | shell(env, "drydock statu")
    assert "--watch" in shell(env, "drydock status --wat")
    assert "wide" in shell(env, "drydock status -o wi")
    assert "zsh" in shell(env, "drydock completion z")


@pytest.mark.backend("sandbox")
@pytest.mark.nodes(1)
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell.__name__)
def test_a_shell_completes_names_of_nodes(env, nodes, shell):
    assert nodes[0] in shell(env, f"drydock explain node {nodes[0][:-1]}")
    assert nodes[0] in shell(env, f"drydock abort {nodes[0][:-1]}")
