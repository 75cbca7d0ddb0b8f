"""Whole conversations with every stream: several messages, half-closes, cancellations, garbage in the middle, readers that do not read.

The server is alive after each, and leaves no call behind."""

import contextlib
import itertools
import os
import queue
import re
import socket
import struct
import unittest

from abuse_test import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, literal
from contract import details_of, grpc, health_pb2, prediction, store, trace_pb2
from google.longrunning import operations_pb2
from google.protobuf import descriptor_pb2
from grpc.reflection.v1 import reflection_pb2 as v1
from grpc.reflection.v1alpha import reflection_pb2 as v1alpha
from sample import message, recorded, small
from secured import TOKENS, SecuredTest
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

MIB = 2**20
VERSIONS = {"grpc.reflection.v1": v1, "grpc.reflection.v1alpha": v1alpha}
BIG = "stepcast.v1.PredictionService"


def questions(version, count):
    """So many, every kind in turn, and the kind of answer that each gets."""
    every = [
        ({"list_services": ""}, "list_services_response"),
        ({"file_by_filename": "stepcast/v1/profile.proto"}, "file_descriptor_response"),
        ({"file_by_filename": "no/such.proto"}, "error_response"),
        ({"file_containing_symbol": BIG}, "file_descriptor_response"),
        ({"file_containing_symbol": "no.such.Symbol"}, "error_response"),
        ({"file_containing_extension": {"containing_type": "google.protobuf.MethodOptions", "extension_number": 1}}, "error_response"),
        ({"all_extension_numbers_of_type": "google.protobuf.MethodOptions"}, "all_extension_numbers_response"),
        ({"all_extension_numbers_of_type": "no.such.Type"}, "error_response"),
        ({}, "error_response"),
        ({"host": "a host", "list_services": "anything"}, "list_services_response"),
    ]
    chosen = list(itertools.islice(itertools.cycle(every), count))
    return [version.ServerReflectionRequest(**fields) for fields, _ in chosen], [kind for _, kind in chosen]


def reflect(channel, package, requests, **options):
    """The call, with raw bytes for bytes."""
    method = channel.stream_stream(
        f"/{package}.ServerReflection/ServerReflectionInfo",
        request_serializer=lambda each: each if isinstance(each, bytes) else each.SerializeToString(),
        response_deserializer=VERSIONS[package].ServerReflectionResponse.FromString,
    )
    return method(requests, timeout=PATIENCE_SECONDS, **options)


def streaming_methods(channel):
    """service/method of every stream of the server, as its reflection describes it."""
    package = "grpc.reflection.v1"
    (listed,) = reflect(channel, package, iter([v1.ServerReflectionRequest(list_services="")]))
    names = [service.name for service in listed.list_services_response.service]
    found = set()
    for answer in reflect(channel, package, iter([v1.ServerReflectionRequest(file_containing_symbol=name) for name in names])):
        for bytes_of_file in answer.file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(bytes_of_file)
            for service in file.service:
                found |= {f"{file.package}.{service.name}/{method.name}" for method in service.method if method.client_streaming or method.server_streaming}
    return found


class ConversationTest(ServerTest):
    """A test that also demands that every call has come to its end at the server."""

    flags = ("--store", "memory")

    def setUp(self):
        super().setUp()
        self.addCleanup(self.assert_sound)

    def assert_sound(self):
        channel = self.server.new_channel()
        reply = channel.unary_unary("/grpc.health.v1.Health/Check", response_deserializer=health_pb2.HealthCheckResponse.FromString)(b"", timeout=PATIENCE_SECONDS)
        self.assertEqual(reply.status, health_pb2.HealthCheckResponse.SERVING)
        channel.close()
        self.server.metric_after_calls("grpc_server_handled_total")

    def peak_bytes(self):
        with open(f"/proc/{self.server.process.pid}/status", encoding="utf-8") as status:
            return int(re.search(r"^VmHWM:\s*(\d+) kB", status.read(), re.M)[1]) * 1024

    def end_of(self, call):
        """(number of replies, code, reason) of a call that is read to its end."""
        count = 0
        try:
            for _ in call:
                count += 1
            return count, grpc.StatusCode.OK, ""
        except grpc.RpcError as error:
            return count, error.code(), details_of(error).reason

    def assert_answered_in_order(self, channel, package, count, **options):
        asked, kinds = questions(VERSIONS[package], count)
        answers = list(reflect(channel, package, iter(asked), **options))
        self.assertEqual([answer.original_request for answer in answers], asked)
        self.assertEqual([answer.WhichOneof("message_response") for answer in answers], kinds)
        return answers


