"""Every object that the pages about node operations show is one that an API server takes."""

import os
import re

import pytest
import yaml

from backend import ROOT
from operation_cases import KINDS, path
from requests_api import install

PLURALS = {kind: plural for plural, kind in KINDS.items()}


def shown():
    with open(os.path.join(ROOT, "docs", "operations.md"), encoding="utf-8") as f:
        for block in re.findall(r"```yaml\n(.*?)```", f.read(), re.S):
            yield from yaml.safe_load_all(block)


OBJECTS = list(shown())


@pytest.fixture(scope="module", name="installed")
def fixture_installed(backend, tmp_path_factory):
    install(backend, tmp_path_factory.mktemp("crds"), "--operations")


@pytest.mark.parametrize("body", OBJECTS, ids=[o["metadata"]["name"] for o in OBJECTS])
def test_what_the_page_shows_is_taken(backend, installed, body):
    status, answer = backend.access.request(
        "POST", path(PLURALS[body["kind"]]) + "?dryRun=All&fieldValidation=Strict", body)
    assert (status, answer.get("spec")) == (201, body["spec"]), answer


def test_the_page_shows_the_smallest_one_in_eight_lines():
    with open(os.path.join(ROOT, "docs", "operations.md"), encoding="utf-8") as f:
        first = re.search(r"```yaml\n(.*?)```", f.read(), re.S).group(1)
    assert len(first.splitlines()) <= 8 and OBJECTS[0]["spec"]["operations"][0]["reboot"] == {"policy": "IfRequired"}
