"""The templates that come with drydock: what an API server says to them, and what their scripts do.

The tools that the scripts call are the test's own and note their calls; the apt template has a file of its own, with the
real tools.
"""

import hashlib
import http.server
import json
import subprocess
import threading

import pytest
import yaml

from machine import Machine, job_of
from operation_cases import make, path
from process import drydock
from requests_api import install

RUNNING = subprocess.run(["uname", "-r"], check=True, capture_output=True, text=True).stdout.strip()


def shipped():
    text = subprocess.run([drydock(), "templates"], check=True, capture_output=True, text=True, timeout=60).stdout
    return list(yaml.safe_load_all(text))


SHIPPED = shipped()
NAMES = [t["metadata"]["name"] for t in SHIPPED]


@pytest.fixture(name="machine")
def fixture_machine(tmp_path):
    machine = Machine(tmp_path)
    machine.hide("/usr/bin/apt-get", "/usr/bin/apt-mark", "/usr/bin/apt-cache")
    yield machine
    machine.end()


@pytest.fixture(scope="module", name="installed")
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"), "--operations")


# --- as objects ---


@pytest.mark.parametrize("template", SHIPPED, ids=NAMES)
def test_the_server_stores_it_and_the_operation_of_its_example(backend, installed, unique, template):
    body = {**template, "metadata": {**template["metadata"], "name": unique}}
    where = path("nodeoperationtemplates", unique)
    status, answer = backend.access.request("POST", path("nodeoperationtemplates") + "?fieldValidation=Strict", body)
    assert status == 201, answer
    try:
        assert answer["spec"] == template["spec"]
        operation = yaml.safe_load(template["metadata"]["annotations"]["drydock.dev/example"])
        assert operation["template"]["name"] == template["metadata"]["name"]
        status, answer = backend.access.request(
            "POST", path("nodemaintenances") + "?dryRun=All&fieldValidation=Strict",
            make("nodemaintenances", unique, {"operations": [operation]}))
        assert status == 201, answer
        assert answer["spec"]["operations"] == [operation]
    finally:
        backend.access.request("DELETE", where)


