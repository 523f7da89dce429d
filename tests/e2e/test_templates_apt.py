"""The template drydock-apt-upgrade, with the real apt and dpkg, on archives made of tiny packages."""

import hashlib
import pathlib
import subprocess

import pytest

from machine import Machine, job_of

KEPT = "changed = by hand\n"


def build(folder, name, version, files=None, depends=None, conffile=None, postinst=None, conflicts=None):
    """A package, as a file in `folder`."""
    tree = pathlib.Path(folder) / f"{name}_{version}"
    control = [f"Package: {name}", f"Version: {version}", "Architecture: all", "Maintainer: nobody <nobody@example.com>",
               f"Description: {name}"]
    control += [f"Depends: {depends}"] if depends else []
    control += [f"Conflicts: {conflicts}"] if conflicts else []
    files = dict(files or {f"/opt/dd/{name}": version + "\n"})
    if conffile:
        files[conffile] = f"from = {version}\n"
    for path, text in files.items():
        target = tree / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text("\n".join(control) + "\n")
    if conffile:
        (tree / "DEBIAN/conffiles").write_text(conffile + "\n")
    if postinst:
        (tree / "DEBIAN/postinst").write_text("#!/bin/sh\n" + postinst + "\n")
        (tree / "DEBIAN/postinst").chmod(0o755)
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, folder], check=True, capture_output=True)
    return pathlib.Path(folder) / f"{name}_{version}_all.deb"


def index(folder, label, suite):
    """What an archive says about its packages."""
    folder = pathlib.Path(folder)
    entries = []
    for deb in sorted(folder.glob("*.deb")):
        control = subprocess.run(["dpkg-deb", "--field", deb], check=True, capture_output=True, text=True).stdout
        data = deb.read_bytes()
        entries.append(f"{control}Filename: ./{deb.name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n")
    packages = "\n".join(entries).encode()
    (folder / "Packages").write_bytes(packages)
    (folder / "Release").write_text(
        f"Origin: {label}\nLabel: {label}\nSuite: {suite}\nCodename: {suite}\nDate: Wed, 18 Nov 2026 12:00:00 UTC\n"
        f"SHA256:\n {hashlib.sha256(packages).hexdigest()} {len(packages)} Packages\n")


class AptMachine(Machine):
    """A machine whose packages are those that the test has installed."""

    def __init__(self, folder):
        super().__init__(folder)
        self.shell("mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates /var/lib/dpkg/triggers /var/lib/dpkg/parts "
                   "/var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log/apt /opt/main /opt/security /opt/old\n"
                   "touch /var/lib/dpkg/status /var/lib/dpkg/available\n"
                   "rm -rf /etc/apt; mkdir -p /etc/apt/apt.conf.d /etc/apt/preferences.d /etc/apt/sources.list.d "
                   "/etc/apt/trusted.gpg.d")
        self.write("/etc/apt/sources.list", "deb [trusted=yes] file:/opt/main ./\ndeb [trusted=yes] file:/opt/security ./\n")
        self.publish()

    def publish(self):
        index(self.path("/opt/main"), "Debian", "stable")
        index(self.path("/opt/security"), "Debian-Security", "stable-security")

    def installed(self, name, auto=False, **options):
        """Version 1 of it."""
        build(self.path("/opt/old"), name, "1", **options)
        self.shell(f"dpkg -i /opt/old/{name}_1_all.deb" + (f"\napt-mark auto {name}" if auto else ""))

    def offered(self, name, version="2", archive="main", **options):
        build(self.path(f"/opt/{archive}"), name, version, **options)
        self.publish()

    def upgradable(self, name, archive="main", **options):
        self.installed(name)
        self.offered(name, archive=archive, **options)

    def versions(self):
        text = self.shell("dpkg-query -W -f '${Package}=${Version} ${db:Status-Status}\\n'")
        return {line.split("=")[0]: line.split("=")[1] for line in text.splitlines()}

    def upgrade(self, *parameters):
        """As the controller does: the look first. None: there was nothing to do."""
        look = self.run("apt-upgrade", *parameters, preflight=True)
        assert look.code in (0, 77) and look.status == 0, look.output
        return None if look.code == 77 else self.run("apt-upgrade", *parameters)


