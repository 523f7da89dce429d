"""Fixtures of the end-to-end suites. See tests/e2e/README.md."""

import os

import pytest

from backend import Cluster, Sandbox


def pytest_addoption(parser):
    parser.addoption("--backend", choices=("sandbox", "cluster"),
                     default=os.environ.get("DRYDOCK_BACKEND", "sandbox"),
                     help="what the cases run against (also: DRYDOCK_BACKEND)")


def pytest_report_header(config):
    return f"back end: {config.getoption('--backend')}"


def pytest_collection_modifyitems(config, items):
    """A case that exists on the other back end alone is no skipped case: it is not selected."""
    backend = config.getoption("--backend")
    kept, dropped = [], []
    for item in items:
        marker = item.get_closest_marker("backend")
        (dropped if marker and backend not in marker.args else kept).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def fail_skipped(report):
    """A skipped test proves nothing, so here it is a failure."""
    if report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure: {report.longrepr}"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    outcome = yield
    fail_skipped(outcome.get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    outcome = yield
    fail_skipped(outcome.get_result())


@pytest.fixture(scope="session")
def backend_name(request):
    return request.config.getoption("--backend")
