"""One of the clients of a soak: all methods, valid and broken requests, each with the outcome it must have."""

import random
import socket
import threading
import uuid

from e2e import admin_grpc, admin_pb2, allocation_pb2, calibration_pb2, comparison_pb2, duration_pb2, grpc, health_pb2, health_pb2_grpc, job_service_pb2, json_format
from e2e import job_service_pb2_grpc, message, operations_pb2, operations_pb2_grpc, order_pb2, prediction, prediction_grpc, profile_pb2, recommendation_pb2
from e2e import recorded, scenario_pb2, small, store, store_grpc, trace_pb2

# Long enough on any machine; what ends a call here is never its deadline.
DEADLINE_SECONDS = 600
INVALID, NOT_FOUND, CANCELLED = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.CANCELLED
PLATFORM = profile_pb2.Platform(bandwidth_bytes_per_second=1e8)
RECORDED, SMALL = message(recorded()), message(small())
METHODS = (
    *(f"stepcast.v1.ProfileService/{method}Profile" for method in ("Create", "Get", "Delete")),
    *(f"stepcast.v1.PredictionService/{method}" for method in ("PredictThroughput", "RecommendWorkers", "OptimizeOrder", "AllocateWorkers", "CompareModels")),
    "stepcast.v1.JobService/StartJob",
    "google.longrunning.Operations/GetOperation",
    "stepcast.v1.AdminService/SetLogLevel",
)


