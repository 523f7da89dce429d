"""contract: the bytes that the controller owes to those who read labels and annotations."""

import json
import re

STATE = "cloud.sap/maintenance-state"
PROFILE = "cloud.sap/maintenance-profile"
DATA = "cloud.sap/maintenance-data"
LEASE = "maintenance-controller-leader-election.cloud.sap"

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{0,8}[1-9])?(Z|[+-]\d\d:\d\d)"
FRESH = re.compile(
    r'\{"Profiles":\{"default":\{"Transition":"(' + TIME + r')","Current":"operational",'
    r'"Previous":"operational"\}\},"Notifications":\{\}\}')


def data(profiles, notifications=None):
    """The annotation as Go writes it: {name: (transition, current, previous)}."""
    return json.dumps({
        "Profiles": {name: {"Transition": t, "Current": c, "Previous": p}
                     for name, (t, c, p) in sorted(profiles.items())},
        "Notifications": dict(sorted((notifications or {}).items()))},
        separators=(",", ":"), ensure_ascii=False)


def state(node):
    return (node.metadata.labels or {}).get(STATE)


def annotation(node):
    return (node.metadata.annotations or {}).get(DATA)


def is_fresh(node):
    """Carries exactly what a node gets that nobody has configured."""
    return state(node) == "operational" and bool(FRESH.fullmatch(annotation(node) or ""))