@pytest.fixture(name="machine")
def fixture_machine(tmp_path):
    machine = AptMachine(tmp_path)
    yield machine
    machine.end()


def test_a_machine_with_nothing_to_upgrade_needs_no_visit(machine):
    machine.installed("dd-plain")
    assert machine.upgrade() is None
    done = machine.run("apt-upgrade")  # and a run that comes all the same changes nothing
    assert (done.code, done.status, done.reboot) == (77, 0, False)
    assert machine.versions() == {"dd-plain": "1 installed"}


def test_packages_are_upgraded_and_what_they_need_is_added(machine):
    machine.upgradable("dd-plain")
    machine.upgradable("dd-other", depends="dd-new")
    machine.offered("dd-new")
    done = machine.upgrade()
    assert (done.code, done.reboot) == (0, False), done.output
    assert machine.versions() == {"dd-plain": "2 installed", "dd-other": "2 installed", "dd-new": "2 installed"}
    assert "3 packages to upgrade" in done.output
    assert machine.upgrade() is None


def test_without_dist_upgrade_nothing_is_added(machine):
    machine.upgradable("dd-plain")
    machine.upgradable("dd-other", depends="dd-new")
    machine.offered("dd-new")
    assert machine.upgrade("distUpgrade=false").code == 0
    assert machine.versions() == {"dd-plain": "2 installed", "dd-other": "1 installed"}


def test_changed_configuration_files_are_kept(machine):
    machine.installed("dd-conf", conffile="/etc/dd/conf")
    machine.offered("dd-conf", conffile="/etc/dd/conf")
    machine.write("/etc/dd/conf", KEPT)
    assert machine.upgrade().code == 0
    assert machine.versions() == {"dd-conf": "2 installed"}
    assert machine.path("/etc/dd/conf").read_text() == KEPT
    assert machine.path("/etc/dd/conf.dpkg-dist").read_text() == "from = 2\n"


def test_held_packages_stay(machine):
    machine.upgradable("dd-plain")
    machine.upgradable("dd-held")
    machine.shell("apt-mark hold dd-held")
    assert machine.upgrade().code == 0
    assert machine.versions() == {"dd-plain": "2 installed", "dd-held": "1 installed"}
    done = machine.run("apt-upgrade", "packages=[dd-held]")  # also when it is asked for by name
    assert done.code == 77 and "dd-held is held" in done.output
    assert machine.shell("apt-mark showhold") == "dd-held\n"


def test_excluded_packages_stay_and_no_trace_is_left(machine):
    machine.upgradable("dd-plain")
    machine.upgradable("dd-data-1")
    machine.upgradable("dd-data-2")
    machine.write("/etc/apt/preferences", "Package: nothing\nPin: version 9\nPin-Priority: 5\n")
    before = machine.shell("find /etc -type f | sort; cat /etc/apt/preferences; ls /tmp | sort")
    assert machine.upgrade("exclude=[dd-data-*]").code == 0
    assert machine.versions() == {"dd-plain": "2 installed", "dd-data-1": "1 installed", "dd-data-2": "1 installed"}
    assert machine.shell("apt-mark showhold; find /etc -type f | sort; cat /etc/apt/preferences; ls /tmp | sort") == before
    assert machine.upgrade("exclude=[dd-data-*]") is None


def test_only_packages_that_are_named(machine):
    for name in ("dd-a", "dd-b", "dd-c"):
        machine.upgradable(name)
    assert machine.upgrade("packages=[dd-a, dd-c]").code == 0
    assert machine.versions() == {"dd-a": "2 installed", "dd-b": "1 installed", "dd-c": "2 installed"}
    machine.offered("dd-none")
    assert machine.upgrade("packages=[dd-none]") is None  # what is not installed is not installed now


