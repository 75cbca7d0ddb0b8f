"""Who may call what: every method with every kind of credentials, from the server's own table; and what happens when the files change."""

import contextlib
import hashlib
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
import unittest
import warnings

from certificates import Authority
from contract import details_of, grpc
from secured import ROLES, TOKENS, Files, SecuredTest
from stepcastd import PATIENCE_SECONDS, eventually

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "server", "security", "principals.cc")
GET = "stepcast.v1.ProfileService/GetProfile"
DELETE = "stepcast.v1.ProfileService/DeleteProfile"


def methods():
    """method -> access, of the server's table."""
    with open(TABLE, encoding="utf-8") as source:
        rows = dict(re.findall(r'\{"([\w.]+/\w+)", Access::k(\w+)\}', source.read()))
    assert len(rows) > 20, rows
    return rows


def is_allowed(access, role):
    """Whether a caller of that role, None for one that is not known, may call a method of that access."""
    if access == "Anybody":
        return True
    if role is None:
        return False
    return access == "Known" or ROLES.index(access.lower()) <= ROLES.index(role)


def call(channel, method, *authorizations):
    """(code, reason) of a call with one empty message, which every kind of method takes."""
    metadata = [("authorization", each) for each in authorizations]
    stream = channel.stream_stream(f"/{method}")(iter([b""]), metadata=metadata, timeout=PATIENCE_SECONDS)
    try:
        next(stream)
        stream.cancel()
        return grpc.StatusCode.OK, ""
    except StopIteration:
        return grpc.StatusCode.OK, ""
    except grpc.RpcError as error:
        return error.code(), details_of(error).reason


