"""machine: a stand-in for a node's own system, on which Jobs of operations run their scripts.

A process with mount and UTS namespaces of its own: /etc is a copy, /var, /run, /opt, /boot, /tmp and /usr/local are empty. So
package managers work on a database of the test's own, and what stands in /usr/local/bin hides the real tools.
"""

import json
import os
import pathlib
import subprocess

from process import drydock

EMPTY = ["/var", "/run", "/opt", "/boot", "/usr/local"]
SETUP = " && ".join([
    "mount -t tmpfs none /mnt", "cp -a /etc/. /mnt/", "mount --move /mnt /etc",
    *(f"mount -t tmpfs -o mode=0755 none {folder}" for folder in EMPTY), "mount -t tmpfs -o mode=1777 none /tmp",
    "mkdir -p /usr/local/bin /usr/local/sbin /var/log /var/lib /var/cache /var/tmp", "hostname the-machine", "echo up", "exec cat"])


def job_of(template, *parameters, preflight=False):
    """The Job that a run of a built-in template is."""
    flags = ["--preflight"] if preflight else []
    done = subprocess.run([drydock(), "templates", template, "--job", "-o", "json", *flags, *parameters],
                          check=True, capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)


class Result:
    """What became of a run: `code` is the script's own exit code, `reboot` what the machine says."""

    def __init__(self, done, message):
        self.output, self.status = done.stdout + done.stderr, done.returncode
        told = json.loads(message)
        self.code, self.reboot = told["exitCode"], told["rebootRequired"]


class Machine:
    def __init__(self, folder):
        self.message = pathlib.Path(folder) / "termination-log"
        self.message.touch()
        self.popen = subprocess.Popen(["unshare", "--mount", "--uts", "sh", "-c", SETUP], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        assert self.popen.stdout.readline() == "up\n"
        self.root = pathlib.Path(f"/proc/{self.popen.pid}/root")

    def end(self):
        self.popen.stdin.close()
        self.popen.wait()
        self.popen.stdout.close()

    def path(self, where):
        return self.root / where.lstrip("/")

    def write(self, where, text, mode=0o644):
        path = self.path(where)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def run_job(self, job):
        """Runs a Job's container as a kubelet would: its command, with its environment and no other."""
        container, = job["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["drydock", "run-on-host"]
        return self.runner({v["name"]: v["value"] for v in container["env"]})

    def run(self, template, *parameters, preflight=False):
        return self.run_job(job_of(template, *parameters, preflight=preflight))

    def shell(self, script):
        """For the test's own preparations."""
        done = self.runner({"DD_SCRIPT": "set -e\n" + script})
        assert done.code == 0, done.output
        return done.output

    def runner(self, env):
        self.message.write_text("", encoding="utf-8")
        done = subprocess.run([drydock(), "run-on-host", "--target-pid", str(self.popen.pid), "--message-file",
                               str(self.message)], env=env, check=False, capture_output=True, text=True, timeout=300)
        return Result(done, self.message.read_text(encoding="utf-8"))

    def hide(self, *programs):
        """As if they were not installed."""
        for program in programs:
            if os.path.exists(program):
                self.shell(f"mount --bind /dev/null {program}")

    def tool(self, name, script="", folder="/usr/local/bin"):
        """A program that notes each call and then does what `script` says."""
        self.write(f"{folder}/{name}", f"#!/bin/sh\nprintf '%s\\n' \"{name} $*\" >>/var/calls\n{script}\n", 0o755)

    def calls(self):
        """All calls of tools since the last look."""
        path = self.path("/var/calls")
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.unlink(missing_ok=True)
        return text.splitlines()
