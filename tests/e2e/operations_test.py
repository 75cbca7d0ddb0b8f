"""Jobs that outlive their call: the same answers as the unary methods, through waiting, cancelling, stopping and kill -9."""

import unittest
import uuid

from contract import allocation_pb2, comparison_pb2, details_of, details_within, diagnosis_pb2, grpc, order_pb2, prediction, recommendation_pb2, scenario_pb2
from sample import message, recorded, small
from patience import PASSING_SECONDS
from stepcastd import PATIENCE_SECONDS, ServerTest, eventually

from google.longrunning import operations_pb2, operations_pb2_grpc
from google.protobuf import duration_pb2
from stepcast.v1 import job_service_pb2, job_service_pb2_grpc

START = job_service_pb2.StartJobRequest
State = job_service_pb2.JobMetadata

# Some seconds of simulation: under way when the next thing happens, whatever the machine does.
LONG_STEPS = 15000
REPLICATIONS = 4


def prediction_of(profile, workers=(1, 2), **options):
    return prediction.PredictThroughputRequest(
        inline_profile=message(profile), worker_counts=workers, options=scenario_pb2.SimulationOptions(**options)
    )


def long_prediction(replications=REPLICATIONS):
    return prediction_of(recorded(), [16], steps_per_worker=LONG_STEPS, replications=replications)


def comparable(reply):
    """A reply without what tells one computation of it from another."""
    copy = type(reply)()
    copy.CopyFrom(reply)
    if hasattr(copy, "simulation"):
        copy.simulation.ClearField("engine_seconds")
        copy.simulation.ClearField("cached")
    return copy


class OperationsTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.connect()

    def connect(self):
        self.jobs = job_service_pb2_grpc.JobServiceStub(self.server.channel)
        self.operations = operations_pb2_grpc.OperationsStub(self.server.channel)

    def restart(self):
        self.server.start()
        self.connect()

    def start(self, request_id="", **computation):
        return self.jobs.StartJob(START(request_id=request_id, **computation), timeout=PATIENCE_SECONDS)

    def get(self, name):
        return self.operations.GetOperation(operations_pb2.GetOperationRequest(name=name), timeout=PATIENCE_SECONDS)

    def wait(self, name, seconds=None):
        timeout = None if seconds is None else duration_pb2.Duration(seconds=seconds)
        return self.operations.WaitOperation(operations_pb2.WaitOperationRequest(name=name, timeout=timeout), timeout=PATIENCE_SECONDS)

    def cancel(self, name):
        self.operations.CancelOperation(operations_pb2.CancelOperationRequest(name=name), timeout=PATIENCE_SECONDS)

    def delete(self, name):
        self.operations.DeleteOperation(operations_pb2.DeleteOperationRequest(name=name), timeout=PATIENCE_SECONDS)

    def list(self, **request):
        return self.operations.ListOperations(operations_pb2.ListOperationsRequest(**request), timeout=PATIENCE_SECONDS)

    def metadata(self, operation):
        metadata = job_service_pb2.JobMetadata()
        self.assertTrue(operation.metadata.Unpack(metadata))
        return metadata

    def state(self, name):
        return self.metadata(self.get(name)).state

    def reply(self, operation, reply):
        self.assertTrue(operation.done)
        self.assertEqual(operation.WhichOneof("result"), "response", operation)
        self.assertTrue(operation.response.Unpack(reply), operation.response.type_url)
        return reply

    def refused(self, call):
        with self.assertRaises(grpc.RpcError) as caught:
            call()
        return details_of(caught.exception)

    def until_running(self, name):
        eventually(lambda: self.state(name) == State.RUNNING, "the operation runs")


