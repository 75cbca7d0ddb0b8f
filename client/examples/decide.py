"""A scheduler's decision in Python: store a profile, ask how many workers, and have the long question computed as a job.

decide.py HOST:PORT PROFILE.json ID MAX_WORKERS
"""

import pathlib
import sys
import time
import uuid

import grpc
from google.longrunning import operations_pb2, operations_pb2_grpc
from google.protobuf import json_format
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from stepcast.v1 import (
    job_service_pb2,
    job_service_pb2_grpc,
    prediction_pb2,
    prediction_service_pb2_grpc,
    profile_pb2,
    profile_service_pb2,
    profile_service_pb2_grpc,
    recommendation_pb2,
    scenario_pb2,
)

# Calls that only read are repeated by gRPC itself after UNAVAILABLE.
SERVICE_CONFIG = pathlib.Path(__file__).resolve().parents[2] / "deploy/client/service_config.json"


def details_of(error, kind):
    """The first detail of a kind in an error, or None."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                message = kind()
                if detail.Unpack(message):
                    return message
    return None


def call(method, request, seconds, attempts=5):
    """Calls, and calls again for as long as the server says when (RetryInfo), within the deadline."""
    deadline = time.monotonic() + seconds
    for attempt in range(attempts):
        try:
            return method(request, timeout=deadline - time.monotonic())
        except grpc.RpcError as error:
            wait = details_of(error, error_details_pb2.RetryInfo)
            if wait is None or attempt == attempts - 1:
                raise
            pause = wait.retry_delay.ToTimedelta().total_seconds()
            if time.monotonic() + pause >= deadline:
                raise
            time.sleep(pause)


def store(channel, path, profile_id):
    """Stores the profile of a file under an id, in place of what is there."""
    profile = json_format.Parse(pathlib.Path(path).read_text(encoding="utf-8"), profile_pb2.Profile())
    profile.name = f"profiles/{profile_id}"
    request = profile_service_pb2.UpdateProfileRequest(profile=profile, allow_missing=True, request_id=str(uuid.uuid4()))
    return call(profile_service_pb2_grpc.ProfileServiceStub(channel).UpdateProfile, request, 30).name


def recommend(channel, name, most):
    """The number of workers for a job; the best that one second of simulation can say."""
    request = recommendation_pb2.RecommendWorkersRequest(
        profile=name,
        constraints=recommendation_pb2.Constraints(max_workers=most),
        options=scenario_pb2.SimulationOptions(time_budget=Duration(seconds=1)),
    )
    return call(prediction_service_pb2_grpc.PredictionServiceStub(channel).RecommendWorkers, request, 2)


def curve(channel, name, most):
    """The whole curve, computed by the server as a job that outlives this call."""
    request = job_service_pb2.StartJobRequest(
        request_id=str(uuid.uuid4()),
        predict_throughput=prediction_pb2.PredictThroughputRequest(profile=name, worker_counts=range(1, most + 1)),
    )
    job = call(job_service_pb2_grpc.JobServiceStub(channel).StartJob, request, 10)
    operations = operations_pb2_grpc.OperationsStub(channel)
    while not job.done:
        job = call(operations.WaitOperation, operations_pb2.WaitOperationRequest(name=job.name, timeout=Duration(seconds=20)), 30)
    if job.HasField("error"):
        raise RuntimeError(job.error.message)
    reply = prediction_pb2.PredictThroughputResponse()
    job.response.Unpack(reply)
    return reply.predictions


def main(server, path, profile_id, most):
    options = [("grpc.service_config", SERVICE_CONFIG.read_text(encoding="utf-8"))]
    with grpc.insecure_channel(server, options=options) as channel:
        try:
            name = store(channel, path, profile_id)
            reply = recommend(channel, name, most)
            print(f"{name}: {reply.workers} workers, {reply.prediction.examples_per_second:.1f} examples/s")
            for prediction in curve(channel, name, most):
                run = prediction.run_interval
                print(f"{prediction.scenario.workers:3d} workers: {prediction.examples_per_second:7.1f} examples/s, "
                      f"95 % of runs {run.lower:.1f} to {run.upper:.1f}")  # fmt: skip
        except grpc.RpcError as error:
            print(f"error: {error.code().name}: {error.details()}")
            faults = details_of(error, error_details_pb2.BadRequest)
            for fault in faults.field_violations if faults else ():
                print(f"  {fault.field}: {fault.description}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], int(sys.argv[4])))
