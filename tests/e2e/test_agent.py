"""drydock-agent --once on a machine of its own: a mount namespace in which /srv and the agent's state are the test's alone."""
import json
import os
import subprocess

import pytest

AGENT = os.path.abspath(os.environ.get("DRYDOCK_AGENT", "build/drydock-agent"))
MACHINE = """set -e
mount -t tmpfs -o mode=755 none /srv
mkdir /srv/etc
exec 3>&1
"""


def on_machine(script, resources, tmp_path, *flags):
    """Runs a shell script in which $AGENT is the agent on `resources`; answers the finished process."""
    path = tmp_path / "resources.json"
    path.write_text(json.dumps({"resources": resources}))
    agent = " ".join([AGENT, "--once", str(path), "--state-dir", "/srv/state", *flags])
    return subprocess.run(["unshare", "--mount", "sh", "-c", f"{MACHINE}\nAGENT='{agent}'\nset +e\n{script}"],
                          capture_output=True, text=True, check=False, timeout=120)


def test_programs_run_on_the_machine_and_a_second_run_changes_nothing(tmp_path):
    resources = [
        {"name": "config", "type": "file", "path": "/srv/etc/config", "content": "a=1\n", "notifies": ["reload"],
         "validate": ["/bin/sh", "-n", "%"]},
        {"name": "reload", "type": "exec", "script": "cat /srv/etc/config >> /srv/etc/reloads", "refreshOnly": True},
        {"name": "made", "type": "exec", "command": ["/bin/mkdir", "/srv/etc/made"], "creates": "/srv/etc/made"},
    ]
    done = on_machine("$AGENT; echo rc $?; $AGENT; echo rc $?; cat /srv/etc/reloads; ls -d /srv/etc/made", resources, tmp_path)
    assert done.stdout.splitlines() == [
        "changed: config (file:/srv/etc/config)", "    state: 'absent' → 'present'",
        "refreshed: reload (exec:reload)",
        "changed: made (exec:made)", "    run: 'due' → 'done'",
        "3 of 3 right, 2 changed", "rc 0",
        "3 of 3 right, 0 changed", "rc 0",
        "a=1", "/srv/etc/made"], done.stderr


def test_a_file_that_its_program_refuses_does_not_take_its_place(tmp_path):
    resources = [{"name": "script", "type": "file", "path": "/srv/etc/script", "content": "if\n", "validate": ["/bin/sh", "-n", "%"]}]
    done = on_machine("echo old > /srv/etc/script; $AGENT; echo rc $?; cat /srv/etc/script; ls -A /srv/etc", resources, tmp_path)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("failed: script (file:/srv/etc/script): Invalid: '/bin/sh' refuses the new file (exit code 2): ")
    assert lines[-3:] == ["rc 1", "old", "script"], done.stdout


def test_noop_changes_nothing_and_runs_nothing(tmp_path):
    resources = [
        {"name": "config", "type": "file", "path": "/srv/etc/config", "content": "a", "notifies": ["reload"]},
        {"name": "reload", "type": "exec", "script": "touch /srv/etc/reloaded", "refreshOnly": True},
    ]
    done = on_machine("$AGENT; echo rc $?; find /srv", resources, tmp_path, "--noop")
    assert done.stdout.splitlines() == [
        "would change: config (file:/srv/etc/config)", "    state: 'absent' → 'present'",
        "would change: reload (exec:reload), by a refresh",
        "0 of 2 right, 0 changed, 2 would change", "rc 0", "/srv", "/srv/etc"], done.stderr


def test_deferred_programs_run_when_they_may(tmp_path):
    resources = [{"name": "made", "type": "exec", "command": ["/bin/touch", "/srv/etc/made"], "creates": "/srv/etc/made"}]
    done = on_machine("$AGENT --allow none -o json; ls /srv/etc; $AGENT --allow window >/dev/null; ls /srv/etc", resources, tmp_path)
    first, *names = done.stdout.splitlines()
    assert json.loads(first)["counts"]["deferred"] == 1
    assert names == ["made"], done.stderr