class ComputedTest(OperationsTest):
    flags = ("--replica-id", "tester")

    def test_a_job_answers_what_the_unary_method_does(self):
        recommend = recommendation_pb2.RecommendWorkersRequest(inline_profile=message(small()))
        recommend.constraints.max_workers = 4
        order = order_pb2.OptimizeOrderRequest(inline_profile=message(small()))
        allocate = allocation_pb2.AllocateWorkersRequest(capacity=allocation_pb2.ClusterCapacity(workers=4))
        for job_id in ("a", "b"):
            allocate.jobs.add(id=job_id, inline_profile=message(small()))
        cases = {
            "predict_throughput": (prediction_of(small()), self.server.predictions.PredictThroughput),
            "recommend_workers": (recommend, self.server.predictions.RecommendWorkers),
            "optimize_order": (order, self.server.predictions.OptimizeOrder),
            "allocate_workers": (allocate, self.server.predictions.AllocateWorkers),
            "compare_models": (comparison_pb2.CompareModelsRequest(inline_profile=message(small())), self.server.predictions.CompareModels),
            "diagnose_job": (diagnosis_pb2.DiagnoseJobRequest(inline_profile=message(small())), self.server.predictions.DiagnoseJob),
        }
        for name, (request, unary) in cases.items():
            with self.subTest(name):
                started = self.start(**{name: request})
                self.assertRegex(started.name, r"^operations/o-[0-9a-f]{16}-[0-9a-f]{16}$")
                self.assertFalse(started.done)
                expected = unary(request, timeout=PATIENCE_SECONDS)
                done = self.wait(started.name)
                self.assertEqual(comparable(self.reply(done, type(expected)())), comparable(expected))
                metadata = self.metadata(done)
                self.assertEqual((metadata.state, metadata.attempts), (State.SUCCEEDED, 1))
                self.assertEqual(metadata.method, "".join(part.title() for part in name.split("_")))
                self.assertTrue(metadata.replica.startswith("tester-"), metadata.replica)
                times = [metadata.create_time, metadata.start_time, metadata.end_time]
                self.assertEqual(sorted(times, key=lambda time: time.ToNanoseconds()), times)
                self.assertEqual(self.get(started.name), done)

    def test_a_wrong_request_ends_its_operation_as_it_fails_its_call(self):
        for request in (
            prediction.PredictThroughputRequest(profile="profiles/No/Name", worker_counts=[1]),
            prediction.PredictThroughputRequest(inline_profile=message(small(batch_size=-1)), worker_counts=[-1]),
            prediction.PredictThroughputRequest(),
        ):
            with self.subTest(request=str(request)[:80]):
                expected = self.refused(lambda: self.server.predictions.PredictThroughput(request, timeout=PATIENCE_SECONDS))
                done = self.wait(self.start(predict_throughput=request).name)
                self.assertTrue(done.done)
                self.assertEqual(details_within(done.error), expected)
                self.assertEqual(self.metadata(done).state, State.FAILED)

    # 5 was the number of `synchronization` in a scenario: what is kept is upgraded, what is sent is refused.
    def test_about_a_profile_that_is_not_there_nothing_is_started(self):
        request = prediction.PredictThroughputRequest(profile="profiles/nobody", worker_counts=[1])
        expected = self.refused(lambda: self.server.predictions.PredictThroughput(request, timeout=PATIENCE_SECONDS))
        self.assertEqual((expected.code, expected.reason), (grpc.StatusCode.NOT_FOUND, "PROFILE_NOT_FOUND"))
        self.assertEqual(self.refused(lambda: self.start(predict_throughput=request)), expected)

    def test_what_runs_is_cancelled_and_nothing_of_it_is_left(self):
        name = self.start(predict_throughput=long_prediction(replications=50)).name
        self.until_running(name)
        self.assertEqual(self.refused(lambda: self.delete(name)).reason, "OPERATION_NOT_DONE")
        self.cancel(name)
        done = self.wait(name)
        self.assertTrue(done.done)
        self.assertEqual(details_within(done.error).code, grpc.StatusCode.CANCELLED)
        self.assertEqual(self.metadata(done).state, State.JOB_CANCELLED)
        self.cancel(name)
        self.assertEqual(self.get(name), done)
        self.delete(name)
        gone = self.refused(lambda: self.get(name))
        self.assertEqual((gone.code, gone.reason, gone.resource), (grpc.StatusCode.NOT_FOUND, "OPERATION_NOT_FOUND", name))

    def test_kill_nine_in_the_middle_and_the_next_server_ends_with_the_same_answer(self):
        request = long_prediction()
        expected = self.server.predictions.PredictThroughput(request, timeout=PATIENCE_SECONDS)
        self.server.kill()
        self.restart()
        name = self.start(predict_throughput=request).name
        self.until_running(name)
        eventually(lambda: self.metadata(self.get(name)).attempts == 1, "the first attempt")
        self.server.kill()
        self.restart()
        done = self.wait(name)
        self.assertEqual(comparable(self.reply(done, prediction.PredictThroughputResponse())), comparable(expected))
        self.assertEqual(self.metadata(done).attempts, 2)

    def test_a_server_that_is_stopped_gives_back_what_it_computes(self):
        name = self.start(predict_throughput=long_prediction()).name
        self.until_running(name)
        waiting = self.operations.WaitOperation.future(operations_pb2.WaitOperationRequest(name=name), timeout=PATIENCE_SECONDS)
        eventually(lambda: self.server.metric("grpc_server_started_total", grpc_method="WaitOperation") == 1, "the call waits")
        self.server.terminate()
        self.assertEqual(details_of(waiting.exception()).reason, "SHUTTING_DOWN")
        self.assertEqual(self.server.wait(), 0, self.server.errors())
        self.server.process.stdout.close()
        self.server.channel.close()
        self.restart()
        done = self.wait(name)
        self.assertGreater(self.reply(done, prediction.PredictThroughputResponse()).predictions[0].steps_per_second, 0)
        self.assertEqual(self.metadata(done).attempts, 2)

    def test_metrics_tell_of_operations(self):
        self.wait(self.start(predict_throughput=prediction_of(small())).name)
        eventually(lambda: self.server.metric("stepcast_operation_attempts_ended_total", outcome="succeeded") == 1, "the attempt is counted")
        self.assertEqual(self.server.metric("stepcast_operation_attempts_total"), 1)
        self.assertEqual(self.server.metric("stepcast_operations", state="succeeded"), 1)
        self.assertEqual(self.server.metric("stepcast_operations"), 1)
        self.assertEqual(self.server.metric("stepcast_operation_queue_age_seconds"), 0)