@pytest.mark.parametrize("template", SHIPPED, ids=NAMES)
def test_the_job_of_its_example_is_one(backend, template, unique):
    operation = yaml.safe_load(template["metadata"]["annotations"]["drydock.dev/example"])
    parameters = [f"{n}={v if isinstance(v, str) else json.dumps(v)}"
                  for n, v in operation["template"].get("parameters", {}).items()]
    parameters += [f"version={operation['version']['value']}"] if "version" in operation else []
    job = job_of(template["metadata"]["name"], *parameters)
    env = {v["name"]: v["value"] for v in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["DD_SCRIPT"] == template["spec"]["job"]["script"]
    job["metadata"].update(name=unique, namespace="default")
    status, answer = backend.access.request("POST", "/apis/batch/v1/namespaces/default/jobs?dryRun=All", job)
    assert status == 201, answer


def test_one_is_printed_by_either_name_and_all_as_a_list():
    def out(*arguments):
        return subprocess.run([drydock(), "templates", *arguments], check=True, capture_output=True, text=True, timeout=60).stdout

    assert out("k3s") == out("drydock-k3s") and yaml.safe_load(out("k3s"))["metadata"]["name"] == "drydock-k3s"
    assert json.loads(out("-o", "json"))["items"] == SHIPPED


@pytest.mark.parametrize("arguments, code, says", [
    (["nope"], 1, "there is no template 'nope': want one of apt-upgrade, "),
    (["--job"], 2, "--job wants the NAME of a template"),
    (["k3s", "binary=/x"], 2, "PARAMETER=VALUE and --preflight go with --job"),
    (["k3s", "--job", "binary"], 1, "'binary': want PARAMETER=VALUE"),
    (["k3s", "--job", "size=1"], 1, "parameter 'size' is none of the template's"),
    (["k3s", "--job", "binary=x y"], 1, "parameter 'binary': want what matches '^(/[^\\s]+)?$'"),
    (["image-prune", "--job", "minFree=half"], 1, "parameter 'minFree': want a whole number"),
    (["image-prune", "--job", "minFree=101"], 1, "parameter 'minFree': found 101, want at most 100"),
    (["apt-upgrade", "--job", "packages=[a"], 1, "'packages=[a'"),
    (["apt-upgrade", "--job", "packages=a"], 1, "parameter 'packages': want a list of strings"),
    (["apt-upgrade", "--job", "packages=[a; reboot]"], 1, "parameter 'packages': want what matches"),
    (["apt-upgrade", "--job", "autoremove=maybe"], 1, "parameter 'autoremove': want true or false"),
    (["disk-clean", "--job", "paths=[/tmp]"], 1, "parameter 'paths': want a map"),
    (["disk-clean", "--job", "--preflight"], 1, "'drydock-disk-clean' has no preflight"),
])
def test_bad_input_is_told(arguments, code, says):
    done = subprocess.run([drydock(), "templates", *arguments], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (code, "") and says in done.stderr, done.stderr


# --- dnf ---

DNF = 'case "$*" in --version) echo "$V";; *check-update*) exit "$(cat /var/updates)";; *needs-restarting*) exit "${N:-0}";; esac'


@pytest.mark.parametrize("tool, version, advisory", [("dnf5", "dnf5 version 5.2", "--advisories"), ("dnf", "4.14", "--advisory"),
                                                     ("yum", "3.4.3", "--advisory")])
def test_dnf_upgrades_what_it_is_asked_for(machine, tool, version, advisory):
    machine.tool(tool, f'V="{version}"\n{DNF}')
    machine.tool("needs-restarting", "exit 1")
    machine.write("/var/updates", "100")
    parameters = ["securityOnly=true", "advisories=[RHSA-2026:1, RHSA-2026:2]", "exclude=[kernel*]"]
    flags = f"--security {advisory}=RHSA-2026:1 {advisory}=RHSA-2026:2 --exclude=kernel*"
    assert machine.run("dnf-upgrade", *parameters, preflight=True).code == 0
    assert machine.calls() == [f"{tool} --version", f"{tool} -q check-update {flags}"]
    done = machine.run("dnf-upgrade", *parameters)
    assert (done.code, done.reboot) == (0, True), done.output
    assert machine.calls() == [f"{tool} --version", f"{tool} -q check-update {flags}", f"{tool} -y upgrade {flags}",
                               "needs-restarting -r"]


def test_dnf_has_nothing_to_do(machine):
    machine.tool("dnf", DNF)
    machine.write("/var/updates", "0")
    assert machine.run("dnf-upgrade", preflight=True).code == 77
    assert machine.run("dnf-upgrade").code == 77
    assert not any("upgrade" in call for call in machine.calls())
    machine.write("/run/reboot-required", "")
    assert machine.run("dnf-upgrade", preflight=True).code == 0
    assert machine.run("dnf-upgrade", "reboot=Never", preflight=True).code == 77


def test_dnf_that_fails_is_a_failure(machine):
    machine.tool("dnf", DNF)
    machine.write("/var/updates", "1")
    done = machine.run("dnf-upgrade", preflight=True)
    assert done.code == 1 and "dnf check-update ended with exit code 1" in done.output
    machine.tool("dnf", 'case "$*" in *check-update*) exit 100;; *upgrade*) exit 5;; esac')
    assert machine.run("dnf-upgrade").code == 5


def test_dnf_without_its_plugin_asks_for_no_reboot(machine):
    machine.tool("dnf", 'case "$*" in *check-update*) exit 100;; *needs-restarting*) exit 1;; esac')  # "no such command"
    done = machine.run("dnf-upgrade")
    assert (done.code, done.reboot) == (0, False) and "is not known" in done.output
    machine.tool("dnf", 'case "$*" in *check-update*) exit 100;; *--help) ;; *needs-restarting*) exit 1;; esac')
    assert machine.run("dnf-upgrade").reboot


def test_a_machine_without_package_manager_is_told(machine):
    for template in ("dnf-upgrade", "zypper-patch"):
        for preflight in (True, False):
            done = machine.run(template, preflight=preflight)
            assert done.code == 1 and "on this machine" in done.output


# --- zypper ---


def test_zypper_installs_patches_of_categories(machine):
    machine.tool("zypper", 'case "$*" in *"list-patches --category recommended"*) echo "repo | SUSE-1 | recommended | low | --- | needed | x";;'
                           ' *patch-check*) exit 9;; *" patch "*) exit 102;; esac')
    parameters = ["categories=[security, recommended]", "agreeToLicenses=true"]
    assert machine.run("zypper-patch", *parameters, preflight=True).code == 0
    assert machine.calls() == ["zypper --non-interactive --quiet refresh",
                               "zypper --non-interactive --quiet list-patches --category security",
                               "zypper --non-interactive --quiet list-patches --category recommended"]
    done = machine.run("zypper-patch", *parameters)
    assert (done.code, done.reboot) == (0, True), done.output
    assert machine.calls() == [
        "zypper --non-interactive patch --category security --category recommended --auto-agree-with-licenses"]
    assert machine.run("zypper-patch", "categories=[security]", "reboot=Never", preflight=True).code == 77


@pytest.mark.parametrize("code, result", [(0, 77), (100, 0), (101, 0), (7, 1)])
def test_zypper_says_whether_patches_are_needed(machine, code, result):
    machine.tool("zypper", f'case "$*" in *patch-check*) exit {code};; esac')
    assert machine.run("zypper-patch", preflight=True).code == result


def test_zypper_that_was_replaced_runs_again(machine):
    machine.tool("zypper", 'case "$*" in *" patch"*) [ -e /var/again ] || { touch /var/again; exit 103; };;'
                           ' *needs-rebooting*) exit 102;; esac')
    done = machine.run("zypper-patch")
    assert (done.code, done.reboot) == (0, True)
    assert machine.calls() == ["zypper --non-interactive patch"] * 2 + ["zypper --non-interactive needs-rebooting"]
    machine.tool("zypper", "exit 4")
    done = machine.run("zypper-patch")
    assert done.code == 1 and "zypper patch ended with exit code 4" in done.output


def test_zypper_leaves_a_read_only_root_alone(machine):
    machine.tool("zypper")
    machine.tool("transactional-update")
    machine.shell("mount --rbind /usr /usr && mount -o remount,bind,ro /usr")
    done = machine.run("zypper-patch", preflight=True)
    assert done.code == 1 and "read-only" in done.output and machine.calls() == []


# --- reboots ---


def kernel(newer):
    """A release of the same flavour as the running one, older or newer than it."""
    head, _, rest = RUNNING.partition(".")
    return f"{int(head) + (1 if newer else -1)}.{rest}"


def test_a_machine_that_does_not_ask_is_not_rebooted(machine):
    machine.write(f"/boot/vmlinuz-{RUNNING}", "")
    machine.write(f"/boot/vmlinuz-{kernel(newer=False)}", "")
    machine.write("/boot/vmlinuz-99.0.0-other-flavour", "")
    assert machine.run("reboot-if-required", preflight=True).code == 77
    done = machine.run("reboot-if-required")
    assert (done.code, done.reboot) == (77, False)


@pytest.mark.parametrize("file, parameters", [
    ("/run/reboot-required", []), ("/run/reboot-needed", []), ("/etc/reboot-me", ["sentinel=/etc/reboot-me"]),
    ("/etc/reboot-me", ["command=test -e /etc/reboot-me"])])
def test_a_file_or_a_command_asks_for_a_reboot(machine, file, parameters):
    assert machine.run("reboot-if-required", *parameters, preflight=True).code == 77
    machine.write(file, "")
    assert machine.run("reboot-if-required", *parameters, preflight=True).code == 0
    done = machine.run("reboot-if-required", *parameters)
    assert (done.code, done.reboot) == (0, True), done.output


@pytest.mark.parametrize("command", ["exit 2", "no-such-program", "kill -9 $$"])
def test_what_is_not_known_never_reboots(machine, command):
    for preflight in (True, False):
        done = machine.run("reboot-if-required", f"command={command}", preflight=preflight)
        assert (done.code, done.reboot) == (1, False) and "want 0 for a reboot, 1 for none" in done.output


def test_a_newer_kernel_asks_for_a_reboot_once(machine):
    machine.write(f"/boot/vmlinuz-{RUNNING}", "")
    machine.write(f"/boot/vmlinuz-{kernel(newer=True)}", "")
    assert machine.run("reboot-if-required", "kernel=false", preflight=True).code == 77
    assert machine.run("reboot-if-required", preflight=True).code == 0
    assert machine.run("reboot-if-required").reboot
    machine.path("/run/reboot-required").unlink()  # the machine was rebooted, and its boot loader chose the old one
    done = machine.run("reboot-if-required", preflight=True)
    assert done.code == 77 and "look at the boot loader" in done.output


# --- kernels ---


@pytest.mark.parametrize("tool, parameters, calls", [
    ("apt-get", [], ["update", "install linux-image-9.9.9-a"]),
    ("apt-get", ["packages=[linux-image-9.9.9-a=2, linux-headers]"], ["update", "install linux-image-9.9.9-a=2 linux-headers"]),
    ("dnf", [], ["-y install kernel-9.9.9-a"]),
    ("zypper", ["packages=[kernel-default=9.9.9]"], ["--non-interactive install --oldpackage kernel-default=9.9.9"]),
])
def test_a_kernel_is_installed_beside_the_running_one(machine, tool, parameters, calls):
    machine.write(f"/boot/vmlinuz-{RUNNING}", "")
    machine.tool(tool, 'case "$*" in *install*) touch /boot/vmlinuz-9.9.9-a;; esac')
    assert machine.run("kernel", "version=9.9.9-a", *parameters, preflight=True).code == 0
    done = machine.run("kernel", "version=9.9.9-a", *parameters)
    assert (done.code, done.reboot) == (0, True), done.output
    made = machine.calls()
    assert len(made) == len(calls) and all(m.endswith(c) for m, c in zip(made, calls)), made


def test_a_kernel_that_runs_needs_no_visit(machine):
    assert machine.run("kernel", f"version={RUNNING}", preflight=True).code == 77
    done = machine.run("kernel", preflight=True)
    assert done.code == 1 and "want the operation's version" in done.output


def test_a_kernel_that_does_not_come_or_costs_the_running_one_is_a_failure(machine):
    machine.write(f"/boot/vmlinuz-{RUNNING}", "")
    machine.tool("dnf")
    done = machine.run("kernel", "version=9.9.9-a")
    assert done.code == 1 and "do not bring kernel 9.9.9-a" in done.output and not done.reboot
    machine.tool("dnf", f"touch /boot/vmlinuz-9.9.9-a; rm /boot/vmlinuz-{RUNNING}")
    done = machine.run("kernel", "version=9.9.9-a")
    assert done.code == 1 and "nothing to fall back to" in done.output and not done.reboot
    machine.tool("zypper")
    done = machine.run("kernel", "version=9.9.9-a")
    assert done.code == 1 and "packages: want those that bring kernel 9.9.9-a" in done.output


# --- the kubelet ---


def kubelet_tools(machine, server="1.34", have="1.33.5"):
    machine.write("/var/kubelet", have)
    machine.tool("kubelet", 'echo "Kubernetes v$(cat /var/kubelet)"')
    machine.tool("kubectl", f'printf \'{{\\n "gitVersion": "v{server}.0+x"\\n}}\\n\'')
    machine.tool("systemctl")
    machine.tool("curl")


APT_LISTS = 'printf "%s | 1.34.2-1.1 | r\\n%s | 1.34.1-1.1 | r\\n%s | 1.34.20-1.1 | r\\n" "$2" "$2" "$2"'


def test_the_kubelet_is_upgraded_with_apt_and_kubeadm(machine):
    kubelet_tools(machine)
    machine.tool("kubeadm")
    machine.tool("apt-get", 'case "$*" in *kubelet=*) echo 1.34.2 >/var/kubelet;; esac')
    machine.tool("apt-cache", APT_LISTS)
    machine.tool("apt-mark")
    machine.path("/etc/apt/sources.list.d").mkdir(parents=True, exist_ok=True)
    parameters = ["version=v1.34.2", "repository=https://pkgs.k8s.io/core:/stable:", "keyring=/etc/k.gpg"]
    assert machine.run("kubelet", *parameters, preflight=True).code == 0
    machine.calls()
    done = machine.run("kubelet", *parameters)
    assert done.code == 0, done.output
    made = machine.calls()
    order = [call for call in made if call.split()[0] in ("kubeadm", "systemctl", "apt-mark") or " install " in call]
    assert [c.split(" install ")[-1] for c in order] == [
        "--allow-change-held-packages kubeadm=1.34.2-1.1", "apt-mark hold kubeadm", "kubeadm upgrade node",
        "--allow-change-held-packages kubelet=1.34.2-1.1 kubectl=1.34.2-1.1 kubeadm=1.34.2-1.1",
        "apt-mark hold kubelet kubectl kubeadm", "systemctl daemon-reload", "systemctl restart kubelet"]
    assert machine.path("/etc/apt/sources.list.d/kubernetes.list").read_text() == \
        "deb [signed-by=/etc/k.gpg] https://pkgs.k8s.io/core:/stable:/v1.34/deb/ /\n"
    assert machine.run("kubelet", *parameters, preflight=True).code == 77


def test_the_kubelet_is_upgraded_with_dnf(machine):
    kubelet_tools(machine)
    machine.tool("dnf", "echo 1.34.2 >/var/kubelet")
    machine.path("/etc/yum.repos.d").mkdir(exist_ok=True)
    done = machine.run("kubelet", "version=1.34.2", "repository=https://example.com/k8s")
    assert done.code == 0, done.output
    assert [c for c in machine.calls() if c.startswith("dnf")] == [
        "dnf -y --disableexcludes=kubernetes install kubelet-1.34.2 kubectl-1.34.2"]
    assert "baseurl=https://example.com/k8s/v1.34/rpm/\n" in machine.path("/etc/yum.repos.d/kubernetes.repo").read_text()


@pytest.mark.parametrize("version, server, have, says", [
    ("1.35.0", "1.34", "1.34.2", "the API server is 1.34: want a kubelet of 1.31 to 1.34, found 1.35.0"),
    ("1.30.9", "1.34", "1.30.1", "want a kubelet of 1.31 to 1.34"),
    ("1.33.4", "1.34", "1.33.5", "1.33.4 is older than 1.33.5, which is installed"),
    ("1.34", "1.34", "1.33.5", "version '1.34': want the operation's version, such as 1.34.2"),
    ("", "1.34", "1.33.5", "want the operation's version, such as 1.34.2"),
    ("1.34.2", "x", "1.33.5", "the API server does not tell its version"),
])
def test_a_kubelet_that_does_not_fit_the_api_server_is_refused(machine, version, server, have, says):
    kubelet_tools(machine, server, have)
    machine.tool("apt-get")
    for preflight in (True, False):
        done = machine.run("kubelet", f"version={version}", preflight=preflight)
        assert done.code == 1 and says in done.output, done.output
    assert not any(call.startswith(("apt-get", "systemctl")) for call in machine.calls())


def test_a_kubelet_that_no_repository_has_stays(machine):
    kubelet_tools(machine)
    machine.tool("apt-get")
    machine.tool("apt-mark")
    machine.tool("apt-cache", APT_LISTS)
    done = machine.run("kubelet", "version=1.34.7")
    assert done.code == 1 and "no repository has kubelet 1.34.7" in done.output
    assert "systemctl restart kubelet" not in machine.calls()


def test_a_kubelet_whose_restart_was_lost_is_restarted(machine):
    kubelet_tools(machine)
    machine.tool("apt-cache", APT_LISTS)
    machine.tool("apt-get", 'case "$*" in *kubelet=*) echo 1.34.2 >/var/kubelet; exit 9;; esac')  # as if killed right then
    assert machine.run("kubelet", "version=1.34.2").code == 9
    assert machine.run("kubelet", "version=1.34.2", preflight=True).code == 0
    machine.tool("apt-get")
    machine.tool("apt-mark")
    assert machine.run("kubelet", "version=1.34.2").code == 0
    assert "systemctl restart kubelet" in machine.calls()
    assert machine.run("kubelet", "version=1.34.2", preflight=True).code == 77


# --- k3s and rke2 ---


class Rancher:
    """k3s or rke2 on a machine, and releases of it."""

    def __init__(self, machine, name, agent=False):
        self.machine, self.name = machine, name
        self.suffix = {"k3s": "+k3s1", "rke2": "+rke2r1"}[name]
        arch = {"x86_64": "amd64", "aarch64": "arm64"}[subprocess.run(["uname", "-m"], check=True, capture_output=True,
                                                                       text=True).stdout.strip()]
        self.asset = f"rke2.linux-{arch}" if name == "rke2" else "k3s" if arch == "amd64" else f"k3s-{arch}"
        self.sums = f"sha256sum-{arch}.txt"
        self.unit = (f"{name}-agent" if agent else {"k3s": "k3s", "rke2": "rke2-server"}[name])
        self.binary = f"/usr/local/bin/{name}"
        machine.write(self.binary, self.program("1.33.5"), 0o755)
        machine.write("/var/lib/rancher/rke2/bin/kubectl", self.program("1.33.5"), 0o755)
        machine.tool("systemctl", f'case "$1" in is-active) [ "$3" = {self.unit} ];; restart) exit "$(cat /var/restarts)";; esac')
        machine.write("/var/restarts", "0")
        machine.hide("/usr/bin/rpm")

    def program(self, version, server="1.34"):
        return (f"#!/bin/sh\ncase \"$*\" in *--version*) echo \"{self.name} version v{version}{self.suffix} (abc)\";;\n"
                f"*version) printf '{{\\n \"gitVersion\": \"v{server}.2\"\\n}}\\n';; esac\n")

    def release(self, folder, version, says=None, checksum=None):
        files = folder / f"v{version}{self.suffix}".replace("+", "%2B")
        files.mkdir(parents=True)
        data = self.program(says or version)
        (files / self.asset).write_text(data)
        (files / self.sums).write_text(f"0000  {self.asset}-airgap\n{checksum or hashlib.sha256(data.encode()).hexdigest()}  {self.asset}\n")

    def run(self, version, *parameters, preflight=False):
        return self.machine.run(self.name, f"version=v{version}{self.suffix}", *parameters, preflight=preflight)

    def version(self):
        return self.machine.shell(f"{self.binary} --version").split()[2].split("+")[0]

    def restarts(self):
        return [c for c in self.machine.calls() if c.startswith("systemctl restart")]


@pytest.fixture(name="releases")
def fixture_releases(tmp_path):
    """(folder, address): a web server of releases; it takes paths as they are written, as GitHub does."""
    folder = tmp_path / "releases"
    folder.mkdir()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802
            file = folder / self.path.lstrip("/")
            self.send_response(200 if file.is_file() else 404)
            self.end_headers()
            self.wfile.write(file.read_bytes() if file.is_file() else b"")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"baseUrl=http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", ["k3s", "rke2"])
@pytest.mark.parametrize("agent", [False, True], ids=["server", "agent"])
def test_the_program_is_replaced_and_its_service_restarted(machine, releases, name, agent):
    rancher = Rancher(machine, name, agent)
    rancher.release(releases[0], "1.34.2")
    assert rancher.run("1.34.2", releases[1], preflight=True).code == 0
    done = rancher.run("1.34.2", releases[1])
    assert done.code == 0, done.output
    assert rancher.version() == "v1.34.2" and rancher.restarts() == [f"systemctl restart {rancher.unit}"]
    assert sorted(f.name for f in machine.path("/usr/local/bin").glob(f"{name}*")) == [name, f"{name}.previous"]
    assert rancher.run("1.34.2", releases[1], preflight=True).code == 77


def test_a_program_that_is_not_what_was_published_is_not_used(machine, releases):
    rancher = Rancher(machine, "k3s")
    rancher.release(releases[0], "1.33.6", checksum="1" * 64)
    rancher.release(releases[0], "1.33.7", says="1.33.8")
    for version, says in (("1.33.6", "want " + "1" * 64), ("1.33.7", "is version 'v1.33.8+k3s1', want v1.33.7+k3s1"),
                          ("1.33.9", "404")):
        done = rancher.run(version, releases[1])
        assert done.code != 0 and says in done.output, done.output
    assert rancher.version() == "v1.33.5" and rancher.restarts() == []


def test_a_service_that_does_not_start_gets_its_old_program_back(machine, releases):
    rancher = Rancher(machine, "k3s")
    rancher.release(releases[0], "1.34.2")
    machine.tool("systemctl", f'case "$1" in is-active) [ "$3" = k3s ];; restart) {rancher.binary} --version | grep -q 1.33.5;; esac')
    done = rancher.run("1.34.2", releases[1])
    assert done.code == 1 and "k3s does not start with v1.34.2+k3s1" in done.output and "the old program is back" in done.output
    assert rancher.version() == "v1.33.5" and len(rancher.restarts()) == 2
    assert not machine.path(rancher.binary + ".restart").exists()


def test_a_restart_that_was_lost_is_made_up_for(machine, releases):
    rancher = Rancher(machine, "k3s")
    machine.write(rancher.binary, rancher.program("1.34.2"), 0o755)
    machine.write(rancher.binary + ".restart", "")
    assert rancher.run("1.34.2", releases[1], preflight=True).code == 0
    done = rancher.run("1.34.2", releases[1])  # it is not fetched again: the server has no release
    assert done.code == 0, done.output
    assert len(rancher.restarts()) == 1
    assert rancher.run("1.34.2", releases[1], preflight=True).code == 77


@pytest.mark.parametrize("version, agent, server, says", [
    ("1.35.0", False, "1.35", "skips a minor version"), ("1.33.4", False, "1.33", "is older than v1.33.5+k3s1"),
    ("1.34.2", True, "1.33", "an agent may not be newer than the API server, which is v1.33.2"),
    ("2", False, "1.33", "want one such as v1.34.2+k3s1"),
])
def test_steps_that_kubernetes_does_not_support_are_refused(machine, releases, version, agent, server, says):
    rancher = Rancher(machine, "k3s", agent)
    machine.write(rancher.binary, rancher.program("1.33.5", server), 0o755)
    for preflight in (True, False):
        done = rancher.run(version, releases[1], preflight=preflight)
        assert done.code == 1 and says in done.output, done.output
    assert rancher.restarts() == []


def test_a_machine_without_the_program_or_its_service_is_told(machine):
    done = machine.run("rke2", "version=v1.34.2+rke2r1", preflight=True)
    assert done.code == 1 and "binary: want the path of rke2 on this machine" in done.output
    done = machine.run("k3s", preflight=True)
    assert done.code == 1 and "want the operation's version, such as v1.34.2+k3s1" in done.output
    rancher = Rancher(machine, "k3s")
    machine.tool("systemctl", "exit 3")
    done = rancher.run("1.33.5")
    assert done.code == 1 and "want one of the services k3s k3s-agent running" in done.output
    machine.tool("rpm")
    done = rancher.run("1.34.2", preflight=True)
    assert done.code == 1 and "comes from a package" in done.output


# --- images and disks ---

DF = 'printf "Filesystem 1024-blocks Used Available Capacity Mounted\\n/dev/x 1000 %s %s 50%% /\\n" $(cat /var/df)'


def test_images_go_when_space_is_short(machine):
    machine.path("/var/lib/containerd").mkdir(parents=True)
    machine.tool("df", DF)
    machine.tool("crictl", 'echo "100 800" >/var/df')
    machine.write("/var/df", "600 400")
    done = machine.run("image-prune", "endpoint=unix:///run/x.sock")
    assert done.code == 77 and machine.calls() == ["df -P /var/lib/containerd"]
    done = machine.run("image-prune", "endpoint=unix:///run/x.sock", "minFree=41")
    assert done.code == 0 and "40% of /var/lib/containerd were free, now 88%" in done.output, done.output
    assert "crictl --runtime-endpoint unix:///run/x.sock --image-endpoint unix:///run/x.sock rmi --prune" in machine.calls()
    assert machine.run("image-prune", "endpoint=unix:///run/x.sock", "minFree=100").code == 0


def test_the_container_runtime_and_its_tool_are_found(machine):
    machine.path("/var/lib/rancher/k3s/agent/containerd").mkdir(parents=True)
    machine.tool("df", DF)
    machine.write("/var/df", "900 100")
    done = machine.run("image-prune")
    assert done.code == 1 and "endpoint: want the address of the container runtime" in done.output
    machine.shell("mkdir -p /run/k3s/containerd; perl -MIO::Socket::UNIX -e "
                  "'IO::Socket::UNIX->new(Local => \"/run/k3s/containerd/containerd.sock\", Listen => 1)'")
    done = machine.run("image-prune")
    assert done.code == 1 and "want crictl on this machine" in done.output
    machine.tool("k3s")
    assert machine.run("image-prune").code == 0
    endpoint = "unix:///run/k3s/containerd/containerd.sock"
    assert f"k3s crictl --runtime-endpoint {endpoint} --image-endpoint {endpoint} rmi --prune" in machine.calls()


def test_old_files_go_and_new_ones_stay(machine):
    machine.shell("mkdir -p /var/tmp/deep /var/spool; touch /var/tmp/new /var/spool/other; "
                  "touch -d '9 days ago' /var/tmp/old '/var/tmp/deep/o l d' /var/spool/old; ln -s /var/spool /var/tmp/link")
    done = machine.run("disk-clean", "paths={/var/tmp: 7, /var/not-there: 1}")
    assert done.code == 0 and "2 files removed" in done.output, done.output
    assert machine.shell("find /var/tmp /var/spool | sort").split() == [
        "/var/spool", "/var/spool/old", "/var/spool/other", "/var/tmp", "/var/tmp/deep", "/var/tmp/link", "/var/tmp/new"]
    assert machine.run("disk-clean", "paths={/var/tmp: 7}").code == 77


@pytest.mark.parametrize("folder, days, says", [
    ("/", 1, "belongs to the system"), ("/etc", 1, "belongs to the system"), ("/usr/share", 1, "belongs to the system"),
    ("/var/lib/kubelet/pods", 1, "belongs to the system"), ("/var/lib/etcd", 1, "belongs to the system"),
    ("tmp", 1, "want an absolute path"), ("/var/tmp/../lib", 1, "want a path without"), ("/var//lib/etcd", 1, "want a path without"),
    ("/var/./lib", 1, "want a path without"), ("/var/tmp", "soon", "found 'soon', want a number of days"),
    ("/var/tmp", -1, "want a number of days"), ("/var/tmp", "", "want a number of days"), ("/var/link", 1, "is a symbolic link"),
])
def test_folders_of_the_system_are_refused_before_anything_is_removed(machine, folder, days, says):
    machine.shell("mkdir -p /var/first /var/lib/etcd; touch -d '9 days ago' /var/first/old /var/lib/etcd/old; ln -s /var/lib/etcd /var/link")
    done = machine.run("disk-clean", f"paths={json.dumps({'/var/first': 1, folder: days})}")
    assert done.code == 1 and says in done.output, done.output
    assert machine.path("/var/first/old").exists() and machine.path("/var/lib/etcd/old").exists()


@pytest.mark.parametrize("tool, call", [("apt-get", "apt-get -q -o DPkg::Lock::Timeout=300 clean"),
                                        ("zypper", "zypper --non-interactive clean"), ("dnf", "dnf -q clean packages")])
def test_journals_and_packages_that_were_fetched_go(machine, tool, call):
    machine.tool(tool)
    machine.tool("journalctl", 'echo "Deleted archived journal /var/log/journal/x (8.0M)." >&2')
    assert machine.run("disk-clean", "journalMax=500M").code == 0
    assert machine.calls() == ["journalctl --vacuum-size=500M", call]
    machine.tool("journalctl", 'echo "Vacuuming done, freed 0B"')
    assert machine.run("disk-clean", "journalMax=500M", "packageCache=false").code == 77
    assert machine.calls() == ["journalctl --vacuum-size=500M"]
