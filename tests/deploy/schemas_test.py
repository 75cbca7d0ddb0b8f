"""What is rendered for a cluster, and for compose, has only fields that those know, with values of their types."""

import copy
import json
import os
import shutil
import unittest

import jsonschema

from deployment import KUBERNETES, document, overlays
from manifest_types import PACKAGES, faults, installed, rendered, rendered_with

# Two ways to scale the replicas of one overlay, of which a cluster has one.
AUTOSCALING = ("autoscaling", "autoscaling-hpa")
COMPONENTS = sorted(set(os.listdir(os.path.join(KUBERNETES, "components"))) - set(AUTOSCALING))


@unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
@unittest.skipUnless(installed(), "npm has not installed the types: ./dev test does")
class KubernetesSchemaTest(unittest.TestCase):
    def test_every_overlay_fits_as_it_is_and_with_every_component(self):
        for overlay in overlays():
            self.assertEqual(faults([*rendered(overlay), *rendered_with(overlay, *COMPONENTS)]), [], overlay)
        for scaling in AUTOSCALING:
            self.assertEqual(faults(rendered_with("shared", *COMPONENTS, scaling)), [], scaling)

    def test_a_fault_anywhere_is_found(self):
        (good,) = [resource for resource in rendered("embedded") if resource["kind"] == "StatefulSet"]
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
        for file in ("deploy/compose.yaml", "deploy/compose.postgres.yaml"):
            self.assertEqual([error.message for error in self.validator.iter_errors(document(file))], [], file)

    def test_a_misspelt_key_is_found(self):
        changed = document("deploy/compose.yaml")
        changed["services"]["stepcast"]["read_olny"] = True
        self.assertIn("read_olny", " ".join(error.message for error in self.validator.iter_errors(changed)))


if __name__ == "__main__":
    unittest.main()
