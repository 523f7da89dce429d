"""objects: manifests that several suites use."""


def pod(name, labels=None, node=None, grace=1):
    spec = {"terminationGracePeriodSeconds": grace,
            "containers": [{"name": "main", "image": "registry.example.com/app:1"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {"app": name}}, "spec": spec}


def template(app, selector=None):
    spec = pod(app)["spec"]
    if selector:
        spec["nodeSelector"] = selector
    return {"metadata": {"labels": {"app": app}}, "spec": spec}


def deployment(name, replicas, selector=None):
    """Its pods run on nodes with the labels `selector`."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": template(name, selector)}}


def daemon_set(name, selector=None):
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": template(name, selector)}}


def budget(name, app, **limit):
    """budget("b", "app", minAvailable=2)"""
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": app}}, **limit}}