class ReflectionTest(ConversationTest):
    def test_two_then_a_hundred_questions_on_one_stream_are_answered_in_order(self):
        for package, count in itertools.product(VERSIONS, (1, 2, 100)):
            answers = self.assert_answered_in_order(self.server.channel, package, count)
            names = [service.name for service in answers[0].list_services_response.service]
            self.assertIn(BIG, names)
            for answer in answers:
                files = [descriptor_pb2.FileDescriptorProto.FromString(each) for each in answer.file_descriptor_response.file_descriptor_proto]
                if answer.original_request.file_containing_symbol == BIG:
                    self.assertIn("stepcast/v1/prediction_service.proto", [file.name for file in files])
                    self.assertEqual(set(), {needed for file in files for needed in file.dependency} - {file.name for file in files})
                if answer.HasField("error_response"):
                    self.assertIn(answer.error_response.error_code, (grpc.StatusCode.NOT_FOUND.value[0], grpc.StatusCode.INVALID_ARGUMENT.value[0]))

    def test_questions_may_wait_for_the_answer_before(self):
        asked, kinds = questions(v1, 100)
        waiting = queue.Queue()
        call = reflect(self.server.channel, "grpc.reflection.v1", iter(waiting.get, None))
        for question, kind in zip(asked, kinds):
            waiting.put(question)
            answer = next(call)
            self.assertEqual((answer.original_request, answer.WhichOneof("message_response")), (question, kind))
        waiting.put(None)
        self.assertEqual(self.end_of(call), (0, grpc.StatusCode.OK, ""))

    def test_very_many_questions_take_no_more_memory_than_few(self):
        self.assert_answered_in_order(self.server.channel, "grpc.reflection.v1", 100)
        before = self.peak_bytes()
        call = reflect(self.server.channel, "grpc.reflection.v1", (v1.ServerReflectionRequest(file_by_filename=f"{at}") for at in range(20_000)))
        for at, answer in enumerate(call):
            self.assertEqual(answer.original_request.file_by_filename, str(at))
        self.assertEqual(at, 19_999)
        self.assertLess(self.peak_bytes() - before, 32 * MIB)

    def test_answers_that_nobody_reads_do_not_pile_up(self):
        streams = 500
        question = v1.ServerReflectionRequest(file_containing_symbol=BIG)
        (answer,) = reflect(self.server.channel, "grpc.reflection.v1", iter([question]))
        self.leave_unread(streams, v1.ServerReflectionRequest(file_by_filename="none"))
        before = self.peak_bytes()
        self.leave_unread(streams, question)
        grown = self.peak_bytes() - before
        print(f"\n{streams} streams with answers of {answer.ByteSize()} bytes, of which none is read: {grown / MIB:.1f} MiB more than with short ones")
        if "ASAN_OPTIONS" in os.environ:
            self.skipTest("the address sanitizer's allocator takes more for what the transport holds than a copy would take without it")
        # A copy of one answer for each stream is above this, and what the transport holds of a stream, up to 22 KiB, below.
        self.assertLess(grown, streams * answer.ByteSize() * 3 / 4)

    def leave_unread(self, streams, question):
        """Asks three times on each of so many streams and reads nothing, while others are answered."""
        asked = prefixed(question.SerializeToString()) * 3
        # The server may reset what comes beyond this before it grants more.
        self.assertLess(streams * len(asked), 64 * 1024)
        service = "grpc.reflection.v1.ServerReflection"
        begun = self.server.metric("grpc_server_msg_received_total", grpc_service=service) + streams
        with self.connect() as connection:
            # It grants no more than HTTP/2 does by itself: 64 KiB for all of the connection.
            connection.sendall(PREFACE + frame(SETTINGS))
            for stream in range(1, 2 * streams, 2):
                connection.sendall(request(stream, f"{service}/ServerReflectionInfo") + frame(DATA, 0, stream, asked))
            eventually(lambda: self.server.metric("grpc_server_msg_received_total", grpc_service=service) >= begun, "every stream has begun")
            self.assert_answered_in_order(self.server.channel, "grpc.reflection.v1", 10)

    def connect(self):
        host, port = self.server.address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)
        self.addCleanup(connection.close)
        return connection

    def test_garbage_in_the_middle_ends_the_stream_after_the_answers_before_it(self):
        good = v1.ServerReflectionRequest(list_services="")
        for bad, reason in ((b"\xff\xff", "REQUEST_MALFORMED"), (b"\x3a\x02\xc3\x28", "REQUEST_MALFORMED"), (b"\x3a\x88\x27" + b"a" * 5000, "MESSAGE_TOO_LARGE")):
            call = reflect(self.server.channel, "grpc.reflection.v1", iter([good, good, bad, good]))
            self.assertEqual(self.end_of(call), (2, grpc.StatusCode.INVALID_ARGUMENT, reason))

    def test_a_conversation_may_be_left_at_any_time(self):
        for read in (0, 1, 5):
            call = reflect(self.server.channel, "grpc.reflection.v1", iter(questions(v1, 100)[0]))
            for _ in range(read):
                next(call)
            call.cancel()
            self.assertEqual(self.end_of(call)[1], grpc.StatusCode.CANCELLED)


