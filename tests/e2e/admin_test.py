"""What those who run the server can ask it."""

import json
import os
import signal
import unittest

from contract import admin_grpc, admin_pb2, details_of, grpc
from limits_test import huge
from stepcastd import ServerTest, eventually

from google.longrunning import operations_pb2, operations_pb2_grpc
from stepcast.v1 import job_service_pb2, job_service_pb2_grpc

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
METADATA = (("x-request-id", "request-17"), ("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01"))


class AdminTest(ServerTest):
    flags = ("--threads", "1", "--log-format", "json")

    def setUp(self):
        super().setUp()
        self.admin = admin_grpc.AdminServiceStub(self.server.channel)

    def lines(self, event):
        return [line for line in map(json.loads, self.server.errors().splitlines()) if line["event"] == event]

    def test_a_ping_is_answered(self):
        self.assertEqual(self.admin.Ping(admin_pb2.PingRequest()), admin_pb2.PingResponse())

    def test_a_server_says_what_it_is(self):
        info = self.admin.GetServerInfo(admin_pb2.GetServerInfoRequest())
        self.assertRegex(info.version, r"^\d+\.\d+\.\d+([~+]git\d{14}\.[0-9a-f]{8}(\.dirty)?)?$")
        self.assertTrue(info.engine_version)
        self.assertRegex(info.replica, "^.+-[0-9a-f]{8}$")
        self.assertEqual(info.store, "sqlite")
        self.assertGreater(info.start_time.seconds, 1_700_000_000)
        self.assertEqual(info.settings["threads"], "1")
        self.assertEqual(info.settings["queue-max"], "64")

    def test_its_settings_are_those_in_force(self):
        settings = lambda: self.admin.GetServerInfo(admin_pb2.GetServerInfoRequest()).settings
        path = os.path.join(self.server.folder, "stepcastd.yaml")
        self.write(path, "queue-max: 9\nstore-threads: 2\n")
        self.server.kill()
        self.server.flags = (*self.flags, "--config", path)
        self.server.start()
        self.admin = admin_grpc.AdminServiceStub(self.server.channel)
        self.assertEqual(settings()["queue-max"], "9")
        self.write(path, "queue-max: 0\nstore-threads: 3\n")
        self.server.process.send_signal(signal.SIGHUP)
        eventually(lambda: settings()["queue-max"] == "0", "the reload is told")
        self.assertEqual(settings()["store-threads"], "2")  # waits for a restart
        self.admin.SetLogLevel(admin_pb2.SetLogLevelRequest(level=admin_pb2.ERROR))
        self.assertEqual(settings()["log-level"], "error")

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def test_another_start_is_another_replica(self):
        first = self.admin.GetServerInfo(admin_pb2.GetServerInfoRequest()).replica
        self.server.kill()
        self.server.start()
        second = admin_grpc.AdminServiceStub(self.server.channel).GetServerInfo(admin_pb2.GetServerInfoRequest()).replica
        self.assertNotEqual(first, second)

    def test_what_runs_and_what_waits_is_listed_with_who_asked(self):
        for seed in (1, 2):
            call = self.server.predictions.PredictThroughput.future(huge(seed), metadata=METADATA if seed == 1 else None)
            self.addCleanup(call.cancel)
            eventually(lambda: self.admin.ListRunning(admin_pb2.ListRunningRequest()).total == seed, "it is listed")
        eventually(lambda: self.server.metric("stepcast_jobs_running", pool="simulation") == 1, "one runs")
        first, second = self.admin.ListRunning(admin_pb2.ListRunningRequest()).running
        self.assertEqual((first.method, first.request_id, first.client), ("PredictThroughput", "request-17", "ipv4:127.0.0.1"))
        self.assertEqual((first.state, second.state), (first.COMPUTING, first.WAITING))
        self.assertGreater(first.expected.seconds, 60)
        self.assertGreaterEqual(first.age.ToNanoseconds(), second.age.ToNanoseconds())

    def test_a_job_that_computes_is_listed_too(self):
        jobs = job_service_pb2_grpc.JobServiceStub(self.server.channel)
        name = jobs.StartJob(job_service_pb2.StartJobRequest(predict_throughput=huge())).name
        self.addCleanup(operations_pb2_grpc.OperationsStub(self.server.channel).CancelOperation, operations_pb2.CancelOperationRequest(name=name))
        eventually(lambda: self.admin.ListRunning(admin_pb2.ListRunningRequest()).total == 1, "it is listed")
        (running,) = self.admin.ListRunning(admin_pb2.ListRunningRequest()).running
        self.assertEqual((running.method, running.client, running.request_id), ("StartJob", "operations", name))
        self.assertEqual(running.state, running.COMPUTING)

    def test_at_level_debug_every_call_has_a_line_with_its_request_and_trace(self):
        self.admin.Ping(admin_pb2.PingRequest(), metadata=METADATA)
        self.assertEqual(self.lines("call"), [])
        self.assertEqual(self.admin.SetLogLevel(admin_pb2.SetLogLevelRequest(level=admin_pb2.DEBUG)).previous, admin_pb2.INFO)
        self.admin.Ping(admin_pb2.PingRequest(), metadata=METADATA)
        line = self.lines("call")[-1]
        self.assertEqual((line["method"], line["code"], line["request_id"], line["trace_id"]), ("Ping", "OK", "request-17", TRACE))
        self.assertEqual(self.admin.SetLogLevel(admin_pb2.SetLogLevelRequest(level=admin_pb2.INFO)).previous, admin_pb2.DEBUG)
        known = len(self.lines("call"))
        self.admin.Ping(admin_pb2.PingRequest())
        self.assertEqual(len(self.lines("call")), known)

    def test_a_level_that_is_none_is_refused(self):
        for level in (admin_pb2.LOG_LEVEL_UNSPECIFIED, 17):
            with self.assertRaises(grpc.RpcError) as raised:
                self.admin.SetLogLevel(admin_pb2.SetLogLevelRequest(level=level))
            details = details_of(raised.exception)
            self.assertEqual((details.code, list(details.violations)), (grpc.StatusCode.INVALID_ARGUMENT, ["level"]))


if __name__ == "__main__":
    unittest.main()