class MatrixTest(SecuredTest):
    """One row a method, one column a kind of credentials."""

    def check(self, columns):
        """columns: heading -> (channel, authorizations, role or None, code of the refused)."""
        matrix, wrong = {}, []
        for method, access in methods().items():
            for heading, (channel, authorizations, role, refused) in columns.items():
                code, _ = call(channel, method, *authorizations)
                matrix[method, heading] = code.name
                if refused == grpc.StatusCode.UNAVAILABLE:
                    good = code == refused
                elif is_allowed(access, role):
                    good = code not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAVAILABLE)
                else:
                    good = code == refused
                if not good:
                    wrong.append((method, heading, code.name))
        print(_text(matrix, list(columns)))
        self.assertEqual(wrong, [])

    def test_every_method_with_every_token(self):
        server = self.start(*self.files.tls(), "--tokens", self.files.tokens)
        channel = self.channel(server)
        clear = grpc.insecure_channel(server.address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.addCleanup(clear.close)
        unknown, low, broken = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAVAILABLE
        self.check(
            {
                "none": (channel, (), None, unknown),
                "wrong token": (channel, ("Bearer a-token-for-the-admim",), None, unknown),
                "not Bearer": (channel, ("Basic YTpi",), None, unknown),
                "two tokens": (channel, tuple(f"Bearer {TOKENS[role]}" for role in ("reader", "admin")), None, unknown),
                **{role: (channel, (f"Bearer {TOKENS[role]}",), role, low) for role in ROLES},
                "in clear": (clear, (f"Bearer {TOKENS['admin']}",), "admin", broken),
            }
        )

    def test_every_method_with_every_certificate(self):
        self.files.write_tokens(TOKENS, certificates=ROLES)
        foreign = Authority(self.files.folder, "foreign")
        server = self.start(*self.files.tls(), "--tls-client-ca", self.files.authority.pair.certificate, "--tokens", self.files.tokens)
        sign = self.files.authority.sign
        by_name = {role: self.channel(server, sign(role, f"{role}.example.com")) for role in ROLES}
        by_alternative = self.channel(server, sign("alternative", "something", "DNS:admin.example.com"))
        stranger = self.channel(server, sign("stranger", "stranger.example.com"))
        expired = self.channel(server, sign("expired", "admin.example.com", end="20200102000000Z"))
        of_another = self.channel(server, foreign.sign("admin", "admin.example.com"))
        unknown, low, broken = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAVAILABLE
        self.check(
            {
                **{role: (by_name[role], (), role, low) for role in ROLES},
                "admin as SAN": (by_alternative, (), "admin", low),
                "stranger": (stranger, (), None, unknown),
                "stranger, token": (stranger, (f"Bearer {TOKENS['reader']}",), "reader", low),
                "admin, bad token": (by_name["admin"], ("Bearer nonsense-nonsense",), None, unknown),
                "expired": (expired, (), "admin", broken),
                "foreign": (of_another, (), "admin", broken),
                "no certificate": (self.channel(server), (), None, broken),
            }
        )

    def test_without_a_list_every_certificate_of_the_authority_may_do_everything(self):
        server = self.start(*self.files.tls(), "--tls-client-ca", self.files.authority.pair.certificate)
        anybody = self.channel(server, self.files.authority.sign("anybody", "anybody"))
        self.check({"any certificate": (anybody, (), "admin", None), "no certificate": (self.channel(server), (), None, grpc.StatusCode.UNAVAILABLE)})


class RefusalTest(SecuredTest):
    def test_refusals_say_why_are_counted_and_are_logged_without_secrets(self):
        server = self.start("--tokens", self.files.tokens)
        guess = "a-guessed-token-that-is-wrong"
        cases = [
            (GET, (), "UNAUTHENTICATED", "CREDENTIALS_MISSING"),
            (GET, ("Basic YTpi",), "UNAUTHENTICATED", "CREDENTIALS_MALFORMED"),
            (GET, (f"Bearer {guess}",), "UNAUTHENTICATED", "TOKEN_UNKNOWN"),
            (DELETE, (f"Bearer {TOKENS['reader']}",), "PERMISSION_DENIED", "ROLE_TOO_LOW"),
        ]
        for method, authorizations, code, reason in cases:
            self.assertEqual(call(server.channel, method, *authorizations), (grpc.StatusCode[code], reason))
            self.assertEqual(server.metric("stepcast_rejections_total", reason=reason), 1)
        self.assertEqual(call(server.channel, "a.b/C"), (grpc.StatusCode.UNAUTHENTICATED, "CREDENTIALS_MISSING"))
        self.assertEqual(call(server.channel, "a.b/C", f"Bearer {TOKENS['reader']}"), (grpc.StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN"))
        log = server.errors()
        self.assertEqual(log.count("call refused"), 5)
        self.assertIn("caller=readers", log)
        for secret in (guess, *TOKENS.values(), *(hashlib.sha256(token.encode()).hexdigest() for token in TOKENS.values())):
            self.assertNotIn(secret, log)

    def test_a_flood_of_refusals_is_counted_whole_and_logged_a_little(self):
        server = self.start("--tokens", self.files.tokens)
        with_time = 300
        for _ in range(with_time):
            call(server.channel, GET)
        self.assertEqual(server.metric("stepcast_rejections_total", reason="CREDENTIALS_MISSING"), with_time)
        self.assertLess(server.errors().count("call refused"), with_time / 2)

    def test_tls_before_1_2_is_refused_and_after_it_is_not(self):
        server = self.start(*self.files.tls())
        host, port = server.address.rsplit(":", 1)
        for version, works in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)):
            context = ssl.create_default_context(cafile=self.files.authority.pair.certificate)
            # A version that this machine's OpenSSL does not offer by itself the server could not refuse.
            context.set_ciphers("ALL:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                context.minimum_version = context.maximum_version = version
            context.set_alpn_protocols(["h2"])
            with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as plain:
                if works:
                    with context.wrap_socket(plain, server_hostname="localhost") as connection:
                        self.assertEqual(connection.selected_alpn_protocol(), "h2")
                else:
                    # Closed by the server; what this machine could not offer would be another error.
                    with self.assertRaises((ssl.SSLZeroReturnError, ssl.SSLEOFError, ConnectionError)):
                        context.wrap_socket(plain, server_hostname="localhost")

    def test_files_that_are_unfit_are_refused_at_start_by_name(self):
        files = self.files
        other = files.authority.sign_server("other")
        expired = files.authority.sign_server("expired", end="20200102000000Z")
        early = files.authority.sign_server("early", begin="20490101000000Z")
        missing, empty = os.path.join(files.folder, "missing"), os.path.join(files.folder, "empty")
        open(empty, "w", encoding="utf-8").close()
        os.chmod(empty, 0o600)
        encrypted = os.path.join(files.folder, "encrypted")
        subprocess.run(["openssl", "ec", "-in", files.server.key, "-aes256", "-passout", "pass:secret", "-out", encrypted], check=True, capture_output=True)
        cases = [
            ((files.server.certificate, other.key), other.key, "not the key"),
            ((expired.certificate, expired.key), expired.certificate, "expired at 2020-01-02"),
            ((early.certificate, early.key), early.certificate, "not valid before 2049-01-01"),
            ((missing, files.server.key), missing, "No such file"),
            ((files.folder, files.server.key), files.folder, "directory"),
            ((empty, files.server.key), empty, "no certificate"),
            ((files.server.certificate, empty), empty, "no private key"),
            ((files.server.certificate, encrypted), encrypted, "encrypted"),
        ]
        for (certificate, key), path, why in cases:
            complaint = self.refusal("--tls-cert", certificate, "--tls-key", key)
            self.assertIn(path, complaint)
            self.assertIn(why, complaint)
        self.assertIn("no certificate", self.refusal(*files.tls(), "--tls-client-ca", empty))

    def test_secrets_that_everybody_may_read_are_refused(self):
        for path, flags in ((self.files.tokens, ["--tokens", self.files.tokens]), (self.files.server.key, self.files.tls())):
            os.chmod(path, 0o604)
            complaint = self.refusal(*flags)
            self.assertIn(path, complaint)
            self.assertIn("every user", complaint)

    def test_beyond_loopback_nothing_is_served_in_clear(self):
        complaint = self.refusal("--listen", "0.0.0.0:0")
        for part in ("0.0.0.0:0", "--tls-cert", "--allow-insecure"):
            self.assertIn(part, complaint)


class ReloadTest(SecuredTest):
    def serial(self, server):
        """What the server shows to a new connection."""
        host, port = server.address.rsplit(":", 1)
        return ssl.get_server_certificate((host, int(port)), timeout=PATIENCE_SECONDS)

    def pem(self, pair):
        with open(pair.certificate, encoding="utf-8") as file:
            return file.read()

    def replace(self, path, source):
        with open(source, encoding="utf-8") as file:
            Files.write(path, file.read())

    def test_new_certificates_serve_new_connections_and_half_new_ones_do_not(self):
        server = self.start(*self.files.tls(), "--tokens", self.files.tokens, "--reload-seconds", "0.2")
        channel = self.channel(server)
        token = f"Bearer {TOKENS['reader']}"
        old, new = self.pem(self.files.server), self.files.authority.sign_server("new")
        self.assertEqual(self.serial(server), old)
        expiry = server.metric("stepcast_tls_certificate_expiry_seconds")
        self.assertEqual(expiry, 2524608000)  # 2050-01-01
        self.replace(self.files.server.certificate, new.certificate)
        eventually(lambda: server.metric("stepcast_reloads_total", outcome="failed") == 1, "the failure is counted")
        self.assertEqual(self.serial(server), old)
        self.assertIn("is not the key of", server.errors())
        self.replace(self.files.server.key, new.key)
        eventually(lambda: self.serial(server) == self.pem(new), "the new certificate is shown")
        self.assertEqual(server.metric("stepcast_reloads_total", outcome="failed"), 1)
        self.assertEqual(server.metric("stepcast_reloads_total", outcome="ok"), 1)
        # The connection there was goes on.
        self.assertEqual(call(channel, GET, token)[0], grpc.StatusCode.INVALID_ARGUMENT)

    def test_a_new_list_counts_at_once_and_a_bad_one_never(self):
        server = self.start("--tokens", self.files.tokens, "--reload-seconds", "0.2")
        old, new = f"Bearer {TOKENS['reader']}", "Bearer the-next-token-of-readers"
        self.assertEqual(call(server.channel, GET, old)[0], grpc.StatusCode.INVALID_ARGUMENT)
        self.files.write(self.files.tokens, "- nonsense\n")
        eventually(lambda: server.metric("stepcast_reloads_total", outcome="failed") == 1, "the failure is counted")
        self.assertEqual(call(server.channel, GET, old)[0], grpc.StatusCode.INVALID_ARGUMENT)
        self.files.write_tokens({"reader": new.removeprefix("Bearer ")})
        eventually(lambda: call(server.channel, GET, new)[0] == grpc.StatusCode.INVALID_ARGUMENT, "the new token is known")
        self.assertEqual(call(server.channel, GET, old), (grpc.StatusCode.UNAUTHENTICATED, "TOKEN_UNKNOWN"))

    def test_a_signal_reads_all_again_or_leaves_all_as_it_was(self):
        config = os.path.join(self.files.folder, "stepcastd.yaml")
        self.files.write(config, "log-level: info\nthreads: 1\n")
        server = self.start("--config", config, "--tokens", self.files.tokens, "--reload-seconds", "0")
        new = "Bearer the-next-token-of-readers"
        self.files.write_tokens({"reader": new.removeprefix("Bearer ")})
        self.files.write(config, "log-level: loud\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: server.metric("stepcast_reloads_total", outcome="failed") == 1, "the failure is counted")
        self.assertEqual(call(server.channel, GET, new)[1], "TOKEN_UNKNOWN")
        self.assertIn("loud", server.errors())
        self.files.write(config, "log-level: error\nthreads: 2\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: server.metric("stepcast_reloads_total", outcome="ok") == 1, "the reload is counted")
        self.assertEqual(call(server.channel, GET, new)[0], grpc.StatusCode.INVALID_ARGUMENT)
        logged = server.errors()
        call(server.channel, GET)
        self.assertEqual(server.errors(), logged)

    def test_settings_that_need_a_restart_are_named(self):
        config = os.path.join(self.files.folder, "stepcastd.yaml")
        self.files.write(config, "threads: 1\nqueue-max: 5\n")
        server = self.start("--config", config)
        self.files.write(config, "threads: 2\nqueue-max: 5\ndrain-timeout: 3\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "wait for a restart" in server.errors(), "the log names them")
        (line,) = [line for line in server.errors().splitlines() if "wait for a restart" in line]
        self.assertTrue(line.endswith("settings=threads"), line)


class EmptyFilesTest(SecuredTest):
    """Files that are there and hold nothing: cut, or not written yet."""

    def test_tokens_that_name_nobody_are_refused_at_start_by_the_check_and_by_a_reload(self):
        for text in ("", "\n", "# - {name: a, role: reader, token: 0123456789abcdef}\n", "[]\n"):
            self.files.write(self.files.tokens, text)
            for flags in (("--tokens", self.files.tokens), ("--check-config", "--tokens", self.files.tokens)):
                self.assertIn(f"{self.files.tokens}: names nobody", self.refusal(*flags), text)
        self.files.write_tokens(TOKENS)
        server = self.start("--tokens", self.files.tokens)
        reader = f"Bearer {TOKENS['reader']}"
        for failures, text in enumerate(("", "# nothing\n"), 1):
            self.files.write(self.files.tokens, text)
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda failures=failures: server.metric("stepcast_reloads_total", outcome="failed") >= failures, "the reload is refused")
            self.assertEqual(call(server.channel, GET, reader)[0], grpc.StatusCode.INVALID_ARGUMENT, "the former token")
            self.assertEqual(call(server.channel, GET)[0], grpc.StatusCode.UNAUTHENTICATED)
        self.assertIn("names nobody", server.errors())

    def test_certificates_keys_and_authorities_that_hold_none_are_refused(self):
        empty = os.path.join(self.files.folder, "empty.pem")
        pair, ca = self.files.server, self.files.authority.pair.certificate
        for text in ("", "# nothing\n"):
            self.files.write(empty, text)
            for cert, key, client_ca in ((empty, pair.key, ca), (pair.certificate, empty, ca), (pair.certificate, pair.key, empty)):
                flags = ("--tls-cert", cert, "--tls-key", key, "--tls-client-ca", client_ca)
                for check in ((), ("--check-config",)):
                    self.assertIn(empty, self.refusal(*check, *flags))


class ProgramTest(SecuredTest):
    """The command line, as a client of a guarded server."""

    def setUp(self):
        super().setUp()
        self.token = os.path.join(self.files.folder, "token")
        self.files.write(self.token, TOKENS["reader"] + "\n")

    def list_profiles(self, address, *flags, **variables):
        command = [os.environ["STEPCAST"], "--server", address, "--timeout", "5s", *flags, "profile", "list", "--output", "json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, env={**os.environ, **variables})

    def test_certificates_and_token_let_it_in(self):
        server = self.start(*self.files.tls(), "--tls-client-ca", self.files.authority.pair.certificate, "--tokens", self.files.tokens)
        mine = self.files.authority.sign("mine", "somebody")
        root = self.files.authority.pair.certificate
        flags = ["--tls-ca", root, "--tls-cert", mine.certificate, "--tls-key", mine.key]
        self.assertEqual(self.list_profiles(server.address, *flags, "--token-file", self.token).returncode, 0)
        self.assertEqual(self.list_profiles(server.address, *flags[2:], STEPCAST_TLS_CA=root, STEPCAST_TOKEN_FILE=self.token).returncode, 0)
        self.assertIn("CERTIFICATE_UNKNOWN", self.list_profiles(server.address, *flags).stderr)
        for wrong in (["--token-file", self.token], ["--tls-ca", root, "--token-file", self.token], ["--tls", *flags[2:], "--token-file", self.token]):
            done = self.list_profiles(server.address, *wrong)
            self.assertEqual(done.returncode, 1, wrong)
            self.assertTrue(done.stderr.startswith("error: FAILED_PRECONDITION: "), done.stderr)  # gRPC's log says nothing

    def test_a_file_without_a_token_is_wrong_usage(self):
        for text in ("", "two tokens", "\x01"):
            self.files.write(self.token, text)
            done = self.list_profiles("127.0.0.1:1", "--token-file", self.token)
            self.assertEqual(done.returncode, 2)
            self.assertIn(self.token, done.stderr)
        self.assertIn("there is no such file", self.list_profiles("127.0.0.1:1", "--token-file", os.path.join(self.files.folder, "missing")).stderr)

    def test_a_token_goes_in_clear_to_this_machine_only(self):
        server = self.start("--tokens", self.files.tokens)
        self.assertEqual(self.list_profiles(server.address, "--token-file", self.token).returncode, 0)
        address = _address_beyond_loopback()
        if address is None:
            self.skipTest("this machine has no address but loopback's")
        with socket.create_server((address, 0)) as listener:
            heard = []

            def listen():
                # Until the listener is shut.
                with contextlib.suppress(OSError):
                    while True:
                        connection, _ = listener.accept()
                        connection.settimeout(PATIENCE_SECONDS)
                        with connection, contextlib.suppress(OSError):
                            while text := connection.recv(65536):
                                heard.append(text)

            thread = threading.Thread(target=listen, daemon=True)
            thread.start()
            done = self.list_profiles(f"{address}:{listener.getsockname()[1]}", "--token-file", self.token)
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE_SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn(TOKENS["reader"].encode(), b"".join(heard))


def _address_beyond_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing; says which address would be used.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def _text(matrix, headings):
    """The codes, shortened: a row a method."""
    short = {"UNAUTHENTICATED": "unauthenticated", "PERMISSION_DENIED": "denied", "UNAVAILABLE": "no connection"}
    rows = sorted({method for method, _ in matrix})
    widths = [max(len(heading), 15) for heading in headings]
    lines = ["", " " * 62 + "  ".join(heading.ljust(width) for heading, width in zip(headings, widths))]
    for method in rows:
        cells = (short.get(matrix[method, heading], "in: " + matrix[method, heading].lower())[:width].ljust(width) for heading, width in zip(headings, widths))
        lines.append(method.ljust(62) + "  ".join(cells))
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    unittest.main()