class SecuredReflectionTest(SecuredTest):
    assert_answered_in_order = ConversationTest.assert_answered_in_order

    def test_a_reader_may_ask_a_hundred_questions_over_tls(self):
        server = self.start(*self.files.tls(), "--tokens", self.files.tokens)
        channel = self.channel(server)
        for package in VERSIONS:
            for count in (2, 100):
                self.assert_answered_in_order(channel, package, count, metadata=[("authorization", f"Bearer {TOKENS['reader']}")])
            with self.assertRaises(grpc.RpcError) as raised:
                next(reflect(channel, package, iter(questions(VERSIONS[package], 2)[0])))
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)


def uploads():
    header = store.UploadProfileRequest.Header(encoding=store.UploadProfileRequest.BINARY, validate_only=True)
    return [store.UploadProfileRequest(header=header), store.UploadProfileRequest(chunk=message(small()).SerializeToString())]


def imports():
    header = store.ImportProfileRequest.Header(validate_only=True)
    header.model_zoo.model = "vgg16"
    header.model_zoo.platform.bandwidth_bytes_per_second = 1.25e8
    return [store.ImportProfileRequest(header=header)]


OK, BAD = grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT
MALFORMED, INVALID = (0, BAD, "REQUEST_MALFORMED"), (0, BAD, "REQUEST_INVALID")
# service/method -> its messages; the ends of nothing at all, of an empty message, and of the same message twice.
STREAMS = {
    "grpc.health.v1.Health/Watch": ([health_pb2.HealthCheckRequest()], MALFORMED, None, None),
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo": (questions(v1, 10)[0], (0, OK, ""), (1, OK, ""), (2, OK, "")),
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": (questions(v1alpha, 10)[0], (0, OK, ""), (1, OK, ""), (2, OK, "")),
    "stepcast.v1.PredictionService/GenerateTrace": (
        [trace_pb2.GenerateTraceRequest(inline_profile=message(small()))],
        MALFORMED,
        INVALID,
        (1, OK, ""),
    ),
    "stepcast.v1.ProfileService/ImportProfile": (imports(), INVALID, INVALID, INVALID),
    "stepcast.v1.ProfileService/UploadProfile": (uploads(), INVALID, INVALID, INVALID),
    # The one unary call that waits.
    "google.longrunning.Operations/WaitOperation": (
        [operations_pb2.WaitOperationRequest(name="operations/none")],
        MALFORMED,
        (0, BAD, "REQUEST_INVALID"),
        (0, grpc.StatusCode.NOT_FOUND, "OPERATION_NOT_FOUND"),
    ),
}


