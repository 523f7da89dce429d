"""step_config: a configuration with one profile whose every step a test can take by labelling a node."""

import yaml

DUE, APPROVED = "e2e.example.com/due", "e2e.example.com/approved"
PROFILE, STATE = "cloud.sap/maintenance-profile", "cloud.sap/maintenance-state"


def step_config(**changes):
    """As YAML text; `changes` replace whole top-level keys."""
    return yaml.safe_dump({
        "intervals": {"requeue": "60s"},
        "dashboard": {"labelFilter": ["kubernetes.io/os"]},
        "instances": {
            "check": [
                {"type": "hasLabel", "name": "due", "config": {"key": DUE}},
                {"type": "hasLabel", "name": "approved", "config": {"key": APPROVED}},
                {"type": "maxMaintenance", "name": "one", "config": {"max": 1}},
                {"type": "wait", "name": "settled", "config": {"duration": "1h"}},
            ],
            "trigger": [],
            "notify": [],
        },
        "profiles": [{
            "name": "os",
            "operational": {"transitions": [{"check": "due", "next": "maintenance-required"}]},
            "maintenance-required": {
                "transitions": [{"check": "approved && one", "next": "in-maintenance"}]},
            "in-maintenance": {
                "transitions": [{"check": "!due && settled", "next": "operational"}]},
        }],
        **changes,
    }, sort_keys=False)


def write(path, text):
    """The file as a ConfigMap would be swapped: never half of it."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
    return path


def label(client, node, **labels):
    """label(client, "n1", due="yes", approved=None)"""
    keys = {"due": DUE, "approved": APPROVED, "profile": PROFILE}
    client.core.patch_node(node, {"metadata": {"labels": {keys[k]: v for k, v in labels.items()}}})


def state(client, node):
    return (client.core.read_node(node).metadata.labels or {}).get(STATE)
