"""The real stepcast-admission as a process, called over TLS as an API server calls it."""

import base64
import http.client
import json
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from certificates import Authority  # noqa: E402
from stepcastd import PATIENCE_SECONDS, fetch, pass_on, samples  # noqa: E402


class Webhook:
    """A webhook with certificate and key below `folder`, signed by `authority`; always ended by close()."""

    def __init__(self, folder, server, *flags, wait="30", authority=None, check=True):
        self.folder = folder
        self.authority = authority or Authority(folder, "webhook-authority")
        self.certificate = os.path.join(folder, "webhook.crt")
        self.key = os.path.join(folder, "webhook.key")
        self.use(self.authority.sign_server("first"))
        self.log = os.path.join(folder, "webhook.log")
        command = [os.environ["STEPCAST_ADMISSION"], "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]
        command += ["--tls-cert", self.certificate, "--tls-key", self.key, "--server", server, "--wait-seconds", wait, *flags]
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True)
        lines = queue.Queue()
        threading.Thread(target=pass_on, args=(self.process.stdout, lines), daemon=True).start()
        self.address = self._await(lines, "listening https ")
        self.http_address = self._await(lines, "listening http ")

    def _await(self, lines, prefix):
        line = lines.get(timeout=PATIENCE_SECONDS)
        if line is None or not line.startswith(prefix):
            raise AssertionError(f"not `{prefix}` but {line}:\n{self.errors()}")
        return line[len(prefix) :]

    def use(self, pair):
        """Puts another certificate and its key in the place of those there are, as a secret's volume does."""
        for path, source in ((self.certificate, pair.certificate), (self.key, pair.key)):
            with open(source, "rb") as file, open(os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as new:
                new.write(file.read())
            os.replace(f"{path}.new", path)

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def errors(self):
        with open(self.log, encoding="utf-8", errors="replace") as errors:
            return errors.read()

    def context(self, root=None, pair=None):
        context = ssl.create_default_context(cafile=root or self.authority.pair.certificate)
        if pair:
            context.load_cert_chain(pair.certificate, pair.key)
        return context

    def request(self, method, path, body=None, headers=None, context=None, timeout=PATIENCE_SECONDS):
        """(status, headers, bytes)."""
        host, _, port = self.address.rpartition(":")
        connection = http.client.HTTPSConnection(host, int(port), timeout=timeout, context=context or self.context())
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def review(self, review, **options):
        """The response to a review, with its patch as a list of operations (none: empty)."""
        status, _, body = self.request("POST", "/admit?timeout=2s", json.dumps(review).encode(), **options)
        if status != 200:
            raise AssertionError(f"{status}: {body}")
        answer = json.loads(body)
        assert (answer["apiVersion"], answer["kind"]) == (review["apiVersion"], "AdmissionReview"), answer
        response = answer["response"]
        patch = json.loads(base64.b64decode(response.pop("patch"), validate=True)) if "patch" in response else []
        assert (response.pop("patchType", None) == "JSONPatch") == bool(patch), response
        return {"warnings": [], **response, "patch": patch}

    def page(self, path):
        return fetch(self.http_address, path)

    def metric(self, name, **labels):
        return sum(float(value) for series, own, value in samples(self.page("/metrics")[1]) if series == name and labels.items() <= own.items())

    def close(self):
        """Stops it and returns its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.process.stdout.close()
