"""The container image: its format, what is in it and what is not, and whether it runs as a pod would run it."""

import gzip
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import tarfile

import pytest
from backend import Sandbox
from capi import Management
from process import Port, Process, drydock, fetch
from wait import wait_for

ROOT = pathlib.Path(__file__).parents[2]
EPOCH = 1700000000
BYTES_MAX = 25_000_000
SERVICE_ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"

# Every path of the image is one of these, and each of these is there.
EXPECTED = [
    r"etc|tmp|usr|usr/(bin|lib|lib64|share)|usr/lib/x86_64-linux-gnu|etc/ssl|etc/ssl/certs",
    r"lib|lib64",
    r"manager|runtime-extension-maintenance-controller",
    r"usr/bin/drydock",
    r"usr/lib64/ld-linux-x86-64\.so\.2",
    r"usr/lib/x86_64-linux-gnu/ld-linux-x86-64\.so\.2",
    r"usr/lib/x86_64-linux-gnu/lib[a-z0-9_.-]+\.so(\.\d+)+",
    r"etc/(passwd|group|nsswitch\.conf)",
    r"etc/ssl/certs/ca-certificates\.crt",
    r"usr/share/zoneinfo(/[A-Za-z0-9_+./-]+)?",
    r"usr/share/common-licenses(/[A-Za-z0-9.-]+)?",
    r"usr/share/doc(/[a-z0-9.+-]+(/copyright)?)?",
]


def build(folder, **how):
    folder.mkdir()
    out, sbom = folder / "image.tar", folder / "image.spdx.json"
    how["env"] = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH), **how.get("env", {})}
    subprocess.run([ROOT / "tools/image", "--binary", drydock(), "--out", out, "--sbom", sbom], check=True, **how)
    return out, sbom


