"""The manifests fit each other, and ask for no rights."""

import os
import re
import shutil
import unittest

import yaml

from deployment import KUBERNETES, component, compose_server, container, flags, image_command, kubernetes_files, overlays, pod, printed, profile_sync, resources, text, tls, workload
from manifest_types import rendered, rendered_as, rendered_with

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
                    program = resource["metadata"]["labels"]["app.kubernetes.io/name"]
                    own = "stepcast-admission" if "/components/admission" in path else "stepcast"
                    self.assertTrue(program == own or program.startswith(f"{own}-certificate") or program == "stepcast-profile-sync", path)

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
            for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz/reads")):
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
        (webhook,) = component("admission", "deployment.yaml")
        self.assertEqual(webhook["spec"]["template"]["spec"]["containers"][0]["image"], container("shared")["image"])
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
    def autoscaler(self):
        (scaler,) = resources("HorizontalPodAutoscaler")
        return scaler

    def test_a_new_version_takes_no_replica_away_before_it_is_ready(self):
        self.assertEqual(workload("shared")["spec"]["strategy"], {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})

    def test_the_autoscaler_alone_says_how_many(self):
        scaler = self.autoscaler()
        target = workload("shared")
        reference = {"apiVersion": target["apiVersion"], "kind": target["kind"], "name": target["metadata"]["name"]}
        self.assertEqual(scaler["spec"]["scaleTargetRef"], reference)
        self.assertNotIn("replicas", target["spec"])
        self.assertGreaterEqual(scaler["spec"]["minReplicas"], 3)
        # A share of what is requested: without a request there is nothing to scale by.
        self.assertEqual([metric["resource"]["name"] for metric in scaler["spec"]["metrics"]], ["cpu"])
        self.assertIn("cpu", container("shared")["resources"]["requests"])

    def test_keda_scales_the_same_deployment_within_the_same_bounds(self):
        (scaled,) = component("autoscaling", "scaled_object.yaml")
        own = self.autoscaler()["spec"]
        spec = scaled["spec"]
        self.assertEqual(spec["scaleTargetRef"], own["scaleTargetRef"])
        self.assertEqual((spec["minReplicaCount"], spec["maxReplicaCount"]), (own["minReplicas"], own["maxReplicas"]))
        self.assertEqual(spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"], own["behavior"])
        self.assertTrue(own["minReplicas"] <= spec["fallback"]["replicas"] <= own["maxReplicas"])

    def test_what_scales_by_what_waits_asks_for_metrics_that_the_server_has(self):
        names = text("server/metrics/metric_names.h")
        (scaled,) = component("autoscaling", "scaled_object.yaml")
        queries = [trigger["metadata"]["query"] for trigger in scaled["spec"]["triggers"] if trigger["type"] == "prometheus"]
        asked = sorted(name for query in queries for name in re.findall(r"stepcast_\w+", query))
        self.assertEqual(asked, ["stepcast_operation_shards", "stepcast_operations", "stepcast_queue_length"])
        for name in asked:
            self.assertIn(f'"{name}"', names)
        # The adapter's rules make the same of them, by the names that the autoscaler asks for.
        (patch,) = component("autoscaling-hpa", "autoscaler_by_queue.yaml")
        (rules,) = [block["externalRules"] for block in printed("deploy/docs/kubernetes.md") if "externalRules" in block]
        triggers = [trigger["metadata"].get("threshold") or trigger["metadata"]["value"] for trigger in scaled["spec"]["triggers"]]
        metrics = patch["spec"]["metrics"]
        targets = [metric["external"]["target"]["averageValue"] for metric in metrics if metric["type"] == "External"]
        self.assertEqual([*targets, str(metrics[0]["resource"]["target"]["averageUtilization"])], triggers)
        self.assertEqual([metric["external"]["metric"]["name"] for metric in metrics[1:]], [rule["name"]["as"] for rule in rules])
        self.assertEqual(queries, [rule["metricsQuery"] for rule in rules])
        for rule in rules:
            self.assertIn(rule["seriesQuery"], asked)
            # The autoscaler asks in its namespace, which no series has as a label.
            self.assertEqual(rule["resources"], {"namespaced": False})

    def test_a_replica_keeps_nothing(self):
        self.assertFalse([volume for volume in pod("shared")["volumes"] if "persistentVolumeClaim" in volume])
        self.assertEqual(flags(container("shared")["args"])["--store"], "postgres")

    def test_the_connection_comes_from_a_secret_that_is_not_here(self):
        (secret,) = {variable["valueFrom"]["secretKeyRef"]["name"] for variable in container("shared")["env"] if "secretKeyRef" in variable.get("valueFrom", {})}
        (mounted,) = [volume["secret"]["secretName"] for volume in pod("shared")["volumes"] if "secret" in volume]
        self.assertEqual(secret, mounted)
        self.assertEqual(resources("Secret"), [])
        self.assertIn(f"create secret generic {secret} ", text("deploy/docs/kubernetes.md"))

    def test_of_the_network_only_names_and_the_database_are_called(self):
        rules = [rule for policy in resources("NetworkPolicy") for rule in policy["spec"].get("egress", [])]
        self.assertEqual([sorted({port["port"] for port in rule["ports"]}) for rule in rules], [[53], [5432]])
        for rule in rules:
            self.assertTrue(all("podSelector" in peer for peer in rule["to"]))


class TlsTest(unittest.TestCase):
    def test_keys_and_tokens_are_not_for_everybody(self):
        for volume in tls()["volumes"]:
            self.assertEqual(volume["secret"]["defaultMode"] & 0o7, 0, volume["name"])
            self.assertIn(volume["secret"]["secretName"], text("deploy/docs/kubernetes.md"))

    def test_files_are_where_their_secrets_are_mounted(self):
        (patch,) = tls()["containers"]
        mounts = {mount["mountPath"]: mount["name"] for mount in patch["volumeMounts"]}
        paths = [variable["value"] for variable in patch["env"] if "value" in variable]
        self.assertEqual({mounts[os.path.dirname(path)] for path in paths}, {volume["name"] for volume in tls()["volumes"]})


class AdmissionTest(unittest.TestCase):
    """The component of the webhook."""

    def setUp(self):
        (self.deployment,) = component("admission", "deployment.yaml")
        self.pod = self.deployment["spec"]["template"]
        (self.container,) = self.pod["spec"]["containers"]
        (self.configuration,) = component("admission", "webhook.yaml")
        (self.webhook,) = self.configuration["webhooks"]

    def test_no_selector_of_the_servers_finds_its_pods_and_its_own_do(self):
        labels = self.pod["metadata"]["labels"]
        selectors = [service["spec"]["selector"] for service in resources("Service")]
        selectors += [resource["spec"]["selector"]["matchLabels"] for resource in resources("PodDisruptionBudget")]
        for selector in selectors:
            self.assertFalse(selector.items() <= labels.items())
        (service,), (budget,), (policy,) = (resources(kind, "stepcast-admission") for kind in ("Service", "PodDisruptionBudget", "NetworkPolicy"))
        for selector in (service["spec"]["selector"], budget["spec"]["selector"]["matchLabels"], policy["spec"]["podSelector"]["matchLabels"]):
            self.assertLessEqual(selector.items(), labels.items())

    def test_the_servers_policy_lets_it_in_and_its_own_lets_it_ask(self):
        (policy,) = [policy for policy in resources("NetworkPolicy") if policy["spec"].get("ingress")]
        callers = policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
        self.assertLessEqual(callers.items(), self.pod["metadata"]["labels"].items())
        (own,) = resources("NetworkPolicy", "stepcast-admission")
        asked = [peer["podSelector"]["matchLabels"] for rule in own["spec"]["egress"] for peer in rule["to"]]
        self.assertIn(workload("shared")["spec"]["template"]["metadata"]["labels"], asked)
        self.assertEqual([sorted({port["port"] for port in rule["ports"]}) for rule in own["spec"]["egress"]], [[53], [50051]])

    def test_nothing_is_held_up_or_refused_because_of_it(self):
        self.assertEqual(
            {name: self.webhook[name] for name in ("failurePolicy", "timeoutSeconds", "sideEffects", "reinvocationPolicy", "admissionReviewVersions")},
            {"failurePolicy": "Ignore", "timeoutSeconds": 2, "sideEffects": "None", "reinvocationPolicy": "Never", "admissionReviewVersions": ["v1"]},
        )
        wait = next(variable["value"] for variable in self.container["env"] if variable["name"] == "STEPCAST_WAIT_SECONDS")
        self.assertLess(float(wait), self.webhook["timeoutSeconds"])
        self.assertEqual(self.webhook["objectSelector"], {"matchExpressions": [{"key": "stepcast.dev/profile", "operator": "Exists"}]})
        for rule in self.webhook["rules"]:
            self.assertEqual(rule["operations"], ["CREATE"])

    def test_the_configuration_names_the_service_and_its_port(self):
        (service,) = resources("Service", "stepcast-admission")
        asked = self.webhook["clientConfig"]["service"]
        (port,) = service["spec"]["ports"]
        self.assertEqual((asked["name"], asked["port"], asked["path"]), (service["metadata"]["name"], port["port"], "/admit"))
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.assertIn(port["targetPort"], ports)
        arguments = flags(self.container["args"])
        self.assertEqual((arguments["--listen"], arguments["--http-listen"]), (f"0.0.0.0:{ports['https']}", f"0.0.0.0:{ports['http']}"))
        self.assertEqual(self.container["readinessProbe"]["httpGet"], {"path": "/readyz", "port": "http"})
        self.assertEqual(self.container["livenessProbe"]["httpGet"], {"path": "/healthz", "port": "http"})

    def test_its_pods_have_no_rights_and_one_that_may_go(self):
        (account,) = resources("ServiceAccount", "stepcast-admission")
        self.assertIs(account["automountServiceAccountToken"], False)
        self.assertIs(self.pod["spec"]["automountServiceAccountToken"], False)
        self.assertIs(self.pod["spec"]["securityContext"]["runAsNonRoot"], True)
        self.assertEqual(self.pod["spec"]["securityContext"], pod("shared")["securityContext"])
        self.assertEqual(
            self.container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        )
        self.assertGreaterEqual(self.deployment["spec"]["replicas"], 2)
        self.assertEqual(self.deployment["spec"]["strategy"], {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}})
        for volume in self.pod["spec"]["volumes"]:
            self.assertEqual(volume["secret"]["defaultMode"] & 0o7, 0)

    def test_the_certificates_job_may_do_no_more_than_it_has_to(self):
        rights = component("admission-self-signed", "certificate_rights.yaml")
        rules = [rule for resource in rights for rule in resource.get("rules", [])]
        secret = self.pod["spec"]["volumes"][0]["secret"]["secretName"]
        self.assertEqual(
            [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in rules],
            [
                (["secrets"], [secret], ["get"]),
                (["secrets"], None, ["create"]),
                (["mutatingwebhookconfigurations"], [self.configuration["metadata"]["name"]], ["get", "update"]),
            ],
        )
        (job,) = component("admission-self-signed", "certificate_job.yaml")
        spec = job["spec"]["template"]["spec"]
        self.assertEqual(spec["serviceAccountName"], rights[0]["metadata"]["name"])
        for container in (*spec["initContainers"], *spec["containers"]):
            self.assertIn(f"--secret-name={secret}", container["args"])
            self.assertIs(container["securityContext"]["allowPrivilegeEscalation"], False)


