"""A scheduler's loop in Python: every few seconds, how many workers should each job get?

scheduler.py HOST:PORT SECONDS ROUNDS PROFILE...
"""

import queue
import sys
import time

import grpc
from google.protobuf.duration_pb2 import Duration
from stepcast.v1 import prediction_service_pb2_grpc, recommendation_pb2, scenario_pb2

options = scenario_pb2.SimulationOptions(time_budget=Duration(seconds=1))
server, seconds, rounds, *jobs = sys.argv[1:]
with grpc.insecure_channel(server) as channel:
    predictions = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    for _ in range(int(rounds)):
        began, answers = time.monotonic(), queue.SimpleQueue()
        for job in jobs:
            asked = time.monotonic()
            request = recommendation_pb2.RecommendWorkersRequest(profile=f"profiles/{job}", options=options)
            call = predictions.RecommendWorkers.future(request, timeout=2)
            call.add_done_callback(lambda call, job=job, asked=asked: answers.put((job, (call, time.monotonic() - asked))))
        answered = dict(answers.get() for _ in jobs)
        for job in jobs:
            call, took = answered[job]
            if call.code() is not grpc.StatusCode.OK:
                print(f"{job}: {call.code().name}")
                continue
            reply = call.result()
            print(f"{job}: {reply.workers} workers, {reply.prediction.examples_per_second:.6f} examples/s, {1e3 * took:.6f} ms")
        print(f"round: {1e3 * (time.monotonic() - began):.6f} ms", flush=True)
        time.sleep(float(seconds))
