"""The real server as a process: started on free ports with a data directory of its own, and always ended."""

import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

from contract import grpc, health_pb2_grpc, prediction_grpc, store_grpc
from patience import PATIENCE_SECONDS, eventually  # noqa: F401  # tests take `eventually` from here

_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Server:
    """Clients of it: profiles, predictions, health. It may be killed and started again on the same data."""

    listen = "127.0.0.1:0"

    def __init__(self, *flags):
        self.flags = flags
        self.folder = tempfile.mkdtemp(prefix="stepcast-e2e-")
        self.process = None
        self.start()

    def start(self):
        with open(os.path.join(self.folder, "stderr"), "ab") as errors:
            self.process = subprocess.Popen(
                [os.environ["STEPCASTD"], "--listen", self.listen, "--http-listen", "127.0.0.1:0", "--data-dir", os.path.join(self.folder, "data"), *self.flags],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        lines = queue.Queue()
        threading.Thread(target=pass_on, args=(self.process.stdout, lines), daemon=True).start()
        self.address = _await_line(lines, "listening grpc ", self)
        self.http_address = _await_line(lines, "listening http ", self)
        self.channel = self.new_channel()
        self.profiles = store_grpc.ProfileServiceStub(self.channel)
        self.predictions = prediction_grpc.PredictionServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def new_channel(self, **options):
        # Of its own: channels of one process share their connection to an address otherwise.
        return grpc.insecure_channel(
            self.address, options=[("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1), *options.items()]
        )

    def kill(self):
        """As a power cut would, but for what the operating system still holds."""
        self.process.kill()
        self._reap()

    def terminate(self):
        """Asks it to stop; `wait` tells how it did."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self):
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def close(self):
        """Stops it and returns its exit status."""
        # First, because an idle client answers the server's farewell only every five seconds.
        self.channel.close()
        if self.process.poll() is None:
            self.terminate()
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
        status = self._reap()
        shutil.rmtree(self.folder)
        return status

    def _reap(self):
        status = self.process.wait()
        self.process.stdout.close()
        self.channel.close()
        return status

    def errors(self):
        with open(os.path.join(self.folder, "stderr"), encoding="utf-8", errors="replace") as errors:
            return errors.read()

    def http(self, path):
        """(status, text) of a GET."""
        return fetch(self.http_address, path)

    def metric(self, name, **labels):
        """The sum of a metric's series that have these labels."""
        return sum(
            float(value)
            for series, series_labels, value in samples(self.http("/metrics")[1])
            if series == name and labels.items() <= series_labels.items()
        )

    def metric_after_calls(self, name, **labels):
        """The same once all calls have ended: gRPC counts a call's end after its reply has left, which a client may have sooner."""
        eventually(lambda: self.metric("grpc_server_started_total") == self.metric("grpc_server_handled_total"), "every call has an end")
        return self.metric(name, **labels)


def fetch(address, path):
    """(status, text) of a GET, past any proxy."""
    try:
        with _NO_PROXY.open(f"http://{address}{path}", timeout=PATIENCE_SECONDS) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(text):
    """(name, labels, value) of each line of a Prometheus exposition."""
    for line in text.splitlines():
        match = re.fullmatch(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
        if match:
            yield match[1], dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or "")), match[3]


def pass_on(stream, lines):
    """Puts each line of a stream into a queue, and None at its end."""
    try:
        for line in stream:
            lines.put(line.rstrip("\n"))
    except ValueError:
        pass  # closed under us
    lines.put(None)


def _await_line(lines, prefix, server):
    while True:
        line = lines.get(timeout=PATIENCE_SECONDS)
        if line is None:
            raise AssertionError(f"the server ended with status {server.process.wait()} before it printed `{prefix}`:\n{server.errors()}")
        if line.startswith(prefix):
            return line[len(prefix) :]


class ServerTest(unittest.TestCase):
    """A test with a server of its own, in `self.server`. That it ends with status 0 afterwards is part of every test."""

    flags = ()

    def setUp(self):
        self.server = Server(*self.flags)
        self.addCleanup(self._close)

    def _close(self):
        errors = self.server.errors()
        status = self.server.close()
        self.assertEqual(status, 0, errors)