class ProfileSyncTest(unittest.TestCase):
    def test_its_pod_is_let_in_but_is_no_server(self):
        labels = profile_sync()["metadata"]["labels"]
        (policy,) = [policy for policy in resources("NetworkPolicy") if policy["metadata"]["name"] == "stepcast"]
        wanted = policy["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
        self.assertLessEqual(wanted.items(), labels.items())
        for service in resources("Service"):
            self.assertFalse(service["spec"]["selector"].items() <= labels.items())

    def test_its_own_policy_lets_it_ask_names_and_the_server_and_nobody_ask_it(self):
        (policy,) = resources("NetworkPolicy", "stepcast-profile-sync")
        spec = policy["spec"]
        self.assertLessEqual(spec["podSelector"]["matchLabels"].items(), profile_sync()["metadata"]["labels"].items())
        self.assertEqual((sorted(spec["policyTypes"]), spec["ingress"]), (["Egress", "Ingress"], []))
        self.assertEqual([sorted({port["port"] for port in rule["ports"]}) for rule in spec["egress"]], [[53], [50051]])
        ((asked,),) = [rule["to"] for rule in spec["egress"][1:]]
        self.assertEqual(asked, {"podSelector": {"matchLabels": workload("shared")["spec"]["template"]["metadata"]["labels"]}})

    def test_its_pod_has_no_rights_and_bounds(self):
        spec = profile_sync()["spec"]
        (made,) = spec["containers"]
        self.assertIs(spec["automountServiceAccountToken"], False)
        server = {key: value for key, value in pod("embedded")["securityContext"].items() if key != "fsGroupChangePolicy"}
        self.assertEqual(spec["securityContext"], server)
        self.assertEqual(made["securityContext"], container("embedded")["securityContext"])
        self.assertEqual(made["image"], container("embedded")["image"])
        self.assertTrue(all({"cpu", "memory"} <= made["resources"][bound].keys() for bound in ("requests", "limits")))
        self.assertTrue(all(mount["readOnly"] for mount in made["volumeMounts"]))

    def test_it_asks_the_service(self):
        (made,) = profile_sync()["spec"]["containers"]
        (service,) = [service for service in resources("Service") if service["metadata"]["name"] == "stepcast"]
        self.assertEqual({variable["name"]: variable["value"] for variable in made["env"]}, {"STEPCAST_SERVER": f"stepcast:{service['spec']['ports'][0]['port']}"})

    def test_with_tls_it_has_credentials_from_a_secret_that_the_readme_makes(self):
        patch = yaml.safe_load(text("deploy/kubernetes/components/tls/sync_over_tls.yaml"))
        spec = patch["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        (volume,) = spec["volumes"]
        (made,) = spec["containers"]
        (mount,) = made["volumeMounts"]
        self.assertEqual(volume["secret"]["defaultMode"] & 0o7, 0)
        self.assertIn(f"create secret generic {volume['secret']['secretName']} ", text("deploy/docs/kubernetes.md"))
        for variable in made["env"]:
            self.assertEqual(os.path.dirname(variable["value"]), mount["mountPath"])
            self.assertIn(f"--from-file={os.path.basename(variable['value'])}=", text("deploy/docs/kubernetes.md"))


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

    def test_replicas_are_scaled_by_what_waits_in_one_way(self):
        shared = self.kinds(rendered("shared"))
        by_keda = self.kinds(rendered_with("shared", "autoscaling"))
        self.assertEqual(by_keda, sorted([*(kind for kind in shared if kind != "HorizontalPodAutoscaler"), "ScaledObject"]))
        by_adapter = rendered_with("shared", "autoscaling-hpa")
        self.assertEqual(self.kinds(by_adapter), shared)
        (scaler,) = [each for each in by_adapter if each["kind"] == "HorizontalPodAutoscaler"]
        self.assertEqual([metric["type"] for metric in scaler["spec"]["metrics"]], ["Resource", "External", "External", "External"])
        self.assertEqual(scaler["spec"]["maxReplicas"], 12)

    def test_profile_sync_is_added_to_every_overlay_and_has_credentials_with_tls(self):
        for overlay in overlays():
            self.assertEqual(self.kinds(rendered_with(overlay, "profile-sync")), sorted([*self.kinds(rendered(overlay)), "CronJob", "NetworkPolicy"]))
            (made,) = [each for each in rendered_with(overlay, "profile-sync", "tls") if each["kind"] == "CronJob"]
            (program,) = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
            self.assertEqual({variable["name"] for variable in program["env"]}, {"STEPCAST_SERVER", "STEPCAST_TLS_CA", "STEPCAST_TOKEN_FILE"})
            self.assertEqual(program["args"], profile_sync()["spec"]["containers"][0]["args"])

    def test_with_tls_no_overlay_is_open_to_everybody(self):
        for overlay in overlays():
            (made,) = [resource for resource in rendered_with(overlay, "tls") if resource["kind"] == workload(overlay)["kind"]]
            (server,) = made["spec"]["template"]["spec"]["containers"]
            names = {variable["name"] for variable in server["env"]}
            self.assertLessEqual({"STEPCAST_TLS_CERT", "STEPCAST_TLS_KEY", "STEPCAST_TOKENS", "STEPCAST_THREADS"}, names)
            self.assertNotIn("STEPCAST_ALLOW_INSECURE", names)
            self.assertNotIn("--allow-insecure", " ".join(server["args"]))
            self.assertEqual(len(server["volumeMounts"]), len(container(overlay)["volumeMounts"]) + 2)

    def test_with_tls_the_services_do_not_say_clear_text(self):
        for overlay in overlays():
            for components, said in (([], "kubernetes.io/h2c"), (["tls"], "https")):
                services = [resource for resource in rendered_with(overlay, *components) if resource["kind"] == "Service"]
                ports = [port for service in services for port in service["spec"]["ports"]]
                self.assertEqual([port["appProtocol"] for port in ports if port["name"] == "grpc"], [said, said])
                self.assertEqual({port["targetPort"] for port in ports}, {"grpc", "http"})
                self.assertFalse([port for port in ports if port["name"] != "grpc" and "appProtocol" in port])

    def test_kustomizations_of_the_pages_have_all_that_their_pods_need(self):
        for path in ("deploy/docs/kubernetes.md", "deploy/kubernetes/admission/cluster.md"):
            for kustomization in (block for block in printed(path) if "components" in block):
                made = rendered_as(kustomization)
                deployments = {resource["metadata"]["name"]: resource["spec"]["template"]["spec"] for resource in made if resource["kind"] == "Deployment"}
                # Secrets are made by others of these resources, or, as the page says, by the reader.
                makers = str([resource for resource in made if resource["kind"] in ("Certificate", "Job")])
                for spec in deployments.values():
                    for secret in (volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume):
                        self.assertTrue(secret in makers or secret in text("deploy/docs/kubernetes.md"), (path, secret))
                server, webhook = ({variable["name"] for variable in deployments[name]["containers"][0]["env"]} for name in ("stepcast", "stepcast-admission"))
                self.assertEqual("STEPCAST_TLS_CERT" in server, "STEPCAST_SERVER_CA" in webhook, path)

    def test_the_webhook_is_added_with_one_kind_of_certificate(self):
        own = ["Deployment", "MutatingWebhookConfiguration", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount"]
        signed = {
            "admission-self-signed": ["ClusterRole", "ClusterRoleBinding", "Job", "Role", "RoleBinding", "ServiceAccount"],
            "admission-cert-manager": ["Certificate", "Issuer"],
        }
        keys = {"admission-self-signed": ["cert", "key"], "admission-cert-manager": None}
        for overlay in overlays():
            plain = self.kinds(rendered(overlay))
            for name, kinds in signed.items():
                made = rendered_with(overlay, "tls", "admission", "admission-tls", name)
                self.assertEqual(self.kinds(made), sorted([*plain, *own, *kinds]))
                (deployment,) = [resource for resource in made if resource["metadata"]["name"] == "stepcast-admission" and resource["kind"] == "Deployment"]
                spec = deployment["spec"]["template"]["spec"]
                variables = [variable["name"] for variable in spec["containers"][0]["env"]]
                self.assertEqual(len(variables), len(set(variables)))
                self.assertLessEqual({"STEPCAST_SERVER_CA", "STEPCAST_SERVER_TOKEN_FILE", "STEPCAST_WAIT_SECONDS"}, set(variables))
                (tls,) = [volume["secret"] for volume in spec["volumes"] if volume["name"] == "tls"]
                self.assertEqual(tls["defaultMode"] & 0o7, 0)
                self.assertEqual(keys[name], [item["key"] for item in tls["items"]] if "items" in tls else None)
                written = [resource["spec"]["secretName"] for resource in made if resource["kind"] == "Certificate"]
                self.assertIn(tls["secretName"], written or str([resource for resource in made if resource["kind"] == "Job"]))


if __name__ == "__main__":
    unittest.main()