class QueuedTest(OperationsTest):
    """On a server that computes none, what is started waits."""

    flags = ("--max-running-operations", "0", "--max-open-operations", "4", "--max-job-bytes", "20000", "--max-waiting-calls", "1")

    def queue(self, request_id="", workers=1):
        return self.start(request_id, predict_throughput=prediction_of(small(), [workers]))

    def test_waits_no_longer_than_it_is_told(self):
        name = self.queue().name
        for seconds in (0, 1):
            waited = self.wait(name, seconds)
            self.assertFalse(waited.done)
            self.assertEqual(waited.name, name)
            self.assertEqual(self.metadata(waited).state, State.QUEUED)

    def test_the_time_of_a_call_is_that_of_its_wait_where_it_says_none_or_more(self):
        name = self.queue().name
        for timeout in (None, duration_pb2.Duration(seconds=PATIENCE_SECONDS)):
            request = operations_pb2.WaitOperationRequest(name=name, timeout=timeout)

            def is_answered(request=request):
                try:
                    return not self.operations.WaitOperation(request, timeout=PASSING_SECONDS).done
                except grpc.RpcError as error:  # of a machine that is too busy to answer in time
                    self.assertEqual(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
                    return False

            eventually(is_answered, "the operation as it is at the end of the call's time")

    def test_who_waits_is_told_when_it_is_cancelled_and_too_many_may_not_wait(self):
        name = self.queue().name
        request = operations_pb2.WaitOperationRequest(name=name)
        calls = [self.operations.WaitOperation.future(request, timeout=PATIENCE_SECONDS) for _ in range(2)]
        eventually(lambda: any(call.done() for call in calls), "one of two waits too many")
        refused, waiting = sorted(calls, key=lambda call: not call.done())
        self.assertEqual(details_of(refused.exception()).reason, "TOO_MANY_WAITING")
        self.assertEqual(self.server.metric("stepcast_rejections_total", reason="TOO_MANY_WAITING"), 1)
        self.cancel(name)
        self.assertEqual(details_within(waiting.result().error).code, grpc.StatusCode.CANCELLED)

    def test_a_repeated_request_is_the_same_operation(self):
        request_id = str(uuid.uuid4())
        first = self.queue(request_id)
        self.assertEqual(self.queue(request_id), first)
        self.assertNotEqual(self.queue().name, first.name)
        reused = self.refused(lambda: self.queue(request_id, workers=2))
        self.assertEqual((reused.code, reused.reason), (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_ID_REUSED"))
        self.assertIn("request_id", reused.violations)
        self.cancel(first.name)
        self.assertEqual(self.queue(request_id), self.get(first.name))

    def test_lists_page_by_page_across_a_restart(self):
        names = [self.queue(workers=count).name for count in (1, 2, 3)]
        self.server.kill()
        self.restart()
        page = self.list(page_size=2)
        rest = self.list(page_size=2, page_token=page.next_page_token, name="operations")
        self.assertEqual([operation.name for operation in [*page.operations, *rest.operations]], names)
        self.assertEqual(rest.next_page_token, "")
        self.assertEqual(page.operations[0], self.get(names[0]))

    def test_limits_are_named(self):
        for count in range(1, 5):
            self.queue(workers=count)
        full = self.refused(self.queue)
        self.assertEqual((full.code, full.reason, full.quota_subjects), (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL", ["max_open_operations"]))
        self.assertGreater(full.retry_delay_seconds, 0)
        large = self.refused(lambda: self.start(predict_throughput=prediction_of(recorded())))
        self.assertEqual((large.code, large.reason, large.quota_subjects), (grpc.StatusCode.INVALID_ARGUMENT, "JOB_TOO_LARGE", ["max_job_bytes"]))

    def test_bad_requests_name_what_is_wrong(self):
        name = self.queue().name
        cases = {
            "computation": lambda: self.jobs.StartJob(START()),
            "request_id": lambda: self.queue("no-uuid"),
            "filter": lambda: self.list(filter="done=true"),
            "page_size": lambda: self.list(page_size=-1),
            "page_token": lambda: self.list(page_token="invented"),
            "timeout": lambda: self.wait(name, -1),
        }
        for field, call in cases.items():
            with self.subTest(field):
                details = self.refused(call)
                self.assertEqual((details.code, details.reason), (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_INVALID"))
                self.assertEqual(list(details.violations), [field])
        self.assertEqual(list(self.refused(lambda: self.list(name="profiles")).violations), ["name"])
        for bad in ("", "operations/", "operations/UPPER", "operations/a/b", "profiles/a", "operations/" + "x" * 100, "operations/\u00e9"):
            for call in (self.get, self.wait, self.cancel, self.delete):
                with self.subTest(name=bad, call=call.__name__):
                    details = self.refused(lambda: call(bad))
                    self.assertEqual((details.code, list(details.violations)), (grpc.StatusCode.INVALID_ARGUMENT, ["name"]))
        for call in (self.get, self.wait, self.cancel, self.delete):
            details = self.refused(lambda: call("operations/o-none"))
            self.assertEqual((details.code, details.resource), (grpc.StatusCode.NOT_FOUND, "operations/o-none"))

    def test_bytes_that_are_no_request_are_malformed(self):
        for method in (
            "stepcast.v1.JobService/StartJob",
            *(f"google.longrunning.Operations/{verb}Operation" for verb in ("Get", "Delete", "Cancel", "Wait")),
            "google.longrunning.Operations/ListOperations",
        ):
            with self.subTest(method):
                call = self.server.channel.unary_unary(f"/{method}", request_serializer=bytes, response_deserializer=bytes)
                self.assertEqual(self.refused(lambda: call(b"\xff\xff\xff", timeout=PATIENCE_SECONDS)).reason, "REQUEST_MALFORMED")


class WaitingTest(OperationsTest):
    """On a server that computes none, and where fifty calls may wait."""

    flags = ("--max-running-operations", "0", "--max-waiting-calls", "50")

    def test_a_place_is_free_once_its_caller_has_been_told(self):
        name = self.start(predict_throughput=prediction_of(small())).name
        request = operations_pb2.WaitOperationRequest(name=name, timeout=duration_pb2.Duration(nanos=100_000_000))
        begun = [self.operations.WaitOperation.future(request, timeout=PATIENCE_SECONDS) for _ in range(50)]
        # All are told at one time, and whoever has heard comes at once for his place.
        for _ in range(10):
            again = []
            for call in begun:
                self.assertFalse(call.result().done)
                again.append(self.operations.WaitOperation.future(request, timeout=PATIENCE_SECONDS))
            begun = again
        for call in begun:
            self.assertFalse(call.result().done)


if __name__ == "__main__":
    unittest.main()
