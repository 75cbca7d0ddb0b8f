"""What the command line says to each mistake with TLS, certificates and tokens: never that the server may not run, always what to set."""

import http.server
import os
import socket
import ssl
import subprocess
import threading
import unittest

from certificates import Authority
from secured import TOKENS, SecuredTest
from stepcastd import PATIENCE_SECONDS, Server

RUNNING = "is the server running?"


class MistakesTest(SecuredTest):
    def complaint(self, address, *flags, status=1):
        done = subprocess.run(
            [os.environ["STEPCAST"], "--server", address, *flags, "profile", "list"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def says(self, reason, hint, address, *flags):
        errors = self.complaint(address, *flags)
        self.assertIn(reason, errors)
        self.assertIn(hint, errors.split("hint: ")[1])
        self.assertNotIn(RUNNING, errors)
        return errors

    def ca(self, authority=None):
        return ["--tls-ca", (authority or self.files.authority).pair.certificate]

    def token(self, text):
        path = os.path.join(self.files.folder, "token")
        self.files.write(path, text)
        return ["--token-file", path]

    def test_one_speaks_tls_and_the_other_does_not(self):
        over_tls, in_clear = self.start(*self.files.tls()), self.start()
        self.says("SERVER_SPEAKS_TLS", "--tls", over_tls.address)
        self.says("SERVER_SPEAKS_TLS", "--tls", over_tls.address, *self.token(TOKENS["reader"]))
        for flags in (["--tls"], self.ca()):
            self.says("SERVER_SPEAKS_NO_TLS", "leave out --tls", in_clear.address, *flags)
        self.says("SERVER_SPEAKS_NO_GRPC", "--server", in_clear.http_address)
        self.assertEqual(self.complaint(over_tls.address, *self.ca(), status=0), "")
        self.assertEqual(self.complaint(in_clear.address, status=0), "")

    def test_the_server_s_certificate_is_another_one(self):
        server = self.start(*self.files.tls())
        for flags in (["--tls"], self.ca(Authority(self.files.folder, "foreign"))):
            errors = self.says("SERVER_CERTIFICATE_UNTRUSTED", "--tls-ca FILE", server.address, *flags)
            self.assertIn("CN=authority", errors)
        self.files.server = self.files.authority.sign("elsewhere", "elsewhere", "DNS:elsewhere.example.com", "IP:192.0.2.1")
        errors = self.says("SERVER_NAME_MISMATCH", "--server NAME:PORT", self.start(*self.files.tls()).address, *self.ca())
        self.assertIn("is for elsewhere.example.com, 192.0.2.1, not for 127.0.0.1", errors)

    def test_the_server_s_certificate_is_out_of_date(self):
        self.files.server = self.files.authority.sign_server("soon", end="20500101000000Z")
        server = self.start(*self.files.tls())
        # The server refuses one that has expired; one that will be good is another's, on a clock of its own.
        future = self.files.authority.sign_server("future", begin="20400101000000Z")
        with _TlsServer(future) as address:
            self.says("SERVER_CERTIFICATE_EXPIRED", "renew", address, *self.ca())
        self.assertEqual(self.complaint(server.address, *self.ca(), status=0), "")

    def test_the_client_s_certificate_is_missing_or_another_one(self):
        server = self.start(*self.files.tls(), "--tls-client-ca", self.files.authority.pair.certificate)
        self.says("CLIENT_CERTIFICATE_MISSING", "--tls-cert FILE and --tls-key FILE", server.address, *self.ca())
        for pair in (Authority(self.files.folder, "foreign").sign("a", "a"), self.files.authority.sign("b", "b", end="20200102000000Z")):
            self.says("CLIENT_CERTIFICATE_REFUSED", "--tls-client-ca", server.address, *self.ca(), "--tls-cert", pair.certificate, "--tls-key", pair.key)
        good, other = self.files.authority.sign("c", "c"), self.files.authority.sign("d", "d")
        self.says("CLIENT_CREDENTIALS_INVALID", "PEM", server.address, *self.ca(), "--tls-cert", good.certificate, "--tls-key", other.key)
        self.assertEqual(self.complaint(server.address, *self.ca(), "--tls-cert", good.certificate, "--tls-key", good.key, status=0), "")

    def test_a_token_is_missing_unknown_or_would_leave_in_clear(self):
        server = self.start("--tokens", self.files.tokens)
        self.says("CREDENTIALS_MISSING", "--token-file FILE", server.address)
        self.says("TOKEN_UNKNOWN", "--token-file FILE", server.address, *self.token("another-token-of-nobody"))
        host = _own_address()
        if host is None:
            self.skipTest("this machine has no address but loopback")

        class Reachable(Server):
            listen = f"{host}:0"

        server = Reachable("--store", "memory", "--allow-insecure", "--tokens", self.files.tokens)
        self.addCleanup(lambda: self.assertEqual(server.close(), 0))
        self.says("TOKEN_NEEDS_TLS", "--tls", server.address, *self.token(TOKENS["reader"]))

    def test_files_that_hold_nothing_are_refused_before_anything_is_said(self):
        empty = os.path.join(self.files.folder, "empty")
        self.files.write(empty, "")
        pair = self.files.server
        for flags in (["--tls-ca", empty], ["--tls-cert", empty, "--tls-key", pair.key], ["--tls-cert", pair.certificate, "--tls-key", empty], ["--token-file", empty]):
            self.assertIn(empty, self.complaint("127.0.0.1:1", *flags, status=2))

    def test_nobody_is_there(self):
        errors = self.complaint("127.0.0.1:1")
        self.assertIn("SERVER_UNREACHABLE: no server answers at 127.0.0.1:1: Connection refused", errors)
        self.assertIn(RUNNING, errors)
        self.assertIn(RUNNING, self.complaint("nobody.invalid:50051"))


class _TlsServer:
    """Anything over TLS, with that pair; its address."""

    def __init__(self, pair):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        context.set_alpn_protocols(["h2"])
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def _own_address():
    """An address of this machine that is not its loopback's; None: there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


if __name__ == "__main__":
    unittest.main()