def test_a_program_cannot_outlive_its_time(tmp_path):
    resources = [{"name": "slow", "type": "exec", "script": "tail -f /dev/null", "creates": "/srv/none", "timeout": "1s"}]
    done = on_machine("$AGENT; echo rc $?", resources, tmp_path)
    assert done.stdout.splitlines()[0] == "failed: slow (exec:slow): Timeout: it did not end within its 'timeout'", done.stderr
    assert done.stdout.splitlines()[-1] == "rc 1"


def test_a_full_disk_leaves_the_old_file_and_nothing_beside_it(tmp_path):
    resources = [
        {"name": "large", "type": "file", "path": "/srv/small/large", "content": "x" * 200_000},
        {"name": "other", "type": "file", "path": "/srv/etc/other", "content": "x"},
    ]
    done = on_machine("mkdir /srv/small; mount -t tmpfs -o mode=755,size=64k none /srv/small; echo old > /srv/small/large\n"
                      "$AGENT; cat /srv/small/large; ls -A /srv/small; ls /srv/etc", resources, tmp_path)
    assert done.stdout.splitlines()[-4:] == ["1 of 2 right, 1 changed, 1 failed", "old", "large", "other"], done.stdout
    assert "No space left on device" in done.stdout


def test_a_read_only_file_system_fails_its_resources_alone_and_is_made_up_for(tmp_path):
    resources = [
        {"name": "locked", "type": "file", "path": "/srv/locked/file", "content": "new\n"},
        {"name": "other", "type": "file", "path": "/srv/etc/other", "content": "x"},
    ]
    done = on_machine("mkdir /srv/locked; mount -t tmpfs -o mode=755 none /srv/locked; echo old > /srv/locked/file\n"
                      "mount -o remount,ro /srv/locked; $AGENT >/dev/null; echo rc $?; cat /srv/locked/file; ls /srv/etc\n"
                      "mount -o remount,rw /srv/locked; $AGENT >/dev/null; echo rc $?; cat /srv/locked/file", resources, tmp_path)
    assert done.stdout.split() == ["rc", "1", "old", "other", "rc", "0", "new"], done.stdout + done.stderr


ETC = "mkdir /srv/root; cp -a /etc /srv/root/; mount --bind /srv/root/etc /etc\n"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0mJmZp0gq2zkPpB8jYk0mVr8pH7o3E8r2M0w1c5x7Q"


def test_accounts_are_made_by_the_machines_own_tools(tmp_path):
    meta = {"onRemove": "Restore"}
    path = tmp_path / "none.json"
    path.write_text(json.dumps({"resources": [{"name": "other", "type": "file", "path": "/srv/other", "content": "x"}]}))
    resources = [
        {"name": "user", "type": "user", "user": "dd-test", "uid": 54321, "home": "/srv/home", "groups": ["dd-group"], "locked": True, "meta": meta},
        {"name": "group", "type": "group", "group": "dd-group", "gid": 54322, "meta": meta},
        {"name": "key", "type": "sshKey", "user": "dd-test", "key": KEY, "options": "restrict", "meta": meta},
    ]
    done = on_machine(ETC + "$AGENT; $AGENT; id dd-test; ls -ln /srv/home/.ssh/authorized_keys | cut -d' ' -f1,3; cat /srv/home/.ssh/authorized_keys\n"
                      f"{AGENT} --once {path} --state-dir /srv/state; grep -c dd- /etc/passwd /etc/group /etc/shadow", resources, tmp_path)
    lines = done.stdout.splitlines()
    assert "3 of 3 right, 3 changed" in lines and "3 of 3 right, 0 changed" in lines, done.stdout + done.stderr
    assert "uid=54321(dd-test) gid=54321(dd-test) groups=54321(dd-test),54322(dd-group)" in lines, done.stdout
    assert "-rw------- 54321" in lines and f"restrict {KEY}" in lines, done.stdout
    assert lines[-4:] == ["1 of 1 right, 1 changed", "/etc/passwd:0", "/etc/group:0", "/etc/shadow:0"], done.stdout


