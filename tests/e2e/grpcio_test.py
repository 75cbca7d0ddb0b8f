"""Google's Python client does everything a user does."""

import unittest

from contract import details_of, grpc, health_pb2, json_format, order_pb2, prediction, profile_pb2, recommendation_pb2, scenario_pb2, store
from sample import message, recorded, small
from stepcastd import ServerTest

LAYERS = """\
node1 -- Input -- forward_compute_time=0.010, backward_compute_time=0.000, activation_size=0.0, parameter_size=0.000
node2 -- Conv2d(3, 64) -- forward_compute_time=4.000, backward_compute_time=8.000, activation_size=1.0, parameter_size=1000000.000
node3 -- ReLU -- forward_compute_time=1.000, backward_compute_time=1.000, activation_size=1.0, parameter_size=0.000
node4 -- Linear(9, 9) -- forward_compute_time=2.000, backward_compute_time=4.000, activation_size=1.0, parameter_size=2000000.000
\tnode1 -- node2
\tnode2 -- node3
\tnode3 -- node4
"""


def upload_messages(content, chunk_bytes=65536, **header):
    yield store.UploadProfileRequest(header=store.UploadProfileRequest.Header(**header))
    for at in range(0, len(content), chunk_bytes):
        yield store.UploadProfileRequest(chunk=content[at : at + chunk_bytes])


class ProfilesTest(ServerTest):
    def test_a_created_profile_is_returned_whole(self):
        sent = message(small())
        created = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=sent, profile_id="tiny"))
        self.assertEqual(created.name, "profiles/tiny")
        got = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/tiny"))
        self.assertEqual(list(got.operations), list(sent.operations))
        self.assertEqual(list(got.steps), list(sent.steps))
        self.assertEqual((got.digest, got.etag), (created.digest, created.etag))
        self.assertRegex(got.digest, "^[0-9a-f]{64}$")

    def test_an_upload_in_chunks_gives_the_same_profile_in_every_encoding(self):
        profile = message(recorded())
        encodings = {
            store.UploadProfileRequest.BINARY: profile.SerializeToString(),
            store.UploadProfileRequest.JSON: json_format.MessageToJson(profile).encode(),
            store.UploadProfileRequest.TEXT: str(profile).encode(),
        }
        digests = {
            self.server.profiles.UploadProfile(upload_messages(content, 1000, encoding=encoding)).digest for encoding, content in encodings.items()
        }
        self.assertEqual(digests, {self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=profile)).digest})
        self.assertEqual(len(self.server.profiles.ListProfiles(store.ListProfilesRequest()).profiles), 1)

    def test_a_list_goes_page_by_page_over_every_profile(self):
        names = [f"p{index}" for index in range(7)]
        for index, name in enumerate(names):
            profile = message(small(batch_size=index + 1, labels={"parity": "even" if index % 2 == 0 else "odd"}))
            self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=profile, profile_id=name))
        self.assertEqual(self._pages(page_size=3), [["profiles/p0", "profiles/p1", "profiles/p2"], ["profiles/p3", "profiles/p4", "profiles/p5"], ["profiles/p6"]])
        self.assertEqual(self._pages(page_size=2, filter='labels.parity = "odd"'), [["profiles/p1", "profiles/p3"], ["profiles/p5"]])

    def _pages(self, **request):
        pages, token = [], ""
        while True:
            reply = self.server.profiles.ListProfiles(store.ListProfilesRequest(page_token=token, **request))
            pages.append([profile.name for profile in reply.profiles])
            token = reply.next_page_token
            if not token:
                return pages

    def test_a_deleted_profile_is_gone(self):
        created = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(small())))
        self.server.profiles.DeleteProfile(store.DeleteProfileRequest(name=created.name, etag=created.etag))
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.GetProfile(store.GetProfileRequest(name=created.name))
        details = details_of(raised.exception)
        self.assertEqual(details.code, grpc.StatusCode.NOT_FOUND)
        self.assertEqual((details.reason, details.domain, details.resource), ("PROFILE_NOT_FOUND", "stepcast", created.name))

    def test_a_bad_profile_is_refused_with_every_fault_and_its_path(self):
        bad = small(batch_size=0)
        bad["operations"][0]["size_bytes"] = -1
        bad["operations"][1]["waiting_for"] = [17]
        bad["steps"][0]["end_ns"][3] = 1
        with self.assertRaises(grpc.RpcError) as raised:
            self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(bad)))
        details = details_of(raised.exception)
        self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "PROFILE_INVALID"))
        self.assertEqual(
            set(details.violations),
            {"profile.batch_size", "profile.operations[0].size_bytes", "profile.operations[1].waiting_for[0]", "profile.steps[0].end_ns[3]"},
        )
        self.assertIn("17", details.violations["profile.operations[1].waiting_for[0]"])


