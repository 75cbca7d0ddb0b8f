"""The manifests fit each other, and ask for no rights."""

import os
import re
import shutil
import unittest

import yaml

from deployment import KUBERNETES, compose_server, container, flags, image_command, kubernetes_files, overlays, pod, resources, text, tls, workload
from manifest_types import rendered, rendered_with

BYTES = {"Mi": 2**20, "Gi": 2**30}


def size(quantity):
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", quantity).groups()
    return int(number) * BYTES[unit]


class ManifestsTest(unittest.TestCase):
    def selects(self, selector):
        self.assertTrue(selector)
        for overlay in overlays():
            self.assertLessEqual(selector.items(), workload(overlay)["spec"]["template"]["metadata"]["labels"].items())

    def test_a_kustomization_lists_every_file_beside_it_and_nothing_else(self):
        for path, documents in kubernetes_files().items():
            if os.path.basename(path) != "kustomization.yaml":
                continue
            folder = os.path.dirname(path)
            entries = {*documents[0].get("resources", []), *(patch["path"] for patch in documents[0].get("patches", []))}
            listed = {name for name in entries if name.endswith(".yaml")}
            self.assertEqual(listed, set(os.listdir(folder)) - {"kustomization.yaml"}, path)
            for name in entries - listed:
                self.assertTrue(os.path.isfile(os.path.join(folder, name, "kustomization.yaml")), (path, name))

    def test_every_resource_has_a_name_and_the_label(self):
        for path, documents in kubernetes_files().items():
            for resource in documents:
                self.assertTrue(resource["apiVersion"] and resource["kind"], path)
                if os.path.basename(path) != "kustomization.yaml":
                    self.assertTrue(resource["metadata"]["name"], path)
                    self.assertEqual(resource["metadata"]["labels"]["app.kubernetes.io/name"], "stepcast", path)

    def test_selectors_find_the_pods(self):
        for service in resources("Service"):
            self.selects(service["spec"]["selector"])
        for policy in resources("NetworkPolicy"):
            self.selects(policy["spec"]["podSelector"]["matchLabels"])
        for budget in resources("PodDisruptionBudget"):
            self.selects(budget["spec"]["selector"]["matchLabels"])
        for overlay in overlays():
            self.selects(workload(overlay)["spec"]["selector"]["matchLabels"])
            for constraint in pod(overlay)["topologySpreadConstraints"]:
                self.selects(constraint["labelSelector"]["matchLabels"])

    def test_ports_that_are_named_are_the_containers(self):
        for overlay in overlays():
            named = {port["name"]: port["containerPort"] for port in container(overlay)["ports"]}
            for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
                self.assertEqual(container(overlay)[probe]["httpGet"], {"path": path, "port": "http"}, probe)
            for service in resources("Service"):
                for port in service["spec"]["ports"]:
                    self.assertEqual(named[port["targetPort"]], port["port"], service["metadata"]["name"])
            (allowed,) = [policy["spec"]["ingress"] for policy in resources("NetworkPolicy") if "ingress" in policy["spec"]]
            self.assertEqual(sorted(port["port"] for rule in allowed for port in rule["ports"]), sorted(named))
            arguments = flags(container(overlay)["args"])
            self.assertEqual(arguments["--listen"], f"0.0.0.0:{named['grpc']}")
            self.assertEqual(arguments["--http-listen"], f"0.0.0.0:{named['http']}")

    def test_the_monitor_finds_the_port_of_one_service(self):
        (monitor,) = resources("ServiceMonitor")
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        (service,) = [service for service in resources("Service") if wanted <= service["metadata"]["labels"].items()]
        ports = {port["name"]: port["targetPort"] for port in service["spec"]["ports"]}
        self.assertEqual([ports[endpoint["port"]] for endpoint in monitor["spec"]["endpoints"]], ["http"])
        # The name by which rules and dashboard call the job.
        self.assertEqual(service["metadata"]["labels"][monitor["spec"]["jobLabel"]], "stepcast")

    def test_a_pod_has_no_rights(self):
        (account,) = resources("ServiceAccount")
        self.assertIs(account["automountServiceAccountToken"], False)
        for overlay in overlays():
            self.assertIs(pod(overlay)["automountServiceAccountToken"], False)
            self.assertIs(pod(overlay)["securityContext"]["runAsNonRoot"], True)
            self.assertEqual(pod(overlay)["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertEqual(
                container(overlay)["securityContext"],
                {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
            )
            self.assertEqual(pod(overlay)["serviceAccountName"], account["metadata"]["name"])
            for forbidden in ("hostNetwork", "hostPID", "hostIPC"):
                self.assertNotIn(forbidden, pod(overlay))

    def test_a_pod_has_bounds_and_somewhere_to_write(self):
        for overlay in overlays():
            for bound in ("requests", "limits"):
                self.assertLessEqual({"cpu", "memory"}, container(overlay)["resources"][bound].keys(), overlay)
            volumes = {volume["name"]: volume for volume in pod(overlay)["volumes"]}
            mounts = {mount["mountPath"]: mount["name"] for mount in container(overlay)["volumeMounts"]}
            self.assertGreaterEqual(size(volumes[mounts["/tmp"]]["emptyDir"]["sizeLimit"]), 2**30, overlay)

    def test_a_pod_runs_as_the_user_whom_the_image_gave_the_data_directory(self):
        user = re.search(r"^USER (\d+):(\d+)$", text("Dockerfile"), re.M)
        for overlay in overlays():
            context = pod(overlay)["securityContext"]
            self.assertEqual((context["runAsUser"], context["runAsGroup"], context["fsGroup"]), (int(user[1]), int(user[2]), int(user[2])))
        self.assertIn(f"install -d -o {user[1]} -g {user[2]} {flags(image_command())['--data-dir']}", text("Dockerfile"))

    def test_the_image_has_the_projects_version(self):
        version = re.search(r"^project\(stepcast VERSION ([\d.]+)", text("CMakeLists.txt"), re.M)[1]
        for overlay in overlays():
            kustomization = yaml.safe_load(text(os.path.join(KUBERNETES, "overlays", overlay, "kustomization.yaml")))
            self.assertEqual(kustomization["images"], [{"name": container(overlay)["image"], "newTag": version}])
        self.assertEqual(compose_server()["image"], f"stepcast:{version}")


class EmbeddedTest(unittest.TestCase):
    def test_the_stateful_set_is_governed_by_the_headless_service(self):
        headless = [service["metadata"]["name"] for service in resources("Service") if service["spec"].get("clusterIP") == "None"]
        self.assertEqual(headless, [workload("embedded")["spec"]["serviceName"]])

    def test_the_data_directory_is_a_claimed_volume_with_room_for_the_store_twice(self):
        (claim,) = workload("embedded")["spec"]["volumeClaimTemplates"]
        mounts = {mount["mountPath"]: mount["name"] for mount in container("embedded")["volumeMounts"]}
        self.assertEqual(mounts[flags(container("embedded")["args"])["--data-dir"]], claim["metadata"]["name"])
        (store,) = [variable["value"] for variable in container("embedded")["env"] if variable["name"] == "STEPCAST_MAX_STORE_BYTES"]
        self.assertGreaterEqual(size(claim["spec"]["resources"]["requests"]["storage"]), 2 * int(store))
        self.assertEqual(workload("embedded")["spec"]["replicas"], 1)


class SharedTest(unittest.TestCase):
    def test_a_new_version_takes_no_replica_away_before_it_is_ready(self):
        self.assertEqual(workload("shared")["spec"]["strategy"], {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})

    def test_the_autoscaler_alone_says_how_many(self):
        (scaler,) = resources("HorizontalPodAutoscaler")
        target = workload("shared")
        reference = {"apiVersion": target["apiVersion"], "kind": target["kind"], "name": target["metadata"]["name"]}
        self.assertEqual(scaler["spec"]["scaleTargetRef"], reference)
        self.assertNotIn("replicas", target["spec"])
        self.assertGreaterEqual(scaler["spec"]["minReplicas"], 3)
        # A share of what is requested: without a request there is nothing to scale by.
        self.assertEqual([metric["resource"]["name"] for metric in scaler["spec"]["metrics"]], ["cpu"])
        self.assertIn("cpu", container("shared")["resources"]["requests"])

    def test_a_replica_keeps_nothing(self):
        self.assertFalse([volume for volume in pod("shared")["volumes"] if "persistentVolumeClaim" in volume])
        self.assertEqual(flags(container("shared")["args"])["--store"], "postgres")

    def test_the_connection_comes_from_a_secret_that_is_not_here(self):
        (secret,) = {variable["valueFrom"]["secretKeyRef"]["name"] for variable in container("shared")["env"] if "secretKeyRef" in variable.get("valueFrom", {})}
        (mounted,) = [volume["secret"]["secretName"] for volume in pod("shared")["volumes"] if "secret" in volume]
        self.assertEqual(secret, mounted)
        self.assertEqual(resources("Secret"), [])
        self.assertIn(f"create secret generic {secret} ", text("deploy/README.md"))

    def test_of_the_network_only_names_and_the_database_are_called(self):
        rules = [rule for policy in resources("NetworkPolicy") for rule in policy["spec"].get("egress", [])]
        self.assertEqual([sorted({port["port"] for port in rule["ports"]}) for rule in rules], [[53], [5432]])
        for rule in rules:
            self.assertTrue(all("podSelector" in peer for peer in rule["to"]))


class TlsTest(unittest.TestCase):
    def test_keys_and_tokens_are_not_for_everybody(self):
        for volume in tls()["volumes"]:
            self.assertEqual(volume["secret"]["defaultMode"] & 0o7, 0, volume["name"])
            self.assertIn(volume["secret"]["secretName"], text("deploy/README.md"))

    def test_files_are_where_their_secrets_are_mounted(self):
        (patch,) = tls()["containers"]
        mounts = {mount["mountPath"]: mount["name"] for mount in patch["volumeMounts"]}
        paths = [variable["value"] for variable in patch["env"] if "value" in variable]
        self.assertEqual({mounts[os.path.dirname(path)] for path in paths}, {volume["name"] for volume in tls()["volumes"]})


@unittest.skipUnless(shutil.which("kubectl"), "kubectl is not installed")
class KustomizeTest(unittest.TestCase):
    COMMON = ["NetworkPolicy", "PodDisruptionBudget", "Service", "Service", "ServiceAccount"]

    def kinds(self, resources):
        return sorted(resource["kind"] for resource in resources)

    def test_an_overlay_renders_with_the_base(self):
        self.assertEqual(self.kinds(rendered("embedded")), sorted([*self.COMMON, "StatefulSet"]))
        self.assertEqual(self.kinds(rendered("shared")), sorted([*self.COMMON, "Deployment", "HorizontalPodAutoscaler", "NetworkPolicy"]))

    def test_the_monitor_is_added_to_every_overlay(self):
        for overlay in overlays():
            self.assertEqual(self.kinds(rendered_with(overlay, "service-monitor")), sorted([*self.kinds(rendered(overlay)), "ServiceMonitor"]))

    def test_with_tls_no_overlay_is_open_to_everybody(self):
        for overlay in overlays():
            (made,) = [resource for resource in rendered_with(overlay, "tls") if resource["kind"] == workload(overlay)["kind"]]
            (server,) = made["spec"]["template"]["spec"]["containers"]
            names = {variable["name"] for variable in server["env"]}
            self.assertLessEqual({"STEPCAST_TLS_CERT", "STEPCAST_TLS_KEY", "STEPCAST_TOKENS", "STEPCAST_THREADS"}, names)
            self.assertNotIn("STEPCAST_ALLOW_INSECURE", names)
            self.assertNotIn("--allow-insecure", " ".join(server["args"]))
            self.assertEqual(len(server["volumeMounts"]), len(container(overlay)["volumeMounts"]) + 2)


if __name__ == "__main__":
    unittest.main()