class Image:
    """An archive that has been read, with every digest in it checked."""

    def __init__(self, path):
        with tarfile.open(path) as archive:
            self.files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
        self.index = json.loads(self.files["index.json"])
        self.manifest = self.blob(self.index["manifests"][0])
        self.config = self.blob(self.manifest["config"])
        self.layer = gzip.decompress(self.content(self.manifest["layers"][0]))
        with tarfile.open(fileobj=io.BytesIO(self.layer)) as layer:
            self.members = {member.name: member for member in layer}
            self.contents = {name: layer.extractfile(member).read() for name, member in self.members.items() if member.isfile()}

    def content(self, descriptor):
        kind, value = descriptor["digest"].split(":")
        data = self.files[f"blobs/{kind}/{value}"]
        assert hashlib.sha256(data).hexdigest() == value and len(data) == descriptor["size"]
        return data

    def blob(self, descriptor):
        return json.loads(self.content(descriptor))

    def extract(self, folder):
        with tarfile.open(fileobj=io.BytesIO(self.layer)) as layer:
            layer.extractall(folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return build(tmp_path_factory.mktemp("image") / "first")


@pytest.fixture(scope="module")
def image(built):
    return Image(built[0])


@pytest.fixture(scope="module")
def root(image, tmp_path_factory):
    """The image's files, with what a kubelet would mount: the service account and the configuration."""
    folder = tmp_path_factory.mktemp("root")
    folder.chmod(0o755)
    image.extract(folder)
    account = folder / SERVICE_ACCOUNT
    account.mkdir(parents=True)
    (account / "namespace").write_text("kube-system", encoding="utf-8")
    (folder / "config").mkdir()
    (folder / "config/maintenance.yaml").write_bytes((ROOT / "docs/examples/maintenance.yaml").read_bytes())
    return folder


# ── the files ────────────────────────────────────────────────────────────────────────────────


def test_two_builds_give_the_same_bytes(built, tmp_path):
    again = build(tmp_path / "again", cwd="/", umask=0o077, env={"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7"})
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


def test_the_layout_names_what_a_runtime_needs(image, built):
    assert json.loads(image.files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    only, = image.index["manifests"]
    version = re.match(r"drydock (\S+)", subprocess.check_output([drydock(), "version"], text=True))[1]
    assert only["platform"] == {"architecture": "amd64", "os": "linux"}
    assert only["annotations"]["io.containerd.image.name"] == f"localhost/drydock:{version}"
    assert only["annotations"]["org.opencontainers.image.ref.name"] == version
    assert image.config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(image.layer).hexdigest()]
    assert image.config["created"] == "2023-11-14T22:13:20Z"
    config = image.config["config"]
    assert (config["User"], config["Entrypoint"], config["WorkingDir"]) == ("65532:65532", ["/usr/bin/drydock"], "/")
    assert set(config["ExposedPorts"]) == {"8080/tcp", "8081/tcp"}
    assert built[0].stat().st_size <= BYTES_MAX


def test_nothing_is_in_it_but_what_it_needs(image):
    found = {pattern: 0 for pattern in EXPECTED}
    for path in image.members:
        hits = [pattern for pattern in EXPECTED if re.fullmatch(pattern, path)]
        assert hits, f"/{path} is in the image and not expected"
        for hit in hits:
            found[hit] += 1
    assert all(found.values()), f"not in the image: {[pattern for pattern, count in found.items() if not count]}"
    programs = {path for path, member in image.members.items() if member.isfile() and member.mode & 0o111}
    assert {path for path in programs if "/lib/" not in path} == {"usr/bin/drydock"}, "no shell, no package manager"


def test_files_are_roots_and_plain(image):
    for path, member in image.members.items():
        assert (member.uid, member.gid, member.mtime) == (0, 0, EPOCH), path
        assert member.isfile() or member.isdir() or member.issym(), path
        if path == "tmp":
            assert member.mode == 0o1777
        elif not member.issym():
            assert member.mode in (0o644, 0o755) and (member.mode == 0o755 or not member.isdir()), path


def test_links_lead_to_something_inside(image):
    def resolve(path, depth=0):
        assert depth < 8, path
        whole = ""
        for part in path.split("/"):
            whole = os.path.normpath(os.path.join(whole, part))
            member = image.members[whole]
            if member.issym():
                whole = resolve(os.path.normpath(os.path.join(os.path.dirname(whole), member.linkname)), depth + 1)
        return whole

    for path, member in image.members.items():
        if member.issym():
            assert resolve(path) in image.members
    assert {resolve(name) for name in ("manager", "runtime-extension-maintenance-controller")} == {"usr/bin/drydock"}
    assert resolve("lib64/ld-linux-x86-64.so.2") == "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"


def test_a_folder_has_the_same_files(image, tmp_path):
    """What the Dockerfile copies."""
    folder = tmp_path / "folder"
    subprocess.run([ROOT / "tools/image", "--binary", drydock(), "--folder", folder], check=True, umask=0o077)
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
    assert set(found) == set(image.members)
    for name, member in image.members.items():
        mode = found[name].lstat().st_mode
        if member.issym():
            assert os.readlink(found[name]) == member.linkname
        else:
            assert stat.S_IMODE(mode) == member.mode and stat.S_ISDIR(mode) == member.isdir(), name
    assert all(found[name].read_bytes() == content for name, content in image.contents.items())


def test_the_program_is_stripped(root):
    sections = subprocess.check_output(["readelf", "--sections", "--wide", root / "usr/bin/drydock"], text=True)
    assert ".text" in sections
    assert not any(name in sections for name in (".debug", ".symtab", ".note.gnu.build-id"))


def test_only_the_packages_authorities_are_trusted(image):
    """Authorities that were added to the building machine, such as a company's proxy, stay there."""
    form = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.S)
    names = subprocess.check_output(["dpkg-query", "--listfiles", "ca-certificates"], text=True).split()
    packaged = [form.search(pathlib.Path(name).read_bytes())[0] for name in names
                if name.startswith("/usr/share/ca-certificates/") and name.endswith(".crt")]
    found = form.findall(image.contents["etc/ssl/certs/ca-certificates.crt"])
    assert len(found) > 50 and sorted(found) == sorted(packaged)


def test_a_changed_file_does_not_get_in(tmp_path):
    loader = importlib.machinery.SourceFileLoader("image_tool", str(ROOT / "tools/image"))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("image_tool", loader))
    loader.exec_module(tool)
    path = str(tmp_path / "file")
    pathlib.Path(path).write_bytes(b"as packaged")
    packages = tool.Packages()
    packages.sums["thing"] = {path[1:]: hashlib.md5(b"as packaged").hexdigest()}
    assert packages.read(path, "thing") == b"as packaged" and packages.used == {"thing"}
    pathlib.Path(path).write_bytes(b"changed")
    with pytest.raises(SystemExit, match="is not as its package thing brought it"):
        packages.read(path, "thing")


