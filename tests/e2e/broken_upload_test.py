"""Broken bytes on every upload path, while another client goes on getting answers."""

import random
import threading
import unittest

from contract import details_of, grpc, json_format, prediction, profile_pb2, scenario_pb2, store
from sample import message, recorded, small
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

LAYER_HEADER = store.ImportProfileRequest(
    header=store.ImportProfileRequest.Header(
        layer_profile=store.LayerProfileOptions(model="m", batch_size=1, platform=profile_pb2.Platform(bandwidth_bytes_per_second=1e8))
    )
)
LAYERS = "".join(
    f"node{at} -- Conv2d({at}) -- forward_compute_time={at}.5, backward_compute_time={at}.25, parameter_size={1000 * at}.000\n" for at in range(1, 30)
) + "".join(f"\tnode{at} -- node{at + 1}\n" for at in range(1, 29))

# The answers that a broken upload may have: that it is wrong, or too much. Anything else is the server's fault.
REFUSALS = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED}
SEED = 20260101


class Bystander(threading.Thread):
    """Asks for the same prediction again and again, on a connection of its own."""

    def __init__(self, server):
        super().__init__()
        self.channel = server.new_channel()
        self.stub = type(server.predictions)(self.channel)
        self.answers, self.failures, self.stopped = [], [], threading.Event()
        self.start()

    def run(self):
        request = prediction.PredictThroughputRequest(
            inline_profile=message(small()), worker_counts=[1, 2], options=scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=50, replications=1)
        )
        while not self.stopped.is_set():
            try:
                self.answers.append([each.steps_per_second for each in self.stub.PredictThroughput(request, timeout=PATIENCE_SECONDS).predictions])
            except grpc.RpcError as error:
                self.failures.append(error)

    def stop(self):
        self.stopped.set()
        self.join()
        self.channel.close()


