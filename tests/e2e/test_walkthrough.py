"""The pages: what a reader types there, line by line, as it stands; and that links lead somewhere."""

import os
import re
import shlex
import shutil
import subprocess

import pytest

from backend import ROOT
from process import Port, Process, drydock, fetch
from wait import wait_for


def lines_of(page):
    """The lines of its code blocks."""
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as f:
        blocks = re.findall(r"^```\n(.*?)^```$", f.read(), re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


class Reader:
    """Types lines into a shell of its own: the program under test is its drydock, its folder is the
    reader's /tmp, and its port the 8080 that may be somebody else's."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        self.env = dict(os.environ)
        self.started = []
        os.makedirs(f"{folder}/bin")
        os.symlink(drydock(), f"{folder}/bin/drydock")

    def here(self, text):
        text = text.replace("/tmp/", f"{self.folder}/").replace(":8080", f":{self.port.number}")
        return text.replace("$PWD/build", f"{self.folder}/bin").replace("$PATH", self.env["PATH"])

    def type(self, line):
        """What a foreground command prints."""
        words = shlex.split(self.here(line))
        if words[0] == "export":
            name, value = words[1].split("=", 1)
            self.env[name] = value
            return ""
        if words[-1] == "&":
            self.start(words[:-1])
            return ""
        result = subprocess.run(words, env=self.env, cwd=ROOT, text=True, capture_output=True, timeout=180,
                                check=False)
        assert result.returncode == 0, f"{line}: {result.stderr}"
        return result.stdout

    def start(self, words):
        """A reader looks at what a server prints before going on."""
        path = shutil.which(words[0], path=self.env["PATH"])
        process = Process([path, *words[1:]], self.folder, words[1], self.env, cwd=ROOT)
        self.started.append(process)
        if words[1] == "sandbox":
            wait_for(lambda: "serving" in process.out() + process.log(), "the sandbox serves")
        else:
            wait_for(lambda: fetch(self.port.number, "/api/v1/info")[0] == 200, "the controller answers")

    def end(self):
        for process in reversed(self.started):
            process.end()


@pytest.mark.backend("sandbox")
def test_what_troubleshoot_says_can_be_typed_on_the_sandbox(tmp_path):
    with Port() as port:
        reader = Reader(str(tmp_path), port)
        try:
            for line in lines_of("sandbox.md"):
                if line.startswith(("export", "drydock sandbox", "drydock controller")):
                    reader.type(line)
            printed = {line.split()[1]: reader.type(line) for line in lines_of("troubleshoot.md")}
        finally:
            reader.end()
    assert set(printed) == {"status", "explain", "check", "get", "-s"}
    assert "node node-002: " in printed["explain"] and "drydock_nodes" in printed["-s"]


def test_every_link_of_every_page_leads_somewhere():
    """Links to files of the project and to headings in them."""
    broken = []
    pages = [os.path.join(folder, name) for folder in (ROOT, f"{ROOT}/docs", f"{ROOT}/docs/contract", f"{ROOT}/docs/decisions")
             for name in os.listdir(folder) if name.endswith(".md")]
    assert len(pages) > 20
    for page in pages:
        with open(page, encoding="utf-8") as f:
            text = re.sub(r"^```.*?^```$", "", f.read(), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(target):
                broken.append(f"{os.path.relpath(page, ROOT)}: {link}")
            elif anchor and target.endswith(".md") and anchor not in anchors_of(target):
                broken.append(f"{os.path.relpath(page, ROOT)}: {link}: no such heading")
    assert broken == []


def anchors_of(page):
    """The names that GitHub gives to the headings of a page."""
    with open(page, encoding="utf-8") as f:
        headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", f.read(), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.backend("sandbox")
def test_the_walk_through_of_the_sandbox_works_as_typed(tmp_path):
    with Port() as port:
        reader = Reader(str(tmp_path), port)
        try:
            printed = {line: reader.type(line) for line in lines_of("sandbox.md")}
            assert len(printed) > 12
        finally:
            reader.end()
    assert printed["kubectl get nodes -o wide"].count("Ready") == 5
    pods = printed["kubectl get pods -o wide"]
    assert pods.count("web-") == 6 and "node-001" not in re.sub(r".*Terminating.*", "", pods)
    status = next(text for line, text in printed.items() if line.startswith("drydock status"))
    assert re.search(r"5 nodes: ", status) and re.search(r"^flatcar\s", status, re.M)
    explained = next(text for line, text in printed.items() if line.startswith("drydock explain"))
    assert explained.startswith("node node-002: ")
    assert "MAINTENANCE-STATE" in printed["kubectl get nodes -L cloud.sap/maintenance-state"]


@pytest.mark.backend("sandbox")
def test_every_file_that_the_sandbox_page_names_is_there():
    with open(os.path.join(ROOT, "docs", "sandbox.md"), encoding="utf-8") as f:
        text = f.read()
    named = re.findall(r"(?:docs|tests)/[\w./-]+\w", text) + \
        ["docs/" + link for link in re.findall(r"\]\((?!http)([^)#]+)", text)]
    assert named
    assert [path for path in named if not os.path.exists(os.path.join(ROOT, path))] == []


def test_the_recipes_of_profiles_are_found_fine(tmp_path):
    with open(os.path.join(ROOT, "docs", "profiles.md"), encoding="utf-8") as f:
        recipes = f.read().partition("## Recipes\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```yaml\n(.*?)^```$", recipes, re.M | re.S)
    names = re.findall(r"name: (\w+)", "".join(blocks))
    assert {"no_alerts", "night", "one_a_pool", "two_in_all"} <= set(names)
    path = tmp_path / "maintenance.yaml"
    path.write_text("instances:\n  check:\n" + "".join(f"  {line}\n" for block in blocks for line in block.splitlines()) +
                    "profiles:\n- name: p\n  operational:\n    transitions:\n"
                    f"    - {{check: '{' && '.join(names)}', next: in-maintenance}}\n", encoding="utf-8")
    said = subprocess.run([drydock(), "check", "--strict", str(path)], capture_output=True, text=True, check=False)
    assert said.returncode == 0 and f"fine, 2 profiles, {len(names)} checks" in said.stdout, said.stdout