def test_a_file_system_is_mounted_before_what_is_in_it_and_unmounted_again(tmp_path):
    path = tmp_path / "none.json"
    path.write_text(json.dumps({"resources": [{"name": "other", "type": "file", "path": "/srv/other", "content": "x"}]}))
    resources = [
        {"name": "file", "type": "file", "path": "/srv/data/file", "content": "x"},
        {"name": "data", "type": "mount", "path": "/srv/data", "device": "data", "fsType": "tmpfs", "options": ["nosuid", "mode=755"],
         "meta": {"onRemove": "Restore"}},
    ]
    done = on_machine(ETC + "$AGENT; $AGENT; findmnt -no FSTYPE,SOURCE /srv/data; ls /srv/data; grep /srv/data /etc/fstab\n"
                      f"{AGENT} --once {path} --state-dir /srv/state; findmnt /srv/data; grep /srv/data /etc/fstab; echo end", resources, tmp_path)
    lines = done.stdout.splitlines()
    at = lines.index("2 of 2 right, 0 changed")
    assert [" ".join(x.split()) for x in lines[at + 1:at + 4]] == ["tmpfs data", "file", "data /srv/data tmpfs nosuid,mode=755 0 0"], done.stdout + done.stderr
    assert lines[-2:] == ["1 of 1 right, 1 changed", "end"], done.stdout


# dpkg and apt of the machine, which know of nothing but one repository, on the machine itself.
APT = ETC + """for folder in /var/lib/dpkg /var/lib/apt /var/cache/apt /var/log; do mount -t tmpfs -o mode=755 none $folder; done
mkdir /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers
touch /var/lib/dpkg/status
mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial /srv/apt
rm -rf /etc/apt/apt.conf.d/* /etc/apt/sources.list.d/* /etc/apt/preferences.d/*
echo 'deb [trusted=yes] file:/srv/apt ./' > /etc/apt/sources.list
package() {
  mkdir -p /srv/build/DEBIAN /srv/build/srv/etc
  echo $1 > /srv/build/srv/etc/dd-version
  printf 'Package: dd-test\\nVersion: %s\\nArchitecture: all\\nMaintainer: a <a@b.invalid>\\nDescription: a\\n' $1 > /srv/build/DEBIAN/control
  dpkg-deb --root-owner-group --build /srv/build /srv/apt/dd-test_$1_all.deb > /dev/null
  deb=/srv/apt/dd-test_$1_all.deb
  { dpkg-deb --field $deb
    echo "Filename: ./dd-test_$1_all.deb"; echo "Size: $(stat -c %s $deb)"; echo "SHA256: $(sha256sum $deb | cut -d' ' -f1)"; echo; } >> /srv/apt/Packages
  apt-get -qq update
}
"""


def test_packages_are_installed_upgraded_and_removed_by_apt(tmp_path):
    path = tmp_path / "none.json"
    path.write_text(json.dumps({"resources": [{"name": "other", "type": "file", "path": "/srv/other", "content": "x"}]}))
    resources = [{"name": "package", "type": "package", "package": "dd-test", "state": "latest", "hold": True, "meta": {"onRemove": "Restore"}}]
    done = on_machine(APT + "package 1; $AGENT | tail -1; cat /srv/etc/dd-version; $AGENT; package 2; $AGENT --noop | tail -1; $AGENT | tail -1\n"
                      f"cat /srv/etc/dd-version; apt-mark showhold; {AGENT} --once {path} --state-dir /srv/state; ls /srv/etc; echo end", resources, tmp_path)
    assert done.stdout.splitlines() == [
        "1 of 1 right, 1 changed", "1", "1 of 1 right, 0 changed",
        "0 of 1 right, 0 changed, 1 would change", "1 of 1 right, 1 changed", "2", "dd-test",
        "changed: other (file:/srv/other)", "    state: 'absent' → 'present'",
        "restored: package:dd-test, which is not listed any more", "1 of 1 right, 1 changed", "end"], done.stdout + done.stderr