class StreamsTest(ConversationTest):
    def call(self, method, messages, timeout=PATIENCE_SECONDS):
        raw = self.server.channel.stream_stream(f"/{method}")
        return raw(iter([each if isinstance(each, bytes) else each.SerializeToString() for each in messages]), timeout=timeout)

    def test_every_stream_of_the_server_is_in_the_table(self):
        self.assertEqual(streaming_methods(self.server.channel) | {"google.longrunning.Operations/WaitOperation"}, set(STREAMS))

    def test_the_conversation_as_it_should_be(self):
        for method, (messages, *_) in STREAMS.items():
            if method.endswith("/Watch"):
                call = self.call(method, messages)
                self.assertEqual(next(call), b"\x08\x01")
                call.cancel()
            elif not method.endswith("/WaitOperation"):
                count, code, _ = self.end_of(self.call(method, messages))
                self.assertEqual((count > 0, code), (True, OK), method)

    def test_a_half_close_before_any_message(self):
        for method, (_, end, *_) in STREAMS.items():
            self.assertEqual(self.end_of(self.call(method, [])), end, method)

    def test_an_empty_message(self):
        for method, (_, _, end, _) in STREAMS.items():
            if end:
                self.assertEqual(self.end_of(self.call(method, [b""])), end, method)

    def test_the_first_message_twice(self):
        for method, (messages, _, _, end) in STREAMS.items():
            if end:
                self.assertEqual(self.end_of(self.call(method, [messages[0]] * 2)), end, method)

    def test_garbage_first_and_after_good_messages(self):
        for method, (messages, *_) in STREAMS.items():
            self.assertEqual(self.end_of(self.call(method, [b"\xff\xff"])), MALFORMED, method)
            if method.split("/")[1] in ("ServerReflectionInfo", "UploadProfile", "ImportProfile"):
                _, code, reason = self.end_of(self.call(method, [*messages, b"\xff\xff", *messages]))
                self.assertEqual((code, reason), MALFORMED[1:], method)

    def test_cancelled_at_any_time(self):
        for method, (messages, *_) in STREAMS.items():
            for count in range(len(messages) + 1):
                for reads in (False, True):
                    waiting = queue.Queue()
                    call = self.server.channel.stream_stream(f"/{method}")(iter(waiting.get, None), timeout=PATIENCE_SECONDS)
                    for each in messages[:count]:
                        waiting.put(each.SerializeToString())
                    if reads and count > 0 and method.split("/")[1] in ("ServerReflectionInfo", "Watch", "GenerateTrace"):
                        next(call)
                    call.cancel()
                    waiting.put(None)
                    self.assertIn(self.end_of(call)[1], (grpc.StatusCode.CANCELLED, grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND), method)

    def test_a_trace_that_is_left_in_its_middle(self):
        # Megabytes, in pieces of 64 KiB, of which a client reads some and goes.
        request_bytes = trace_pb2.GenerateTraceRequest(inline_profile=message(recorded()))
        request_bytes.scenario.workers = 8
        request_bytes.options.steps_per_worker = 5_000
        for reads in (1, 2, 7):
            call = self.call("stepcast.v1.PredictionService/GenerateTrace", [request_bytes])
            for _ in range(reads):
                next(call)
            call.cancel()
            self.assertEqual(self.end_of(call)[1], grpc.StatusCode.CANCELLED)

    def test_deadlines_of_any_length(self):
        for method, (messages, *_) in STREAMS.items():
            for seconds in (0, 1e-6, 0.001, 0.01):
                code = self.end_of(self.call(method, messages, timeout=seconds))[1]
                self.assertIn(code, (grpc.StatusCode.DEADLINE_EXCEEDED, OK, grpc.StatusCode.NOT_FOUND), method)


