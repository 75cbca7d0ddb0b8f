"""Kubernetes' own idea of its resources, as npm's packages have it in TypeScript: a field that it does not know, or of a wrong type, is an error."""

import json
import os
import subprocess
import tempfile

import yaml

from deployment import KUBERNETES, ROOT

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(HERE, "node_modules")
COMPILER = os.path.join(PACKAGES, "typescript/bin/tsc")
# Kinds that are not Kubernetes' own, by the group that defines them.
MODELS = {
    "cert-manager.io": "@kubernetes-models/cert-manager",
    "keda.sh": "@kubernetes-models/keda",
    "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
}
OPTIONS = {"noEmit": True, "strict": True, "skipLibCheck": True, "module": "esnext", "moduleResolution": "bundler", "target": "es2022", "types": []}


def installed():
    return os.path.isfile(COMPILER)


def rendered(overlay):
    """What `kubectl apply -k` would send."""
    return _rendered(os.path.join(KUBERNETES, "overlays", overlay))


def rendered_with(overlay, *components):
    """The same of a kustomization that adds components, as a user writes it."""
    base = "deploy/kubernetes"
    return rendered_as({"resources": [f"{base}/overlays/{overlay}"], "components": [f"{base}/components/{name}" for name in components]})


def rendered_as(kustomization):
    """The same of a whole kustomization, whose paths begin in the tree."""
    with tempfile.TemporaryDirectory() as folder:
        above = os.path.relpath(ROOT, os.path.realpath(folder))
        paths = {key: [f"{above}/{path}" for path in kustomization[key]] for key in ("resources", "components")}
        with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump({**kustomization, **paths}, file)
        return _rendered(folder)


def _rendered(folder):
    done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True)
    if done.returncode or done.stderr:
        raise RuntimeError(done.stderr)
    return list(yaml.safe_load_all(done.stdout))


def faults(resources):
    """What the compiler says of them as constants of their types; empty: nothing. Only constants that are written out have their fields known."""
    lines = []
    for index, resource in enumerate(resources):
        version, kind = resource["apiVersion"], resource["kind"]
        package = MODELS.get(version.partition("/")[0], "kubernetes-models")
        lines.append(f'import type {{ I{kind} as Type{index} }} from "{package}/{version}";')
        lines.append(f"export const resource{index}: Type{index} = {json.dumps(resource, indent=2)};")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(PACKAGES, os.path.join(folder, "node_modules"))
        with open(os.path.join(folder, "tsconfig.json"), "w", encoding="utf-8") as file:
            json.dump({"compilerOptions": OPTIONS, "files": ["resources.ts"]}, file)
        with open(os.path.join(folder, "resources.ts"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        done = subprocess.run(["node", COMPILER, "--project", folder, "--pretty", "false"], capture_output=True, text=True)
    said = (done.stdout + done.stderr).splitlines()
    if done.returncode and not said:
        raise RuntimeError(f"the compiler ended with {done.returncode}")
    return said
