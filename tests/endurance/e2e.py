"""What tests/e2e has for runs that last: the real server, messages and stubs, profiles to send, a private PostgreSQL."""

import os
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))

from contract import admin_grpc, admin_pb2, allocation_pb2, calibration_pb2, comparison_pb2, details_of, grpc  # noqa: E402, F401
from contract import health_pb2, health_pb2_grpc, json_format, order_pb2, prediction, prediction_grpc, profile_pb2  # noqa: E402, F401
from contract import recommendation_pb2, scenario_pb2, store, store_grpc, trace_pb2  # noqa: E402, F401
from operations_test import comparable  # noqa: E402, F401
from postgres import Postgres  # noqa: E402, F401
from sample import message, recorded, small  # noqa: E402, F401
from stepcastd import PATIENCE_SECONDS, Server, eventually  # noqa: E402, F401

from google.longrunning import operations_pb2, operations_pb2_grpc  # noqa: E402, F401
from google.protobuf import duration_pb2  # noqa: E402, F401
from stepcast.v1 import job_service_pb2, job_service_pb2_grpc  # noqa: E402, F401

with open(os.path.join(TOP, "deploy", "client", "service_config.json"), encoding="utf-8") as file:
    SERVICE_CONFIG = file.read()