@pytest.mark.parametrize("text, message", [
    ("resources: [", "did not find expected node content"),
    ("resources: 1", "field 'resources': found a number, want a list of resources"),
    ("resources: [{name: a, type: file, path: /a, requires: [a]}]", "resources go in a circle: 'a' waits for 'a'"),
])
def test_a_document_that_is_wrong_is_refused_with_its_place(tmp_path, text, message):
    path = tmp_path / "resources.yaml"
    path.write_text(text)
    done = subprocess.run([AGENT, "--once", str(path), "--root", str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"drydock-agent: {path}:") and message in done.stderr
    assert os.listdir(tmp_path) == ["resources.yaml"]


def test_a_command_line_that_is_wrong_is_refused():
    for flags in ([], ["--onec", "x"], ["--once", "x", "more"]):
        done = subprocess.run([AGENT, *flags], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and done.stderr.startswith("drydock-agent: "), done.stderr


def staying(script, resources, tmp_path):
    """Runs a shell script beside an agent that stays; `wait_for CONDITION` waits for a condition, generously."""
    path = tmp_path / "resources.json"
    path.write_text(json.dumps({"resources": resources}))
    frame = f"""{MACHINE}
wait_for() {{ n=0; while ! eval "$1"; do n=$((n+1)); [ $n -lt 3000 ] || {{ echo "never: $1"; exit 1; }}; sleep 0.02; done; echo "$1"; }}
{AGENT} --file {path} --state-dir /srv/state > /srv/log 2>&1 &
AGENT=$!
FILE={path}
wait_for 'grep -q "machine checked" /srv/log'
set +e
{script}
kill -TERM $AGENT; wait $AGENT; echo rc $?; cat /srv/log >&2
"""
    return subprocess.run(["unshare", "--mount", "sh", "-c", frame], capture_output=True, text=True, check=False, timeout=240)


def test_an_agent_that_stays_repairs_what_is_changed(tmp_path):
    resources = [
        {"name": "dir", "type": "directory", "path": "/srv/etc/dir", "mode": "0755"},
        {"name": "file", "type": "file", "path": "/srv/etc/dir/file", "content": "right\n", "notifies": ["reload"]},
        {"name": "link", "type": "symlink", "path": "/srv/etc/link", "target": "dir/file"},
        {"name": "reload", "type": "exec", "script": "echo x >> /srv/etc/reloads", "refreshOnly": True},
        {"name": "data", "type": "mount", "path": "/srv/data", "device": "data", "fsType": "tmpfs", "persist": "none"},
    ]
    done = staying("""echo wrong > /srv/etc/dir/file; wait_for 'grep -q right /srv/etc/dir/file'; wait_for '[ "$(wc -l < /srv/etc/reloads)" = 2 ]'
mv /srv/etc/dir /srv/etc/away; wait_for 'grep -q right /srv/etc/dir/file'
ln -sfn elsewhere /srv/etc/link; wait_for '[ "$(readlink /srv/etc/link)" = dir/file ]'
umount /srv/data; wait_for 'mountpoint -q /srv/data'
""", resources, tmp_path)
    assert "never" not in done.stdout and done.stdout.splitlines()[-1] == "rc 0", done.stdout + done.stderr
    assert "list adopted" in done.stderr and "stopped" in done.stderr.splitlines()[-1], done.stderr


def test_a_new_file_is_adopted_and_a_wrong_one_refused(tmp_path):
    resources = [
        {"name": "a", "type": "file", "path": "/srv/etc/a", "content": "one\n", "meta": {"onRemove": "Remove"}},
        {"name": "b", "type": "file", "path": "/srv/etc/b", "content": "one\n"},
    ]
    done = staying("""echo 'resources: [' > $FILE; wait_for 'grep -q "list refused" /srv/log'; cat /srv/etc/a
echo 'resources: [{name: b, type: file, path: /srv/etc/b, content: two}]' > $FILE; wait_for 'grep -q two /srv/etc/b'; wait_for '[ ! -e /srv/etc/a ]'
""", resources, tmp_path)
    lines = done.stdout.splitlines()
    assert "one" in lines and "never" not in done.stdout and lines[-1] == "rc 0", done.stdout + done.stderr
    assert "list refused, the old one stays in force" in done.stderr and " line=" in done.stderr