class SoakClient(threading.Thread):
    """Goes on until it is stopped, with a connection of its own; leaves nothing in the store."""

    def __init__(self, number, seed, server, expectation):
        super().__init__(name=f"client {number}")
        self.number, self.server, self.expectation = number, server, expectation
        self.random = random.Random(f"soak {number} {seed}")
        self.made = 0
        self.over = threading.Event()
        self.steps = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("step_")]

    def run(self):
        self.channel = self.server.new_channel()
        self.profiles, self.predictions = store_grpc.ProfileServiceStub(self.channel), prediction_grpc.PredictionServiceStub(self.channel)
        self.jobs, self.operations = job_service_pb2_grpc.JobServiceStub(self.channel), operations_pb2_grpc.OperationsStub(self.channel)
        self.admin = admin_grpc.AdminServiceStub(self.channel)
        try:
            while not self.over.is_set():
                step = self.random.choice(self.steps)
                try:
                    step()
                except Exception as error:  # pylint: disable=broad-except
                    self.expectation.violate(f"{step.__name__}: {error!r}")
        finally:
            self.channel.close()

    def expect(self, name, stub, request, *expected):
        return self.expectation.expect(name, lambda: stub(request, timeout=DEADLINE_SECONDS), *expected)

    def options(self, steps=200):
        return scenario_pb2.SimulationOptions(steps_per_worker=steps, replications=1, seed=self.random.randrange(1000))

    def new_id(self):
        self.made += 1
        return f"c{self.number}-{self.made}"

    def delete(self, name):
        self.expect("DeleteProfile", self.profiles.DeleteProfile, store.DeleteProfileRequest(name=name))

    # Profiles.

    def step_store_read_predict_delete(self):
        request = store.CreateProfileRequest(profile_id=self.new_id(), profile=self.random.choice((RECORDED, SMALL)), request_id=str(uuid.uuid4()))
        name = self.expect("CreateProfile", self.profiles.CreateProfile, request).name
        self.expect("CreateProfile again", self.profiles.CreateProfile, request)
        self.expect("GetProfile", self.profiles.GetProfile, store.GetProfileRequest(name=name))
        asked = prediction.PredictThroughputRequest(profile=name, worker_counts=[1, 2], options=self.options())
        for _ in range(3):
            self.expect("PredictThroughput", self.predictions.PredictThroughput, asked)
        self.expect("ListProfiles", self.profiles.ListProfiles, store.ListProfilesRequest(page_size=3))
        self.delete(name)
        self.expect("GetProfile of none", self.profiles.GetProfile, store.GetProfileRequest(name=name), (NOT_FOUND, "PROFILE_NOT_FOUND"))

    def step_upload(self):
        self.delete(self.expect("UploadProfile", self.profiles.UploadProfile, self.chunks(RECORDED.SerializeToString())).name)

    def step_upload_cut_short(self):
        # As JSON: the binary form may be a whole profile again without its last step.
        content = json_format.MessageToJson(RECORDED).encode()
        cut = self.random.randrange(1, len(content) - 2)
        chunks = self.chunks(content[:cut], store.UploadProfileRequest.JSON)
        self.expect("UploadProfile cut short", self.profiles.UploadProfile, chunks, (INVALID, "PROFILE_MALFORMED"))

    def step_upload_broken_off(self):
        going_on = threading.Event()

        def endless():
            yield from self.chunks(RECORDED.SerializeToString()[:30000])
            going_on.wait()

        call = self.profiles.UploadProfile.future(endless(), timeout=DEADLINE_SECONDS)
        going_on.wait(self.random.uniform(0, 0.05))
        call.cancel()
        going_on.set()
        self.expectation.expect("UploadProfile broken off", lambda: raise_unless_cancelled(call))

    def step_import(self):
        options = store.ModelZooOptions(model="alexnet", platform=PLATFORM)
        header = store.ImportProfileRequest.Header(profile_id=self.new_id(), model_zoo=options)
        reply = self.expectation.expect("ImportProfile", lambda: self.profiles.ImportProfile(iter([store.ImportProfileRequest(header=header)])))
        self.delete(reply.profile.name)
        header = store.ImportProfileRequest.Header(timeline=store.TimelineOptions(model="m", batch_size=1, platform=PLATFORM))
        parts = [store.ImportProfileRequest(header=header), store.ImportProfileRequest(chunk=self.random.randbytes(3000))]
        self.expectation.expect("ImportProfile of noise", lambda: self.profiles.ImportProfile(iter(parts)), (INVALID, "IMPORT_INVALID"))

    def step_bad_profile(self):
        bad = message(small(batch_size=-1))
        self.expect("CreateProfile of bad", self.profiles.CreateProfile, store.CreateProfileRequest(profile=bad), (INVALID, "PROFILE_INVALID"))

    def chunks(self, content, encoding=store.UploadProfileRequest.BINARY):
        yield store.UploadProfileRequest(header=store.UploadProfileRequest.Header(profile_id=self.new_id(), encoding=encoding))
        for at in range(0, len(content), 7919):
            yield store.UploadProfileRequest(chunk=content[at : at + 7919])

    # Predictions.

    def step_recommend(self):
        request = recommendation_pb2.RecommendWorkersRequest(inline_profile=SMALL, options=self.options())
        request.constraints.max_workers = 4
        self.expect("RecommendWorkers", self.predictions.RecommendWorkers, request)

    def step_order(self):
        self.expect("OptimizeOrder", self.predictions.OptimizeOrder, order_pb2.OptimizeOrderRequest(inline_profile=RECORDED, options=self.options()))

    def step_allocate(self):
        request = allocation_pb2.AllocateWorkersRequest(capacity=allocation_pb2.ClusterCapacity(workers=4), options=self.options())
        for job_id in ("a", "b"):
            request.jobs.add(id=job_id, inline_profile=SMALL)
        self.expect("AllocateWorkers", self.predictions.AllocateWorkers, request)

    def step_compare(self):
        request = comparison_pb2.CompareModelsRequest(inline_profile=SMALL, worker_counts=[1, 2], options=self.options())
        self.expect("CompareModels", self.predictions.CompareModels, request)

    def step_fit(self):
        request = calibration_pb2.FitParsingOverheadRequest()
        for at in range(1, 50):
            request.measurements.add(size_bytes=1000 * at, seconds=1e-9 * at * self.random.uniform(900, 1100))
        self.expect("FitParsingOverhead", self.predictions.FitParsingOverhead, request)

    def step_fit_collectives(self):
        request = calibration_pb2.FitCollectivesRequest()
        for at in range(1, 50):
            request.measurements.add(kind="ALL_REDUCE", workers=2 + at % 4, size_bytes=1000 * at, seconds=1e-7 * at * self.random.uniform(0.9, 1.1))
        self.expect("FitCollectives", self.predictions.FitCollectives, request)

    def step_fit_contention(self):
        request = calibration_pb2.FitContentionRequest()
        for threads in (128, 256, 512, 1024):
            for overlapped in (False, True):
                request.transfers.add(threads=threads, size_bytes=1000000, seconds=(1e-3 + 0.1 / threads) * self.random.uniform(0.95, 1.05), overlapped=overlapped)
            request.slowdowns.add(threads=threads, slowdown=1 + 1e-4 * threads)
        self.expect("FitContention", self.predictions.FitContention, request)

    def step_trace(self):
        request = trace_pb2.GenerateTraceRequest(inline_profile=RECORDED, options=scenario_pb2.SimulationOptions(steps_per_worker=20))
        self.expectation.expect("GenerateTrace", lambda: sum(len(reply.chunk) for reply in self.predictions.GenerateTrace(request)))

    def step_trace_left_unread(self):
        call = self.predictions.GenerateTrace(trace_pb2.GenerateTraceRequest(inline_profile=RECORDED, options=scenario_pb2.SimulationOptions(steps_per_worker=900)))
        self.expectation.expect("GenerateTrace, first piece", lambda: next(call))
        call.cancel()

    def step_cancel(self):
        request = prediction.PredictThroughputRequest(inline_profile=RECORDED, worker_counts=[512])
        request.options.steps_per_worker, request.options.replications, request.options.seed = 10_000_000, 1000, self.random.randrange(10**9)
        call = self.predictions.PredictThroughput.future(request)
        threading.Event().wait(self.random.uniform(0, 0.1))
        call.cancel()
        self.expectation.expect("PredictThroughput cancelled", lambda: raise_unless_cancelled(call))

    def step_bad_prediction(self):
        refused = (INVALID, "REQUEST_INVALID")
        bad = prediction.PredictThroughputRequest(inline_profile=SMALL, worker_counts=[-1])
        self.expect("PredictThroughput of bad", self.predictions.PredictThroughput, bad, refused)
        unknown = prediction.PredictThroughputRequest(profile="profiles/nobody", worker_counts=[1])
        self.expect("PredictThroughput of none", self.predictions.PredictThroughput, unknown, (NOT_FOUND, "PROFILE_NOT_FOUND"))

    # Operations.

    def start_job(self, steps=200):
        asked = prediction.PredictThroughputRequest(inline_profile=RECORDED, worker_counts=[8], options=self.options(steps))
        request = job_service_pb2.StartJobRequest(request_id=str(uuid.uuid4()), predict_throughput=asked)
        return self.expect("StartJob", self.jobs.StartJob, request).name

    def wait_for(self, name):
        request = operations_pb2.WaitOperationRequest(name=name, timeout=duration_pb2.Duration(seconds=DEADLINE_SECONDS // 2))
        operation = self.expect("WaitOperation", self.operations.WaitOperation, request)
        if not operation.done:
            self.expectation.violate(f"{name} has no end")
        return operation

    def step_operation(self):
        name = self.start_job()
        if not self.wait_for(name).HasField("response"):
            self.expectation.violate(f"{name} has no response")
        self.expect("ListOperations", self.operations.ListOperations, operations_pb2.ListOperationsRequest(name="operations"))
        self.expect("DeleteOperation", self.operations.DeleteOperation, operations_pb2.DeleteOperationRequest(name=name))
        gone = (NOT_FOUND, "OPERATION_NOT_FOUND")
        self.expect("GetOperation of none", self.operations.GetOperation, operations_pb2.GetOperationRequest(name=name), gone)

    def step_operation_cancelled(self):
        name = self.start_job(steps=1_000_000)
        self.expect("GetOperation", self.operations.GetOperation, operations_pb2.GetOperationRequest(name=name))
        self.expect("CancelOperation", self.operations.CancelOperation, operations_pb2.CancelOperationRequest(name=name))
        if self.wait_for(name).error.code != CANCELLED.value[0]:
            self.expectation.violate(f"{name} was cancelled, and ended otherwise")
        self.expect("DeleteOperation", self.operations.DeleteOperation, operations_pb2.DeleteOperationRequest(name=name))

    # The server itself.

    def step_admin(self):
        self.expect("Ping", self.admin.Ping, admin_pb2.PingRequest())
        self.expect("GetServerInfo", self.admin.GetServerInfo, admin_pb2.GetServerInfoRequest())
        self.expect("ListRunning", self.admin.ListRunning, admin_pb2.ListRunningRequest())
        self.expect("SetLogLevel", self.admin.SetLogLevel, admin_pb2.SetLogLevelRequest(level=self.random.choice((admin_pb2.DEBUG, admin_pb2.WARNING))))
        self.expect("SetLogLevel of none", self.admin.SetLogLevel, admin_pb2.SetLogLevelRequest(level=17), (INVALID, "REQUEST_INVALID"))

    def step_pages(self):
        for path, status in (("/metrics", 200), ("/healthz", 200), ("/readyz", 200), ("/nothing", 404)):
            if self.server.http(path)[0] != status:
                self.expectation.violate(f"{path} is not {status}")

    def step_new_connection(self):
        channel = self.server.new_channel()
        self.expect("health Check", health_pb2_grpc.HealthStub(channel).Check, health_pb2.HealthCheckRequest())
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        self.expectation.expect("health Watch", lambda: next(watch))
        channel.close()

    def step_no_http(self):
        host, port = self.server.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) as connection:
            connection.sendall(self.random.randbytes(100))

    def step_no_request(self):
        method = self.random.choice(METHODS)
        call = self.channel.unary_unary(f"/{method}", request_serializer=bytes, response_deserializer=bytes)
        self.expect("no request", call, b"\xff\xff\xff", (INVALID, "REQUEST_MALFORMED"))
        call = self.channel.unary_unary("/stepcast.v1.ProfileService/Invent", request_serializer=bytes, response_deserializer=bytes)
        self.expect("no method", call, b"", (grpc.StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN"))


def raise_unless_cancelled(call):
    """What a cancelled call ended with, where that is not its cancellation."""
    try:
        call.result()
    except grpc.FutureCancelledError:
        pass