class HeaderTest(ConversationTest):
    flags = (*ConversationTest.flags, "--max-pending-bytes", str(MIB))

    def test_a_header_counts_while_its_stream_is_open(self):
        for name, kind in (("UploadProfile", store.UploadProfileRequest), ("ImportProfile", store.ImportProfileRequest)):
            large = kind(header=kind.Header(profile_id="a" * (600 << 10))).SerializeToString()
            method = self.server.channel.stream_unary(f"/stepcast.v1.ProfileService/{name}")
            waiting = queue.Queue()
            first = method.future(iter(waiting.get, None), timeout=PATIENCE_SECONDS)
            waiting.put(large)
            eventually(lambda: self.server.metric("grpc_server_msg_received_total", grpc_method=name) == 1, "the first has come")
            eventually(lambda: self.reason_of(method, large) == "MEMORY_EXHAUSTED", "it counts")
            first.cancel()
            waiting.put(None)
            eventually(lambda: self.reason_of(method, large) not in ("MEMORY_EXHAUSTED", ""), "it no longer does")

    @staticmethod
    def reason_of(method, *messages):
        try:
            method(iter(messages), timeout=PATIENCE_SECONDS)
            return ""
        except grpc.RpcError as error:
            return details_of(error).reason


def prefixed(payload, flag=0, length=None):
    """A message of gRPC; flag and length may lie."""
    return struct.pack(">BI", flag, len(payload) if length is None else length) + payload


def request(stream, method, *headers, flags=END_HEADERS):
    named = ((":method", "POST"), (":scheme", "http"), (":path", f"/{method}"), (":authority", "localhost"), ("te", "trailers"), ("content-type", "application/grpc"))
    return frame(HEADERS, flags, stream, b"".join(literal(name.encode(), value.encode()) for name, value in (*named, *headers)))


RESET = struct.pack(">I", 8)


