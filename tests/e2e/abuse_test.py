"""Clients that mean harm: others are answered meanwhile, and memory stays bounded."""

import contextlib
import random
import re
import resource
import socket
import struct
import unittest

from contract import details_of, grpc, prediction, store, trace_pb2
from sample import message, small
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

MIB = 2**20
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags=0, stream=0, payload=b"", length=None):
    """An HTTP/2 frame; `length` lies about its payload."""
    return struct.pack(">I", len(payload) if length is None else length)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """A header that no table keeps, in HPACK."""
    return b"\x00" + _integer(len(name)) + name + _integer(len(value)) + value


def _integer(value):
    if value < 127:
        return bytes([value])
    out, value = b"\x7f", value - 127
    while value >= 128:
        out, value = out + bytes([value % 128 + 128]), value // 128
    return out + bytes([value])


def _integer_of_protobuf(value):
    out = b""
    while value >= 128:
        out, value = out + bytes([value % 128 + 128]), value // 128
    return out + bytes([value])


REQUEST = b"".join(
    literal(name, value)
    for name, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/stepcast.v1.ProfileService/ListProfiles"),
        (b":authority", b"localhost"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    )
)


class AbuseTest(ServerTest):
    flags = ("--store", "memory")

    def setUp(self):
        super().setUp()
        self.request = prediction.PredictThroughputRequest(inline_profile=message(small()), worker_counts=[2])
        self.connections = []
        self.addCleanup(lambda: [connection.close() for connection in self.connections])
        self.assert_answered()
        self.before = self.peak_bytes()
        self.descriptors = self.server.metric("process_open_fds")

    def connect(self, *sent):
        host, port = self.server.address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
        self.connections.append(connection)
        for part in sent:
            connection.sendall(part)
        return connection

    def assert_answered(self):
        """Somebody else, on a new connection, gets the usual answer."""
        channel = self.server.new_channel()
        try:
            raw = channel.unary_unary(
                "/stepcast.v1.PredictionService/PredictThroughput",
                request_serializer=prediction.PredictThroughputRequest.SerializeToString,
                response_deserializer=prediction.PredictThroughputResponse.FromString,
            )
            self.assertEqual(raw(self.request, timeout=PATIENCE_SECONDS).predictions[0].scenario.workers, 2)
        finally:
            channel.close()

    def peak_bytes(self):
        """The most memory the server ever had."""
        with open(f"/proc/{self.server.process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"^VmHWM:\s*(\d+) kB", status.read(), re.M)[1]) * 1024

    def assert_grown_less_than(self, most):
        self.assertLess(self.peak_bytes() - self.before, most)

    def test_bytes_that_trickle_hold_nobody_up(self):
        beginnings = [PREFACE, PREFACE + frame(SETTINGS) + frame(HEADERS, END_HEADERS, 1, REQUEST), PREFACE + frame(SETTINGS) + frame(DATA, 0, 1, b"", 16000) + b"x" * 100]
        trickles = [(self.connect(), beginnings[at % len(beginnings)]) for at in range(300)]
        for at in range(60):
            for connection, text in trickles:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(text[at : at + 1])
            if at % 6 == 0:
                self.assert_answered()
        self.assert_grown_less_than(64 * MIB)

    def test_thousands_of_idle_connections_are_cheap(self):
        most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        count = min(10_000, most_files - 500)
        for at in range(count):
            # A client that has begun as it should; those that have not are closed soon.
            self.connect(PREFACE + frame(SETTINGS))
            if at % 2000 == 0:
                self.assert_answered()
        eventually(lambda: self.server.metric("process_open_fds") >= count, "all are accepted")
        self.assert_answered()
        grown = self.peak_bytes() - self.before
        print(f"\n{count} idle connections, of at most {most_files} open files: {grown / count / 1024:.1f} KiB each")
        self.assertLess(grown / count, 64 * 1024)
        for connection in self.connections:
            connection.close()
        eventually(lambda: self.server.metric("process_open_fds") < self.descriptors + 100, "all are closed")

    def test_more_connections_than_descriptors_end_nothing_but_connections(self):
        _, hard = resource.prlimit(self.server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.server.process.pid, resource.RLIMIT_NOFILE, (150, hard))
        known = self.server.channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(known(b"", timeout=PATIENCE_SECONDS), b"\x08\x01")
        for _ in range(3):
            for _ in range(400):
                with contextlib.suppress(ConnectionError):
                    self.connect(PREFACE + frame(SETTINGS))
            self.assertEqual(known(b"", timeout=PATIENCE_SECONDS), b"\x08\x01")
            while self.connections:
                self.connections.pop().close()
            # gRPC's client waits longer from time to time.
            eventually(self.is_answered, "somebody else is answered again")

    def is_answered(self):
        try:
            self.assert_answered()
            return True
        except grpc.RpcError:
            return False

    def test_connections_that_never_speak_are_closed(self):
        silent, half = self.connect(), self.connect(PREFACE[:10])
        for connection in (silent, half):
            connection.settimeout(PATIENCE_SECONDS)
            with contextlib.suppress(ConnectionError):
                while connection.recv(4096):
                    pass

    def test_giant_headers_are_refused(self):
        for metadata in ([("x-giant", "a" * 100_000)], [(f"x-{at}", "a" * 100) for at in range(1000)]):
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.profiles.ListProfiles(store.ListProfilesRequest(), metadata=metadata, timeout=PATIENCE_SECONDS)
            # Many small ones may find the connection closed before all are sent.
            self.assertIn(raised.exception.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE))
        self.assert_answered()

    def test_headers_without_an_end_hold_memory_only_while_their_connection_lasts(self):
        # gRPC 1.51 keeps what is sent until then, and at times notices the end only by its keepalive (server/docs/troubleshooting.md).
        piece = frame(CONTINUATION, 0, 1, literal(b"x-more", b"a" * 16_000))
        count, rounds = 1000, 20
        for _ in range(rounds):
            connection = self.connect(PREFACE + frame(SETTINGS) + frame(HEADERS, 0, 1, REQUEST))
            with contextlib.suppress(ConnectionError):
                for at in range(count):
                    connection.sendall(piece)
                    if at % 500 == 0:
                        self.assert_answered()
            connection.close()
            self.assert_answered()
        eventually(lambda: self.server.metric("process_open_fds") <= self.descriptors + rounds / 2, "most connections are gone")
        self.assert_grown_less_than(0.6 * rounds * count * len(piece))

    def test_compressed_bombs_are_refused_before_they_are_inflated(self):
        bomb = bytes(300 * MIB)
        for algorithm in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.channel.unary_unary("/stepcast.v1.ProfileService/CreateProfile")(bomb, compression=algorithm, timeout=PATIENCE_SECONDS)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assert_answered()
        self.assert_grown_less_than(32 * MIB)

    def test_messages_of_two_bytes_that_take_hundreds_are_refused_before_they_are_read(self):
        # Operations with nothing in them, as a request, and as an upload in each encoding; then numbers of one byte.
        raw = {"request_serializer": None, "response_deserializer": None}
        upload = self.server.channel.stream_unary("/stepcast.v1.ProfileService/UploadProfile", **raw)
        binary, text, json = (getattr(store.UploadProfileRequest, name) for name in ("BINARY", "TEXT", "JSON"))
        numbers = b"\x0a" + _integer_of_protobuf(100 * MIB) + bytes(100 * MIB)
        floods = [
            (binary, b"\x4a\x00" * (60 * MIB)),
            (text, b"operations{}" * (10 * MIB)),
            (json, b'{"operations":[' + b"{}," * (30 * MIB) + b"{}]}"),
            (binary, (b"\x52" + _integer_of_protobuf(len(numbers)) + numbers) * 3),
        ]
        request = b"\x4a\x00" * (30 * MIB)
        calls = [lambda: self.server.channel.unary_unary("/stepcast.v1.ProfileService/CreateProfile", **raw)(b"\x0a" + _integer_of_protobuf(len(request)) + request, timeout=PATIENCE_SECONDS)]
        for encoding, content in floods:
            parts = [store.UploadProfileRequest(header=store.UploadProfileRequest.Header(encoding=encoding))]
            parts += [store.UploadProfileRequest(chunk=content[at : at + 8 * MIB]) for at in range(0, len(content), 8 * MIB)]
            calls.append(lambda parts=parts: upload((part.SerializeToString() for part in parts), timeout=PATIENCE_SECONDS))
        for call in calls:
            with self.assertRaises(grpc.RpcError) as raised:
                call()
            self.assertEqual((raised.exception.code(), details_of(raised.exception).reason), (grpc.StatusCode.INVALID_ARGUMENT, "MESSAGE_TOO_LARGE"))
            self.assert_answered()
        self.assert_grown_less_than(1024 * MIB)

    def test_a_field_that_is_not_known_is_refused_by_every_method(self):
        # A newer client's question, that an older server would answer as if it had not asked it.
        newer = b"\xb8\xab\x07\x01"  # field 15,031
        services = [module.DESCRIPTOR.services_by_name[name] for module, name in ((trace_pb2, "PredictionService"), (store, "ProfileService"))]
        methods = [method for service in services for method in service.methods]
        self.assertGreater(len(methods), 15)
        for method in methods:
            path = f"/{method.containing_service.full_name}/{method.name}"
            with self.subTest(path), self.assertRaises(grpc.RpcError) as raised:
                if method.client_streaming:
                    self.server.channel.stream_unary(path)(iter([newer]), timeout=PATIENCE_SECONDS)
                elif method.server_streaming:
                    list(self.server.channel.unary_stream(path)(newer, timeout=PATIENCE_SECONDS))
                else:
                    self.server.channel.unary_unary(path)(newer, timeout=PATIENCE_SECONDS)
            self.assertEqual((raised.exception.code(), details_of(raised.exception).reason), (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_INVALID"))
            self.assertIn(f"field 15031 of {method.input_type.full_name} is not known", raised.exception.details())

    def test_deep_nests_are_malformed_and_nothing_worse(self):
        # Groups that no message knows, one in the other; then lists in lists.
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.channel.unary_unary("/stepcast.v1.ProfileService/CreateProfile")(b"\x7b" * 1_000_000, timeout=PATIENCE_SECONDS)
        self.assertEqual(details_of(raised.exception).reason, "REQUEST_MALFORMED")
        for text in (b"[" * 1_000_000, b'{"operations":' * 100_000):
            header = store.UploadProfileRequest.Header(encoding=store.UploadProfileRequest.JSON)
            parts = [store.UploadProfileRequest(header=header), store.UploadProfileRequest(chunk=text)]
            with self.assertRaises(grpc.RpcError) as raised:
                self.server.profiles.UploadProfile(iter(parts), timeout=PATIENCE_SECONDS)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assert_answered()
        self.assert_grown_less_than(128 * MIB)

    def test_bytes_that_are_no_http2_end_their_own_connection_only(self):
        chance = random.Random(7)
        good = PREFACE + frame(SETTINGS)
        bad = [b"GET / HTTP/1.1\r\n\r\n", PREFACE + b"\xff" * 100]
        bad += [good + frame(kind, flags, stream, b"x" * size, length) for kind in range(12) for flags, stream, size, length in ((0xFF, 0, 3, None), (0, 2, 0, None), (0, 1, 5, 0xFFFFFF))]
        bad += [good + frame(HEADERS, END_HEADERS, 1, chance.randbytes(chance.randrange(1, 200))) for _ in range(100)]
        bad += [good + chance.randbytes(chance.randrange(1, 3000)) for _ in range(200)]
        for at, text in enumerate(bad):
            with contextlib.suppress(ConnectionError):
                self.connect(text)
            if at % 50 == 0:
                self.assert_answered()
        self.assert_answered()
        self.assert_grown_less_than(64 * MIB)

    def test_floods_of_small_frames_are_survived(self):
        rapid_reset = b"".join(frame(HEADERS, END_HEADERS, stream, REQUEST) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8)) for stream in range(1, 4001, 2))
        floods = [
            [rapid_reset] * 5,
            [frame(PING, 0, 0, b"12345678") * 1000] * 20,
            [frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 1000] * 20,
            [frame(HEADERS, END_HEADERS, 1, REQUEST), *[frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1)) * 1000] * 20],
        ]
        for flood in floods:
            with contextlib.suppress(ConnectionError):
                self.connect(PREFACE + frame(SETTINGS), *flood)
            self.assert_answered()
        self.assert_grown_less_than(160 * MIB)


class ConnectionAgeTest(ServerTest):
    flags = ("--store", "memory", "--max-connection-age-seconds", "0.3", "--max-connection-age-grace-seconds", "5")

    def test_an_old_connection_is_ended_and_the_client_makes_another(self):
        addresses = set()

        def peer():
            call = self.server.channel.unary_unary("/grpc.health.v1.Health/Check")
            call(b"", timeout=PATIENCE_SECONDS)
            port = f":{int(self.server.address.rsplit(':', 1)[1]):04X}"
            for kind in ("tcp", "tcp6"):
                with open(f"/proc/{self.server.process.pid}/net/{kind}", encoding="utf-8") as table:
                    # Local address, remote address, state: 01 is established.
                    addresses.update(columns[2] for columns in map(str.split, table) if columns[1].endswith(port) and columns[3] == "01")
            return len(addresses)

        eventually(lambda: peer() >= 3, "three connections, one after the other")


if __name__ == "__main__":
    unittest.main()