class BrokenUploadTest(ServerTest):
    flags = ("--max-message-bytes", str(4 << 20), "--max-profile-bytes", str(1 << 20))

    def setUp(self):
        super().setUp()
        self.bystander = Bystander(self.server)
        self.addCleanup(self.bystander.stop)
        eventually(lambda: self.bystander.answers or self.bystander.failures, "the bystander is served")
        self.random = random.Random(SEED)

    def finish(self, accepted=0):
        """The bystander was served throughout, and nothing but `accepted` profiles has been stored."""
        served = len(self.bystander.answers)
        eventually(lambda: len(self.bystander.answers) > served or self.bystander.failures, "the bystander is served again")
        self.bystander.stop()
        self.assertEqual(self.bystander.failures, [])
        self.assertEqual(len({tuple(answer) for answer in self.bystander.answers}), 1)
        self.assertEqual(len(self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles), accepted)

    def refused(self, call, *arguments):
        with self.assertRaises(grpc.RpcError) as raised:
            call(*arguments, timeout=PATIENCE_SECONDS)
        details = details_of(raised.exception)
        self.assertIn(details.code, REFUSALS, details)
        return details

    def upload(self, content, encoding):
        yield store.UploadProfileRequest(header=store.UploadProfileRequest.Header(encoding=encoding))
        for at in range(0, len(content), 7919):
            yield store.UploadProfileRequest(chunk=content[at : at + 7919])

    def contents(self):
        profile = message(recorded())
        return {
            store.UploadProfileRequest.BINARY: profile.SerializeToString(),
            store.UploadProfileRequest.JSON: json_format.MessageToJson(profile).encode(),
            store.UploadProfileRequest.TEXT: str(profile).encode(),
        }

    def test_uploads_cut_short_are_refused_in_every_encoding(self):
        for encoding, content in self.contents().items():
            for _ in range(20):
                cut = self.random.randrange(1, len(content) - 2)
                details = self.refused(self.server.profiles.UploadProfile, self.upload(content[:cut], encoding))
                self.assertIn(details.reason, {"PROFILE_MALFORMED", "PROFILE_INVALID"}, (SEED, encoding, cut))
        self.finish()

    def test_random_bytes_are_refused_in_every_encoding(self):
        for encoding in self.contents():
            for _ in range(20):
                content = self.random.randbytes(self.random.randrange(1, 50000))
                details = self.refused(self.server.profiles.UploadProfile, self.upload(content, encoding))
                self.assertIn(details.reason, {"PROFILE_MALFORMED", "PROFILE_INVALID"}, (SEED, encoding, content[:20]))
        self.finish()

    def test_flipped_bytes_are_refused_or_stored_whole(self):
        stored = set()
        for encoding, content in self.contents().items():
            for _ in range(20):
                broken = bytearray(content)
                broken[self.random.randrange(len(broken))] ^= 1 << self.random.randrange(8)
                try:
                    stored.add(self.server.profiles.UploadProfile(self.upload(bytes(broken), encoding), timeout=PATIENCE_SECONDS).name)
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), grpc.StatusCode.INVALID_ARGUMENT)
        for name in stored:
            self.assertEqual(len(self.server.profiles.GetProfile(store.GetProfileRequest(name=name)).operations), len(recorded()["operations"]))
        self.finish(accepted=len(stored))

    def test_bytes_that_are_no_request_are_refused_by_every_method_that_takes_a_profile(self):
        raw = {"request_serializer": lambda content: content, "response_deserializer": lambda content: content}
        create = self.server.channel.unary_unary("/stepcast.v1.ProfileService/CreateProfile", **raw)
        upload = self.server.channel.stream_unary("/stepcast.v1.ProfileService/UploadProfile", **raw)
        bring = self.server.channel.stream_unary("/stepcast.v1.ProfileService/ImportProfile", **raw)
        for _ in range(20):
            content = b"\xff" + self.random.randbytes(self.random.randrange(1, 5000))
            for call, request in ((create, content), (upload, iter([content])), (bring, iter([LAYER_HEADER.SerializeToString(), content]))):
                with self.assertRaises(grpc.RpcError) as raised:
                    call(request, timeout=PATIENCE_SECONDS)
                # Bytes that gRPC itself cannot parse it calls INTERNAL.
                self.assertIn(raised.exception.code(), REFUSALS | {grpc.StatusCode.INTERNAL})
        self.finish()

    def test_layer_profiles_cut_short_or_random_are_refused_or_sound(self):
        stored = set()
        for at in range(40):
            content = LAYERS.encode()
            content = content[: self.random.randrange(len(content))] if at % 2 else self.random.randbytes(self.random.randrange(1, 5000))
            requests = [LAYER_HEADER, store.ImportProfileRequest(chunk=content)]
            try:
                stored.add(self.server.profiles.ImportProfile(iter(requests), timeout=PATIENCE_SECONDS).profile.name)
            except grpc.RpcError as error:
                details = details_of(error)
                self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "IMPORT_INVALID"), (SEED, at))
                self.assertTrue(details.violations)
        for name in stored:
            reply = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile=name), timeout=PATIENCE_SECONDS)
            self.assertGreater(reply.predictions[0].steps_per_second, 0)
        self.finish(accepted=len(stored))

    def test_messages_over_the_limit_are_refused(self):
        big = message(small(display_name="x" * (8 << 20)))
        details = self.refused(self.server.profiles.CreateProfile, store.CreateProfileRequest(profile=big))
        self.assertEqual(details.code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        requests = [store.UploadProfileRequest(header={}), store.UploadProfileRequest(chunk=bytes(8 << 20))]
        self.assertEqual(self.refused(self.server.profiles.UploadProfile, iter(requests)).code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.finish()

    def test_streams_over_the_limit_are_refused_before_they_end(self):
        def endless(first, chunk):
            yield first
            while True:
                yield chunk

        upload = endless(store.UploadProfileRequest(header={}), store.UploadProfileRequest(chunk=bytes(100000)))
        imported = endless(LAYER_HEADER, store.ImportProfileRequest(chunk=LAYERS.encode() * 50))
        for call, requests in ((self.server.profiles.UploadProfile, upload), (self.server.profiles.ImportProfile, imported)):
            details = self.refused(call, requests)
            # Not worth a repetition, hence no RESOURCE_EXHAUSTED.
            self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "PROFILE_TOO_LARGE"), details)
            self.assertEqual(details.quota_subjects, ["max_profile_bytes"])
        self.finish()

    def test_an_upload_given_up_half_way_leaves_nothing(self):
        content = self.contents()[store.UploadProfileRequest.BINARY]
        for _ in range(10):
            reached, given_up = threading.Event(), threading.Event()

            def requests(reached=reached, given_up=given_up):
                yield from self.upload(content[: len(content) // 2], store.UploadProfileRequest.BINARY)
                reached.set()
                given_up.wait()

            call = self.server.profiles.UploadProfile.future(requests())
            self.assertTrue(reached.wait(PATIENCE_SECONDS))
            call.cancel()
            given_up.set()
        self.finish()


if __name__ == "__main__":
    unittest.main()