class FramesTest(ConversationTest):
    """Frames of HTTP/2 that no client library lets its caller send."""

    def sequences(self, method, payload):
        begin = request(1, method)
        good = prefixed(payload)
        return {
            "a message after the half-close": begin + frame(DATA, END_STREAM, 1, good) + frame(DATA, 0, 1, good),
            "two half-closes": begin + frame(DATA, END_STREAM, 1, good) + frame(DATA, END_STREAM, 1, b""),
            "a half-close with the headers": request(1, method, flags=END_HEADERS | END_STREAM),
            "a message after that": request(1, method, flags=END_HEADERS | END_STREAM) + frame(DATA, 0, 1, good),
            "a half-close in the middle of a message": begin + frame(DATA, END_STREAM, 1, good[:-1] or b"\0"),
            "a half-close in the middle of a prefix": begin + frame(DATA, END_STREAM, 1, good[:3]),
            "a reset in the middle of a message": begin + frame(DATA, 0, 1, good[: 5 + len(payload) // 2]) + frame(RST_STREAM, 0, 1, RESET),
            "a reset after a message": begin + frame(DATA, 0, 1, good) + frame(RST_STREAM, 0, 1, RESET),
            "a reset before any message": begin + frame(RST_STREAM, 0, 1, RESET),
            "two resets": begin + frame(RST_STREAM, 0, 1, RESET) * 2,
            "a message after the reset": begin + frame(RST_STREAM, 0, 1, RESET) + frame(DATA, 0, 1, good),
            "the connection ends in the middle": begin + frame(DATA, 0, 1, good[:4]),
            "a message of 4 GiB": begin + frame(DATA, 0, 1, prefixed(b"x" * 100, 0, 0xFFFFFFFF)) + frame(DATA, END_STREAM, 1, b""),
            "a message that is said to be compressed": begin + frame(DATA, END_STREAM, 1, prefixed(payload, 1)),
            "a message of a kind that there is not": begin + frame(DATA, END_STREAM, 1, prefixed(payload, 0x7F)),
            "a byte a frame": begin + b"".join(frame(DATA, 0, 1, good[at : at + 1]) for at in range(len(good))) + frame(DATA, END_STREAM, 1, b""),
            "many messages in one frame": begin + frame(DATA, END_STREAM, 1, (good * 1000)[: 16_000 // len(good) * len(good)]),
            "many empty frames": begin + frame(DATA, 0, 1, b"") * 500 + frame(DATA, END_STREAM, 1, good),
            "trailers from the client": begin + frame(DATA, 0, 1, good) + frame(HEADERS, END_HEADERS | END_STREAM, 1, literal(b"x-more", b"1")),
            "headers in pieces": frame(HEADERS, 0, 1, request(1, method)[9:40]) + frame(CONTINUATION, END_HEADERS, 1, request(1, method)[40:]) + frame(DATA, END_STREAM, 1, good),
            "no window for the answer": frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0)) + begin + frame(DATA, END_STREAM, 1, good),
            "a window that overflows": begin + frame(DATA, 0, 1, good) + frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 0x7FFFFFFF)) * 2,
            "a deadline in 11,000 years": request(1, method, ("grpc-timeout", "99999999H")) + frame(DATA, END_STREAM, 1, good),
            "deadlines that are none": b"".join(
                request(stream, method, ("grpc-timeout", text)) + frame(DATA, END_STREAM, stream, good)
                for stream, text in ((1, "-1S"), (3, "1"), (5, "S"), (7, "99999999999999999999H"), (9, "0n"))
            ),
            "many conversations at one time": b"".join(request(stream, method) + frame(DATA, 0, stream, good) for stream in range(1, 200, 2))
            + b"".join(frame(DATA, END_STREAM, stream, good) if stream % 4 == 1 else frame(RST_STREAM, 0, stream, RESET) for stream in range(1, 200, 2)),
        }

    def test_every_stream_survives_every_sequence_of_frames(self):
        host, port = self.server.address.rsplit(":", 1)
        for method, (messages, *_) in STREAMS.items():
            for what, sent in self.sequences(method, messages[0].SerializeToString()).items():
                with self.subTest(method=method, what=what), socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as connection:
                    with contextlib.suppress(ConnectionError):
                        connection.sendall(PREFACE + frame(SETTINGS) + sent)
                        # The acknowledgement of this shows that all before was read.
                        connection.sendall(frame(6, 0, 0, b"all-read"))
                        await_text(connection, b"all-read")
            self.assert_sound()

    def test_a_far_deadline_is_a_deadline(self):
        host, port = self.server.address.rsplit(":", 1)
        for text in ("99999999H", "99999999M", "99999999S", "9000000H"):
            with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as connection:
                sent = request(1, "grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ("grpc-timeout", text))
                question = prefixed(v1.ServerReflectionRequest(list_services="").SerializeToString())
                connection.sendall(PREFACE + frame(SETTINGS) + sent + frame(DATA, END_STREAM, 1, question))
                self.assertTrue(await_text(connection, b"stepcast.v1.ProfileService"), text)


def await_text(connection, text):
    """Reads until the text has come; False: the connection has ended before."""
    read = b""
    while text not in read:
        more = connection.recv(65536)
        if not more:
            return False
        read = read[-len(text) :] + more
    return True


if __name__ == "__main__":
    unittest.main()
