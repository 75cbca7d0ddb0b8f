"""Servers that ask who calls, and what their tests give to callers."""

import hashlib
import os
import subprocess
import tempfile
import unittest

from certificates import Authority
from contract import grpc
from stepcastd import PATIENCE_SECONDS, Server

ROLES = ("reader", "writer", "admin")
TOKENS = {role: f"a-token-for-the-{role}" for role in ROLES}


class Files:
    """What one test's servers and clients are given."""

    def __init__(self, test):
        folder = tempfile.TemporaryDirectory(prefix="stepcast-security-")
        test.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.authority = Authority(self.folder, "authority")
        self.server = self.authority.sign_server()
        self.tokens = os.path.join(self.folder, "tokens.yaml")
        self.write_tokens(TOKENS)

    def write_tokens(self, tokens, certificates=()):
        lines = [f"- {{name: {role}s, role: {role}, sha256: {hashlib.sha256(token.encode()).hexdigest()}}}" for role, token in tokens.items()]
        lines += [f"- {{name: {role}s-machine, role: {role}, certificate: {role}.example.com}}" for role in certificates]
        self.write(self.tokens, "\n".join(lines) + "\n")

    @staticmethod
    def write(path, text):
        # At one instant, as whoever changes such files should.
        with open(os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.new", path)

    def tls(self):
        return ["--tls-cert", self.server.certificate, "--tls-key", self.server.key]


class SecuredTest(unittest.TestCase):
    def setUp(self):
        self.files = Files(self)

    def start(self, *flags):
        server = Server("--store", "memory", *flags)
        self.addCleanup(lambda: self.assertEqual(server.close(), 0))
        return server

    def channel(self, server, pair=None, root=None):
        key, certificate = pair.bytes() if pair else (None, None)
        credentials = grpc.ssl_channel_credentials(root or self.files.authority.root(), key, certificate)
        channel = grpc.secure_channel(server.address, credentials, options=[("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(channel.close)
        return channel

    def refusal(self, *flags):
        address = [] if "--listen" in flags else ["--listen", "127.0.0.1:0"]
        command = [os.environ["STEPCASTD"], *address, "--http-listen", "none", "--store", "memory", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        return done.stderr
