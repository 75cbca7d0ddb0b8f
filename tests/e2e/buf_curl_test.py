"""`buf curl`, a client in Go that learns the contract from the server's reflection alone."""

import base64
import glob
import json
import os
import subprocess
import unittest

from contract import error_details_pb2
from sample import small
from stepcastd import PATIENCE_SECONDS, ServerTest

HERE = os.path.dirname(os.path.abspath(__file__))
BUF = glob.glob(os.path.join(HERE, "node_modules", "@bufbuild", "buf-linux-*", "bin", "buf"))

PROFILES = "stepcast.v1.ProfileService"
PREDICTIONS = "stepcast.v1.PredictionService"


@unittest.skipUnless(BUF, "npm has not brought buf: no registry in reach")
class BufCurlTest(ServerTest):
    def curl(self, *arguments, path="", text=None):
        with_cache = {**os.environ, "BUF_CACHE_DIR": os.path.join(self.server.folder, "buf")}
        return subprocess.run(
            [BUF[0], "curl", "--protocol", "grpc", "--http2-prior-knowledge", *arguments, f"http://{self.server.address}{path}"],
            input=text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            env=with_cache,
            cwd=self.server.folder,
        )

    def call(self, method, *messages):
        """The replies to a call, or its error as {code, message, details}."""
        done = self.curl("--data", "@-", path=f"/{method}", text="\n".join(json.dumps(message) for message in messages))
        text = done.stdout if done.returncode == 0 else done.stderr[done.stderr.index("{") :]
        decoder, replies = json.JSONDecoder(), []
        while text.strip():
            reply, end = decoder.raw_decode(text.lstrip())
            replies.append(reply)
            text = text.lstrip()[end:]
        self.assertEqual(len(replies), 1, done)
        return replies[0]

    def detail(self, error, message):
        """The detail of that type; buf passes it on as bytes."""
        values = [detail["value"] for detail in error["details"] if detail["type"] == message.DESCRIPTOR.full_name]
        self.assertEqual(len(values), 1, error)
        return type(message).FromString(base64.b64decode(values[0] + "=="))

    def test_services_and_methods_are_listed(self):
        # Many questions on one stream.
        for reflect in ("grpc-v1", "grpc-v1alpha"):
            services = self.curl("--reflect-protocol", reflect, "--list-services")
            self.assertEqual(services.returncode, 0, services)
            self.assertIn(PROFILES, services.stdout.split())
            methods = self.curl("--reflect-protocol", reflect, "--list-methods")
            self.assertEqual(methods.returncode, 0, methods)
            self.assertEqual({method.rsplit("/", 1)[0] for method in methods.stdout.split()}, set(services.stdout.split()))
            self.assertIn(f"{PREDICTIONS}/GenerateTrace", methods.stdout.split())

    def test_health_is_described_and_serving(self):
        self.assertEqual(self.call("grpc.health.v1.Health/Check", {"service": PROFILES}), {"status": "SERVING"})

    def test_a_profile_is_stored_listed_read_and_deleted(self):
        created = self.call(f"{PROFILES}/CreateProfile", {"profile": small(), "profileId": "tiny"})
        self.assertEqual(created["name"], "profiles/tiny")
        self.call(f"{PROFILES}/CreateProfile", {"profile": small(batch_size=9), "profileId": "tiny-nine"})
        page = self.call(f"{PROFILES}/ListProfiles", {"pageSize": 1})
        self.assertEqual([profile["name"] for profile in page["profiles"]], ["profiles/tiny"])
        page = self.call(f"{PROFILES}/ListProfiles", {"pageSize": 1, "pageToken": page["nextPageToken"]})
        self.assertEqual([profile["name"] for profile in page["profiles"]], ["profiles/tiny-nine"])
        self.assertNotIn("nextPageToken", page)
        self.assertEqual(len(self.call(f"{PROFILES}/GetProfile", {"name": "profiles/tiny"})["operations"]), 4)
        update = {"profile": {"name": "profiles/tiny", "etag": created["etag"], "batchSize": 10}, "updateMask": "batchSize"}
        updated = self.call(f"{PROFILES}/UpdateProfile", update)
        self.assertEqual((updated["batchSize"], updated["createTime"], updated["operationCount"]), (10, created["createTime"], 4))
        self.assertEqual(self.call(f"{PROFILES}/UpdateProfile", update)["code"], "aborted")
        self.assertEqual(self.call(f"{PROFILES}/DeleteProfile", {"name": "profiles/tiny", "etag": created["etag"]})["code"], "aborted")
        self.assertEqual(self.call(f"{PROFILES}/DeleteProfile", {"name": "profiles/tiny", "etag": updated["etag"]}), {})
        self.assertEqual(self.call(f"{PROFILES}/GetProfile", {"name": "profiles/tiny"})["code"], "not_found")

    def test_a_stream_of_chunks_is_one_profile(self):
        content = json.dumps(small()).encode()
        chunks = [{"chunk": _base64(content[at : at + 100])} for at in range(0, len(content), 100)]
        uploaded = self.call(f"{PROFILES}/UploadProfile", {"header": {"encoding": "JSON", "profileId": "streamed"}}, *chunks)
        self.assertEqual(uploaded["name"], "profiles/streamed")
        self.assertEqual(uploaded["digest"], self.call(f"{PROFILES}/CreateProfile", {"profile": small(), "validateOnly": True})["digest"])

    def test_a_model_of_the_zoo_is_imported(self):
        header = {"profileId": "vgg", "modelZoo": {"model": "vgg16", "platform": {"bandwidthBytesPerSecond": 1.25e8}}}
        imported = self.call(f"{PROFILES}/ImportProfile", {"header": header})
        self.assertEqual(imported["profile"]["name"], "profiles/vgg")

    def test_the_three_predictions(self):
        options = {"stepVariation": "AS_RECORDED", "stepsPerWorker": 60, "replications": 1}
        throughput = self.call(f"{PREDICTIONS}/PredictThroughput", {"inlineProfile": small(), "workerCounts": [1, 2, 3], "options": options})
        self.assertEqual([each["scenario"]["workers"] for each in throughput["predictions"]], [1, 2, 3])
        # By hand: 10 ms down, 20 ms computation, 10 ms up, 2 ms update, 8 examples.
        self.assertAlmostEqual(throughput["predictions"][0]["examplesPerSecond"], 8 / 0.042, places=6)
        recommended = self.call(f"{PREDICTIONS}/RecommendWorkers", {"inlineProfile": small(), "options": options, "constraints": {"maxWorkers": 4}})
        self.assertEqual(len(recommended["frontier"]), 4)
        self.assertIn(recommended["workers"], range(1, 5))
        order = self.call(f"{PREDICTIONS}/OptimizeOrder", {"inlineProfile": small(), "options": options, "methods": ["TAC"]})
        self.assertEqual(order["orders"][0]["transfers"], [{"name": "pull", "sizeBytes": "1000000"}])

    def test_the_details_of_an_error_are_readable(self):
        error = self.call(f"{PROFILES}/CreateProfile", {"profile": small(batch_size=-3)})
        self.assertEqual(error["code"], "invalid_argument")
        info = self.detail(error, error_details_pb2.ErrorInfo())
        self.assertEqual((info.reason, info.domain), ("PROFILE_INVALID", "stepcast"))
        violations = self.detail(error, error_details_pb2.BadRequest()).field_violations
        self.assertEqual([each.field for each in violations], ["profile.batch_size"])
        self.assertIn("-3", violations[0].description)


def _base64(content):
    return base64.b64encode(content).decode()


if __name__ == "__main__":
    unittest.main()
