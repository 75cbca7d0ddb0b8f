"""What is rendered for a cluster, and for compose, has only fields that those know, with values of their types."""

import copy
import json
import os
import shutil
import tempfile
import unittest

import jsonschema
import yaml

from deployment import KUBERNETES, document
from manifest_types import PACKAGES, faults, installed, rendered

OVERLAYS = sorted(os.listdir(os.path.join(KUBERNETES, "overlays")))


def with_component(overlay):
    with tempfile.TemporaryDirectory() as folder:
        above = os.path.relpath(KUBERNETES, os.path.realpath(folder))
        with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump({"resources": [f"{above}/overlays/{overlay}"], "components": [f"{above}/components/service-monitor"]}, file)
        return rendered(folder)


@unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
@unittest.skipUnless(installed(), "npm has not installed the types: ./dev test does")
class KubernetesSchemaTest(unittest.TestCase):
    def test_every_overlay_fits_with_and_without_the_monitor(self):
        for overlay in OVERLAYS:
            resources = with_component(overlay)
            kinds = sorted(resource["kind"] for resource in rendered(os.path.join(KUBERNETES, "overlays", overlay)))
            self.assertEqual(sorted([*kinds, "ServiceMonitor"]), sorted(resource["kind"] for resource in resources))
            self.assertEqual(faults(resources), [], overlay)

    def test_a_fault_anywhere_is_found(self):
        (good,) = [resource for resource in rendered(os.path.join(KUBERNETES, "overlays/embedded")) if resource["kind"] == "StatefulSet"]
        resources = []
        for change in (
            lambda pod: pod.update(terminationGracePeriodSecond=90),
            lambda pod: pod.update(terminationGracePeriodSeconds="90"),
            lambda pod: pod["containers"][0]["readinessProbe"]["httpGet"].update(paht="/readyz"),
            lambda pod: pod["containers"][0]["readinessProbe"]["httpGet"].pop("port"),
            lambda pod: pod["containers"][0]["securityContext"].update(readOnlyRootFilesystem="yes"),
            lambda pod: pod["topologySpreadConstraints"][0].update(whenUnsatisfiable="Sometimes"),
        ):
            resources.append(copy.deepcopy(good))
            change(resources[-1]["spec"]["template"]["spec"])
        said = faults(resources)
        self.assertEqual(len([line for line in said if not line.startswith(" ")]), len(resources), said)


class ComposeSchemaTest(unittest.TestCase):
    SCHEMA = os.path.join(PACKAGES, "dclint/schemas/compose.schema.json")

    def setUp(self):
        if not os.path.isfile(self.SCHEMA):
            self.skipTest("npm has not installed compose's schema: ./dev test does")
        with open(self.SCHEMA, encoding="utf-8") as file:
            schema = json.load(file)
        self.validator = jsonschema.Draft7Validator(schema)

    def test_compose_fits(self):
        self.assertEqual([error.message for error in self.validator.iter_errors(document("deploy/compose.yaml"))], [])

    def test_a_misspelt_key_is_found(self):
        changed = document("deploy/compose.yaml")
        changed["services"]["stepcast"]["read_olny"] = True
        self.assertIn("read_olny", " ".join(error.message for error in self.validator.iter_errors(changed)))


if __name__ == "__main__":
    unittest.main()
