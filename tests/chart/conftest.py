"""The chart as Helm renders it."""

import functools
import os
import pathlib
import subprocess

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
CHART = TOP / "deploy/helm/drydock"
SETS = ["defaults", *sorted(path.name.removesuffix("-values.yaml") for path in (CHART / "ci").glob("*-values.yaml"))]


def run(*command, check=True):
    return subprocess.run(list(map(str, command)), check=check, text=True, capture_output=True, timeout=120, cwd=TOP)


def program(name):
    """HELM or DRYDOCK, as tools/chart-check gives them."""
    return os.environ[name]


def settings(values):
    """The arguments by which Helm takes a set of values."""
    return [] if values == "defaults" else ["--values", str(CHART / f"ci/{values}-values.yaml")]


@functools.cache
def rendered(values, *more):
    """[object] of the chart with a set of values, in the namespace `here`."""
    done = run(program("HELM"), "template", "drydock", CHART, "--namespace", "here", *settings(values), *more)
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def find(items, kind, name=None):
    found = [item for item in items if item["kind"] == kind and name in (None, item["metadata"]["name"])]
    assert found, f"no {kind} {name or ''}"
    return found[0]


@pytest.fixture(name="values", params=SETS)
def fixture_values(request):
    return request.param