class ImportTest(ServerTest):
    platform = profile_pb2.Platform(bandwidth_bytes_per_second=1.25e8)

    def test_a_layer_profile_becomes_a_profile_that_can_be_predicted(self):
        options = store.LayerProfileOptions(model="three-layers", batch_size=16, platform=self.platform)
        header = store.ImportProfileRequest.Header(profile_id="layers", layer_profile=options)
        requests = [store.ImportProfileRequest(header=header)] + [store.ImportProfileRequest(chunk=line.encode()) for line in LAYERS.splitlines(keepends=True)]
        imported = self.server.profiles.ImportProfile(iter(requests))
        self.assertEqual((imported.profile.name, imported.profile.model, imported.profile.batch_size), ("profiles/layers", "three-layers", 16))
        profile = self.server.profiles.GetProfile(store.GetProfileRequest(name="profiles/layers"))
        self.assertEqual([op.size_bytes for op in profile.operations if op.resource == profile_pb2.Operation.DOWNLINK], [1000000, 2000000])
        # One worker, nothing overlaps but what the graph allows; all of it takes at least the computation, which is 20 ms without data loading.
        reply = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile="profiles/layers"))
        self.assertLess(reply.predictions[0].steps_per_second, 1 / 0.020)
        self.assertGreater(reply.predictions[0].steps_per_second, 1 / (0.020 + 2 * 3e6 / 1.25e8))

    def test_a_model_of_the_zoo_needs_no_bytes(self):
        header = store.ImportProfileRequest.Header(model_zoo=store.ModelZooOptions(model="resnet50", platform=self.platform))
        imported = self.server.profiles.ImportProfile(iter([store.ImportProfileRequest(header=header)]))
        self.assertEqual(imported.profile.model, "resnet50")
        profile = self.server.profiles.GetProfile(store.GetProfileRequest(name=imported.profile.name))
        downloads = [op.size_bytes for op in profile.operations if op.resource == profile_pb2.Operation.DOWNLINK]
        # Table 1 of TicTac: 97.39 MiB; the published architecture has 25.557 million parameters of four bytes.
        self.assertAlmostEqual(sum(downloads) / 2**20, 97.49, delta=0.2)


class PredictionsTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.name = self.server.profiles.CreateProfile(store.CreateProfileRequest(profile=message(recorded()))).name
        self.options = scenario_pb2.SimulationOptions(step_variation="AS_RECORDED", steps_per_worker=200, replications=2)

    def test_throughput_of_several_worker_counts(self):
        reply = self.server.predictions.PredictThroughput(
            prediction.PredictThroughputRequest(profile=self.name, worker_counts=[1, 2, 4, 8, 16], options=self.options)
        )
        speeds = [each.examples_per_second for each in reply.predictions]
        self.assertEqual([each.scenario.workers for each in reply.predictions], [1, 2, 4, 8, 16])
        self.assertEqual(speeds, sorted(speeds))
        self.assertEqual(reply.predictions[0].speedup, 1)
        self.assertEqual(reply.predictions[4].most_used, max(reply.predictions[4].utilization, key=lambda each: each.fraction).resource)
        # The link bounds it: what all workers move down, the link must carry.
        content = self.server.profiles.GetProfile(store.GetProfileRequest(name=self.name))
        step_bytes = sum(op.size_bytes for op in content.operations if op.resource == profile_pb2.Operation.DOWNLINK)
        self.assertLessEqual(speeds[4] / content.batch_size * step_bytes, content.platform.bandwidth_bytes_per_second * 1.001)

    def test_throughput_over_time_is_told_where_it_is_asked_for(self):
        ask = lambda **more: self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile=self.name, options=self.options, **more))
        self.assertEqual(len(ask(worker_counts=[2]).predictions[0].throughput_over_time), 0)
        for told in ask(worker_counts=[1, 3], series_points=40).predictions:
            self.assertEqual(len(told.throughput_over_time), 40)
            ends = [point.end_seconds for point in told.throughput_over_time]
            self.assertEqual(ends, sorted(ends))
            mean = sum(point.examples_per_second for point in told.throughput_over_time) / 40
            self.assertAlmostEqual(mean / told.examples_per_second, 1, delta=0.1)
        for more, text in (({"series_points": 201}, "201 is not from 0 to 200"), ({"series_points": -1}, "-1 is not from 0"), ({"series_points": 200, "worker_counts": [1] * 101}, "20200, more than 20000")):
            with self.assertRaises(grpc.RpcError) as raised:
                ask(**more)
            details = details_of(raised.exception)
            self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_INVALID"))
            self.assertIn(text, details.violations["series_points"])

    # dPRO, Table 2: forward and backward apart. Computations of this profile do not say to which they belong; the zoo's do.
    def test_passes_are_apart_where_operations_say_which_they_are_of(self):
        reply = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile=self.name, options=self.options))
        content = self.server.profiles.GetProfile(store.GetProfileRequest(name=self.name))
        self.assertEqual(reply.predictions[0].HasField("passes"), any(getattr(op, "pass") for op in content.operations))
        zoo = store.ModelZooOptions(model="resnet18", platform={"bandwidth_bytes_per_second": 1.25e9}, communication="ALL_REDUCE")
        made = self.server.profiles.ImportProfile(iter([store.ImportProfileRequest(header={"model_zoo": zoo})])).profile
        counts = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile=made.name, worker_counts=[1, 4]))
        content = self.server.profiles.GetProfile(store.GetProfileRequest(name=made.name))
        seconds = lambda kind: sum(end - start for op, start, end in zip(content.operations, content.steps[0].start_ns, content.steps[0].end_ns) if getattr(op, "pass") == kind) / 1e9
        for told in counts.predictions:
            self.assertAlmostEqual(told.passes.forward_seconds, seconds(profile_pb2.Operation.FORWARD))
            self.assertAlmostEqual(told.passes.backward_seconds, seconds(profile_pb2.Operation.BACKWARD))
            self.assertGreater(told.passes.backward_seconds, 1.5 * told.passes.forward_seconds)

    def test_memory_is_told_by_sharding_and_workers(self):
        zoo = store.ModelZooOptions(model="resnet18", platform={"bandwidth_bytes_per_second": 1.25e9}, communication="ALL_REDUCE")
        made = self.server.profiles.ImportProfile(iter([store.ImportProfileRequest(header={"model_zoo": zoo})])).profile
        content = self.server.profiles.GetProfile(store.GetProfileRequest(name=made.name))
        parameters = sum(op.size_bytes for op in content.operations if op.collective == profile_pb2.Operation.ALL_REDUCE)

        def memory(sharding, counts=(1, 8)):
            scenario = {"all_reduce": {"sharding": sharding, "buckets": {"cap_bytes": 25 << 20}}}
            request = prediction.PredictThroughputRequest(profile=made.name, worker_counts=counts, scenario=scenario, options={"replications": 1})
            return [each.memory for each in self.server.predictions.PredictThroughput(request).predictions]

        totals = []
        for sharding, of_gradients, of_optimizer in (("SHARDING_UNSPECIFIED", 1, 1), ("OPTIMIZER", 1, 8), ("GRADIENTS", 8, 8), ("FULL", 8, 8)):
            one, eight = memory(sharding)
            self.assertEqual((one.parameter_bytes, one.gradient_bytes, one.optimizer_bytes), (parameters, parameters, 2 * parameters))
            self.assertEqual(eight.optimizer_bytes, round(2 * parameters / of_optimizer))
            if sharding != "FULL":
                self.assertEqual((eight.parameter_bytes, eight.gradient_bytes), (parameters, round(parameters / of_gradients)))
            self.assertGreater(eight.kept_bytes, sum(op.kept_bytes for op in content.operations))
            self.assertEqual(eight.kept_bytes, one.kept_bytes)
            for each in (one, eight):
                self.assertAlmostEqual(each.total_bytes, each.parameter_bytes + each.gradient_bytes + each.optimizer_bytes + each.kept_bytes, delta=2)
            totals.append(eight.total_bytes)
        self.assertEqual(totals[:3], sorted(totals[:3], reverse=True))
        self.assertLess(totals[3], totals[0])
        chosen = self.server.predictions.RecommendWorkers(recommendation_pb2.RecommendWorkersRequest(profile=made.name, constraints={"max_workers": 4}, options={"replications": 1}))
        self.assertEqual(chosen.prediction.memory.parameter_bytes, parameters)
        # Nothing of this job says what its forward pass keeps: a lower bound.
        [least] = self.server.predictions.PredictThroughput(prediction.PredictThroughputRequest(profile=self.name, options=self.options)).predictions
        self.assertFalse(least.memory.HasField("kept_bytes"))
        self.assertEqual(least.memory.total_bytes, least.memory.parameter_bytes + least.memory.gradient_bytes)

    def test_the_same_request_gives_the_same_answer(self):
        request = prediction.PredictThroughputRequest(profile=self.name, worker_counts=[3], options=self.options)
        first, second = (self.server.predictions.PredictThroughput(request) for _ in range(2))
        self.assertEqual(first.predictions[0], second.predictions[0])

    def test_a_recommended_number_of_workers_with_its_curve(self):
        reply = self.server.predictions.RecommendWorkers(
            recommendation_pb2.RecommendWorkersRequest(
                profile=self.name, options=self.options, constraints=recommendation_pb2.Constraints(min_workers=2, max_workers=9)
            )
        )
        self.assertEqual([each.scenario.workers for each in reply.frontier], list(range(2, 10)))
        knee = max(reply.frontier, key=lambda each: each.examples_per_second * each.scaling_efficiency)
        as_good = {tie.workers for tie in reply.ties} | {reply.workers}
        self.assertIn(knee.scenario.workers, as_good)
        self.assertEqual(reply.workers, min(as_good))
        self.assertIn(reply.prediction, reply.frontier)
        self.assertTrue(reply.reason)

    def test_orders_rank_every_download_once(self):
        reply = self.server.predictions.OptimizeOrder(
            order_pb2.OptimizeOrderRequest(profile=self.name, options=self.options, methods=[order_pb2.TIC, order_pb2.TAC, order_pb2.GRAPH])
        )
        content = self.server.profiles.GetProfile(store.GetProfileRequest(name=self.name))
        downloads = sorted(op.name for op in content.operations if op.resource == profile_pb2.Operation.DOWNLINK)
        self.assertEqual([order.method for order in reply.orders], [order_pb2.TIC, order_pb2.TAC, order_pb2.GRAPH])
        for order in reply.orders:
            self.assertEqual(sorted(transfer.name for transfer in order.transfers), downloads)
            self.assertLessEqual(reply.lower_makespan_ns, order.makespan_ns)
            self.assertLessEqual(order.makespan_ns, reply.upper_makespan_ns)
        self.assertEqual(min(order.makespan_ns for order in reply.orders), next(o for o in reply.orders if o.method == reply.chosen).makespan_ns)


class HealthTest(ServerTest):
    def test_the_server_and_both_services_are_serving(self):
        for service in ("", "stepcast.v1.ProfileService", "stepcast.v1.PredictionService"):
            self.assertEqual(self.server.health.Check(health_pb2.HealthCheckRequest(service=service)).status, health_pb2.HealthCheckResponse.SERVING)
        for path in ("/healthz", "/readyz"):
            self.assertEqual(self.server.http(path)[0], 200)


if __name__ == "__main__":
    unittest.main()
