"""A small stand-in for Kubernetes' API server, over TLS: discovery, and POST and GET of the kinds that a MutatingWebhookConfiguration names.

It does with such a configuration what the real one does: rules, objectSelector, timeoutSeconds, failurePolicy, the patch, and `Warning: 299` headers.
"""

import base64
import copy
import http.client
import http.server
import json
import re
import ssl
import threading
import urllib.parse
import uuid

KINDS = {
    ("batch", "v1", "jobs"): "Job",
    ("kubeflow.org", "v1", "pytorchjobs"): "PyTorchJob",
    ("kubeflow.org", "v2beta1", "mpijobs"): "MPIJob",
    ("trainer.kubeflow.org", "v1alpha1", "trainjobs"): "TrainJob",
    ("jobset.x-k8s.io", "v1alpha2", "jobsets"): "JobSet",
}


class ApiServer:
    """`webhook`: one of a MutatingWebhookConfiguration; `address`: where its service is reached; `authority`: the path of its caBundle."""

    def __init__(self, pair, webhook, address, authority):
        self.webhook, self.address, self.authority = webhook, address, authority
        self.objects = {}
        self.calls = []  # what became of each call of the webhook
        handler = type("Handler", (_Handler,), {"api": self})
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def admit(self, group, version, plural, new, dry_run):
        """(the object as the webhook leaves it, warnings); raises PermissionError where it is refused."""
        kind = {"group": group, "version": version, "kind": KINDS[group, version, plural]}
        resource = {"group": group, "version": version, "resource": plural}
        fits = any(
            set(rule["apiGroups"]) & {group, "*"} and set(rule["apiVersions"]) & {version, "*"} and plural in rule["resources"] and "CREATE" in rule["operations"]
            for rule in self.webhook["rules"]
        )
        labels = new["metadata"].get("labels") or {}
        if not fits or not all(expression["key"] in labels for expression in self.webhook["objectSelector"]["matchExpressions"]):
            return new, []
        request = {
            "uid": str(uuid.uuid4()),
            **{"kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource},
            "name": new["metadata"].get("name", ""),
            "namespace": new["metadata"]["namespace"],
            "operation": "CREATE",
            "userInfo": {"username": "ada"},
            **{"object": new, "oldObject": None, "dryRun": dry_run, "options": {}},
        }
        try:
            answer = self._call({"apiVersion": f"admission.k8s.io/{self.webhook['admissionReviewVersions'][0]}", "kind": "AdmissionReview", "request": request})
            response = answer["response"]
            if response["uid"] != request["uid"]:
                raise OSError("the answer is to another review")
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            self.calls.append(repr(error))
            if self.webhook["failurePolicy"] == "Ignore":
                return new, []
            raise PermissionError(str(error)) from error
        self.calls.append("answered")
        if not response["allowed"]:
            raise PermissionError(response["status"]["message"])
        made = copy.deepcopy(new)
        if "patch" in response:
            for operation in json.loads(base64.b64decode(response["patch"])):
                _add(made, operation)
        return made, response.get("warnings", [])

    def _call(self, review):
        host, _, port = self.address.rpartition(":")
        seconds = self.webhook["timeoutSeconds"]
        context = ssl.create_default_context(cafile=self.authority)
        connection = http.client.HTTPSConnection(host, int(port), timeout=seconds, context=context)
        try:
            path = f"{self.webhook['clientConfig']['service']['path']}?timeout={seconds}s"
            connection.request("POST", path, json.dumps(review), {"Content-Type": "application/json", "Accept": "application/json, */*"})
            reply = connection.getresponse()
            body = reply.read()
            if reply.status != 200:
                raise OSError(f"status {reply.status}: {body!r}")
            return json.loads(body)
        finally:
            connection.close()


def _add(target, operation):
    """An `add` of RFC 6902 to members of objects, which is all that the webhook's patches need."""
    if operation["op"] != "add":
        raise ValueError(operation)
    *above, last = [key.replace("~1", "/").replace("~0", "~") for key in operation["path"].split("/")[1:]]
    for key in above:
        target = target[int(key)] if isinstance(target, list) else target[key]
    target[last] = operation["value"]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api = None

    def log_message(self, format, *arguments):
        pass

    def reply(self, code, body, warnings=()):
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for warning in warnings:
            escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
            self.send_header("Warning", f'299 - "{escaped}"')
        self.end_headers()
        self.wfile.write(text)

    def status(self, code, reason, message):
        self.reply(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})

    def target(self):
        """(group, version, plural, namespace, name) of a path of objects, or None."""
        path = urllib.parse.urlsplit(self.path).path
        match = re.fullmatch(r"/apis/([^/]+)/([^/]+)/namespaces/([^/]+)/([^/]+)(?:/([^/]+))?", path)
        return (match[1], match[2], match[4], match[3], match[5]) if match and (match[1], match[2], match[4]) in KINDS else None

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path.rstrip("/")
        groups = {}
        for group, version, plural in KINDS:
            groups.setdefault(group, {}).setdefault(version, []).append(plural)
        if path == "/version":
            return self.reply(200, {"major": "1", "minor": "32", "gitVersion": "v1.32.0"})
        if path == "/api":
            return self.reply(200, {"kind": "APIVersions", "versions": ["v1"]})
        if path == "/api/v1":
            return self.reply(200, {"kind": "APIResourceList", "groupVersion": "v1", "resources": []})
        if path == "/apis":
            listed = []
            for group, versions in groups.items():
                named = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
                listed.append({"name": group, "versions": named, "preferredVersion": named[0]})
            return self.reply(200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})
        match = re.fullmatch(r"/apis/([^/]+)/([^/]+)", path)
        if match and match[2] in groups.get(match[1], {}):
            found = [
                {"name": plural, "singularName": plural[:-1], "namespaced": True, "kind": KINDS[match[1], match[2], plural], "verbs": ["create", "get"]}
                for plural in groups[match[1]][match[2]]
            ]
            return self.reply(200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{match[1]}/{match[2]}", "resources": found})
        target = self.target()
        if target in self.api.objects:
            return self.reply(200, self.api.objects[target])
        return self.status(404, "NotFound", f"{path} is not here")

    def do_POST(self):
        new = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        target = self.target()
        if target is None:
            return self.status(404, "NotFound", f"{self.path} is not here")
        group, version, plural, namespace, _ = target
        dry_run = "All" in urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("dryRun", [])
        new["metadata"].setdefault("namespace", namespace)
        new["metadata"].setdefault("name", new["metadata"].get("generateName", "") + "x7k2p")
        try:
            made, warnings = self.api.admit(group, version, plural, new, dry_run)
        except PermissionError as error:
            return self.status(403, "Forbidden", str(error))
        if not dry_run:
            self.api.objects[group, version, plural, namespace, made["metadata"]["name"]] = made
        return self.reply(201, made, warnings)