def test_only_what_a_security_archive_offers(machine):
    machine.upgradable("dd-plain")
    machine.upgradable("dd-sec", archive="security")
    machine.upgradable("dd-sec-too", archive="security")
    done = machine.upgrade("origin=security", "packages=[dd-sec, dd-plain]")
    assert done.code == 0, done.output
    assert machine.versions() == {"dd-plain": "1 installed", "dd-sec": "2 installed", "dd-sec-too": "1 installed"}
    assert machine.upgrade("origin=security").code == 0
    assert machine.versions() == {"dd-plain": "1 installed", "dd-sec": "2 installed", "dd-sec-too": "2 installed"}
    assert machine.upgrade("origin=security") is None


def test_a_failing_package_is_a_failure_and_is_tried_again(machine):
    machine.upgradable("dd-plain")
    machine.upgradable("dd-broken", postinst="test -e /opt/mended")
    done = machine.upgrade()
    assert done.code == 100 and done.status == 100, done.output
    machine.write("/opt/mended", "")
    done = machine.upgrade()  # nothing is upgradable any more, but a package is half there
    assert done is not None and done.code in (0, 77), done.output
    assert machine.versions() == {"dd-plain": "2 installed", "dd-broken": "2 installed"}


def test_what_nothing_needs_is_removed_when_asked_for(machine):
    machine.upgradable("dd-plain")
    machine.installed("dd-orphan", auto=True, conffile="/etc/dd/orphan")
    assert machine.upgrade("autoremove=false").code == 0
    assert machine.versions()["dd-orphan"] == "1 installed"
    machine.offered("dd-plain", "3")
    assert machine.upgrade().code == 0
    assert machine.versions() == {"dd-plain": "3 installed", "dd-orphan": "1 config-files"}


def test_an_upgrade_that_would_remove_the_kubelet_is_refused(machine):
    machine.installed("kubelet")
    machine.upgradable("dd-evil", conflicts="kubelet")
    for name in ("dd-need-a", "dd-need-b"):
        machine.upgradable(name, depends="dd-evil (>= 2)")
    done = machine.upgrade()
    assert done.code == 1 and "refused: the upgrade would remove kubelet" in done.output, done.output
    assert machine.versions()["kubelet"] == "1 installed" and machine.versions()["dd-need-a"] == "1 installed"


def test_a_kernel_asks_for_a_reboot(machine):
    machine.upgradable("linux-image-9.9.9-test")
    done = machine.upgrade()
    assert (done.code, done.reboot) == (0, True), done.output
    assert machine.path("/run/reboot-required.pkgs").read_text() == "linux-image-9.9.9-test\n"
    # The machine still waits for it: a visit is due although there is nothing to upgrade.
    assert machine.run("apt-upgrade", preflight=True).code == 0
    assert machine.run("apt-upgrade", "reboot=Never", preflight=True).code == 77


def test_an_archive_that_is_gone_is_no_success(machine):
    machine.installed("dd-plain")
    machine.write("/etc/apt/sources.list", "deb [trusted=yes] file:/opt/gone ./\n")
    done = machine.run("apt-upgrade", preflight=True)
    assert done.code == 1 and done.status == 1 and "/opt/gone" in done.output


def test_the_job_carries_every_parameter_and_the_script_unchanged():
    job = job_of("apt-upgrade", "packages=[a, b]", "exclude=[c*]", "autoremove=false")
    env = {v["name"]: v["value"] for v in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert {n: env[n] for n in ("DD_ORIGIN", "DD_PACKAGES", "DD_EXCLUDE", "DD_DIST_UPGRADE", "DD_AUTOREMOVE",
                                "DD_RESTART_SERVICES", "DD_REBOOT")} == {
        "DD_ORIGIN": "all", "DD_PACKAGES": "a\nb", "DD_EXCLUDE": "c*", "DD_DIST_UPGRADE": "true", "DD_AUTOREMOVE": "false",
        "DD_RESTART_SERVICES": "false", "DD_REBOOT": "IfRequired"}
    assert job["spec"]["activeDeadlineSeconds"] == 45 * 60
