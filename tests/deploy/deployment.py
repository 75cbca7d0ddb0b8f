"""The files of deploy/, read."""

import json
import os
import re

import yaml

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
KUBERNETES = os.path.join(ROOT, "deploy/kubernetes")
RECORDING = os.path.join(ROOT, "deploy/prometheus/recording.rules.yml")
ALERTING = os.path.join(ROOT, "deploy/prometheus/alerting.rules.yml")
CASES = os.path.join(ROOT, "tests/deploy/alerting_cases.yml")
JOB = "stepcast"


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def printed(path):
    """The YAML that a page prints, block by block."""
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", text(path), re.M | re.S)]


def document(path):
    return yaml.safe_load(text(path))


def kubernetes_files():
    """path -> documents, of every YAML file; kustomizations too."""
    paths = (os.path.join(folder, name) for folder, _, names in os.walk(KUBERNETES) for name in names if name.endswith(".yaml"))
    return {path: list(yaml.safe_load_all(text(path))) for path in sorted(paths)}


def resources(kind, program="stepcast"):
    """Those of a program, by their label: the server's own, or the webhook's (stepcast-admission). Patches are none."""
    files = kubernetes_files()
    patches = {os.path.join(os.path.dirname(path), patch["path"]) for path, (first, *_) in files.items() for patch in first.get("patches", [])}
    found = (resource for path in sorted(files.keys() - patches) for resource in files[path] if resource["kind"] == kind)
    return [resource for resource in found if resource["metadata"]["labels"]["app.kubernetes.io/name"] == program]


def component(name, file):
    """The documents of a file of a component."""
    return kubernetes_files()[os.path.join(KUBERNETES, "components", name, file)]


def overlays():
    return sorted(os.listdir(os.path.join(KUBERNETES, "overlays")))


def workload(overlay):
    """What makes the overlay's pods."""
    files = {path: documents for path, documents in kubernetes_files().items() if f"/overlays/{overlay}/" in path}
    (only,) = [resource for documents in files.values() for resource in documents if resource["kind"] in ("StatefulSet", "Deployment")]
    return only


def pod(overlay):
    return workload(overlay)["spec"]["template"]["spec"]


def container(overlay):
    (only,) = pod(overlay)["containers"]
    return only


def tls():
    """The component's patch of a pod."""
    return document("deploy/kubernetes/components/tls/served_over_tls.yaml")["spec"]["template"]["spec"]


def profile_sync():
    """The pod of the component."""
    return document("deploy/kubernetes/components/profile-sync/cron_job.yaml")["spec"]["jobTemplate"]["spec"]["template"]


def environment(variables):
    """name -> value, of those whose value is written out."""
    return {variable["name"]: variable["value"] for variable in variables if "value" in variable}


def seconds_of(length):
    """Of 10s, 500ms or 1m."""
    number, unit = re.fullmatch(r"([\d.]+)(ms|s|m)", length).groups()
    return float(number) * {"ms": 1e-3, "s": 1, "m": 60}[unit]


def flags(arguments):
    """--flag=value, or --flag value, as name -> value."""
    return dict(re.findall(r"(--[a-z-]+)[= ](\S+)", " ".join(arguments)))


def image_command():
    """The Dockerfile's ENTRYPOINT and CMD."""
    return [word for instruction in ("ENTRYPOINT", "CMD") for word in json.loads(re.search(rf"^{instruction} (\[.*\])$", text("Dockerfile"), re.M)[1])]


def compose_server():
    return document("deploy/compose.yaml")["services"]["stepcast"]


def compose_variables():
    """Of the server, with every file of compose."""
    return {**compose_server()["environment"], **document("deploy/compose.postgres.yaml")["services"]["stepcast"]["environment"]}


def rules(path):
    return [rule for group in document(path)["groups"] for rule in group["rules"]]


def dashboard():
    return json.loads(text("deploy/grafana/stepcast.json"))


def panels():
    """Those that ask something."""
    return [panel for panel in dashboard()["panels"] if panel["type"] not in ("row", "text")]
