"""local_apt: tiny packages in a repository on a node itself, the only one that its apt knows: nothing is fetched from elsewhere."""

import hashlib
import os
import pathlib
import subprocess

REPOSITORY = "srv/apt"


def build_package(folder, name, version):
    """A package that installs /usr/share/NAME/version."""
    root = pathlib.Path(folder) / f"{name}-{version}"
    content = root / "usr/share" / name
    content.mkdir(parents=True)
    (content / "version").write_text(version + "\n", encoding="ascii")
    control = root / "DEBIAN"
    control.mkdir()
    (control / "control").write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: drydock tests <tests@drydock.invalid>\n"
        f"Description: a package for tests\n", encoding="ascii")
    archive = pathlib.Path(folder) / f"{name}_{version}_all.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(root), str(archive)], check=True, stdout=subprocess.DEVNULL)
    return archive


def index_of(archive):
    """The package's paragraph in the repository's index."""
    control = subprocess.run(["dpkg-deb", "--field", str(archive)], check=True, text=True, capture_output=True).stdout
    content = archive.read_bytes()
    return f"{control.rstrip()}\nFilename: ./{archive.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"


def publish(backend, node, archives):
    """The node's apt knows these packages and no others."""
    root = pathlib.Path(backend.folder) / "nodes" / node / "root"
    repository = root / REPOSITORY
    repository.mkdir(parents=True, exist_ok=True)
    for archive in archives:
        (repository / archive.name).write_bytes(archive.read_bytes())
    (repository / "Packages").write_text("\n".join(index_of(archive) for archive in archives), encoding="ascii")
    for other in (root / "etc/apt/sources.list.d").glob("*"):
        os.unlink(other)
    (root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:/{REPOSITORY} ./\n", encoding="ascii")


def installed_version(backend, node, package):
    """None where it is not installed."""
    found = backend.try_on(node, "dpkg-query", "--show", "--showformat", "${Version}", package)
    return found.stdout if found.returncode == 0 else None