def test_the_bill_of_materials_names_every_package(image, built):
    document = json.loads(built[1].read_bytes())
    assert (document["spdxVersion"], document["dataLicense"], document["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
    packages = {package["SPDXID"]: package for package in document["packages"]}
    assert len(packages) == len(document["packages"])
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in packages)
    names = {package["name"] for package in packages.values()}
    assert names == {path.split("/")[3] for path in image.members if path.endswith("/copyright")} | {"drydock-image"}
    whole = packages["SPDXRef-drydock-image"]
    assert "sha256:" + whole["checksums"][0]["checksumValue"] == image.index["manifests"][0]["digest"]
    debian = [package for package in packages.values() if "externalRefs" in package]
    assert len(debian) == len(packages) - 2
    for package in debian:
        wanted = subprocess.check_output(["dpkg-query", "--show", "--showformat", "${Version}\n", package["name"]], text=True).split()
        assert package["versionInfo"] in wanted
        assert package["externalRefs"][0]["referenceLocator"].startswith("pkg:deb/debian/")
    contained = {r["relatedSpdxElement"] for r in document["relationships"] if r["relationshipType"] == "CONTAINS"}
    assert contained == set(packages) - {"SPDXRef-drydock-image"}


# ── running it ───────────────────────────────────────────────────────────────────────────────


def confined(root, mounted, *command):
    """The command line that runs a program of the image with a root that is read-only, as its user, without capabilities.

    `mounted` becomes /tmp, as a pod's emptyDir. Whoever is not root gets there by user namespaces.
    """
    script = ('mount --bind "$1" "$1" && mount --bind "$2" "$1/tmp" && mount -o remount,bind,ro "$1" && '
              'root=$1 && shift 2 && cd "$root" && exec "$@"')
    if os.geteuid() == 0:
        outer = ["unshare", "--mount"]
        inner = ["setpriv", "--no-new-privs", "chroot", "--userspec=65532:65532", "--groups=", root]
    else:
        outer = ["unshare", "--user", "--map-root-user", "--mount"]
        inner = ["unshare", "--user", "--map-user=65532", "--map-group=65532", "--root", root, "--wd", "/"]
    return [str(word) for word in (*outer, "sh", "-c", script, "sh", root, mounted, *inner, *command)]


@pytest.mark.parametrize("command,first", [
    (["/manager", "--help"], "usage: drydock controller [flags]"),
    (["/runtime-extension-maintenance-controller", "--help"], "usage: drydock bridge [flags]"),
    (["drydock", "help"], "usage: drydock COMMAND [flags] [arguments]"),
])
def test_its_programs_start(root, tmp_path, command, first):
    out = subprocess.check_output(confined(root, tmp_path, *command), text=True, env={"PATH": "/usr/sbin:/usr/bin"})
    assert out.splitlines()[0] == first


def test_its_version_is_the_builds(root, tmp_path):
    out = subprocess.check_output(confined(root, tmp_path, "/usr/bin/drydock", "version"), text=True)
    assert out == subprocess.check_output([drydock(), "version"], text=True)


@pytest.mark.parametrize("command", [
    ["/manager", "--enable-leader-election"],
    ["/runtime-extension-maintenance-controller"],
])
def test_it_gets_ready_as_the_originals_charts_start_it(root, tmp_path, command):
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    mounted.chmod(stat.S_ISVTX | 0o777)
    with Sandbox(str(tmp_path / "sandbox"), nodes=1, flags=["--tls"]) as sandbox, Port() as metrics, Port() as health:
        Management(sandbox.access).install(ROOT / "tests/data/capi/v1beta2.yaml")  # the bridge watches these kinds
        kubeconfig = mounted / "kubeconfig"
        kubeconfig.write_bytes(pathlib.Path(sandbox.kubeconfig).read_bytes())
        kubeconfig.chmod(0o644)
        # The ports of the originals may be taken on the machine that tests.
        ports = ["--metrics-addr", f"127.0.0.1:{metrics.number}", "--health-addr", f"127.0.0.1:{health.number}"]
        env = {"KUBECONFIG": "/tmp/kubeconfig"}
        with Process(confined(root, mounted, *command, *ports), str(tmp_path), "program", env=env) as program:
            wait_for(lambda: fetch(health.number, "/readyz")[0] == 200 or not program.alive(), "it is ready")
            assert program.alive(), program.log()
            status = pathlib.Path(f"/proc/{program.pid}/status").read_text(encoding="ascii")
            assert re.search(r"^CapEff:\s+0+$", status, re.M)
            assert os.geteuid() != 0 or re.search(r"^Uid:(\s+65532){4}$", status, re.M)
            program.send(signal.SIGTERM)

            def ended():
                if program.alive():
                    fetch(metrics.number, "/metrics")  # the controller stays for one last scrape
                return not program.alive()

            wait_for(ended, "it ends")
            assert program.wait() == 0, program.log()
