"""The messages and stubs that protoc made for Python, and what an error of the service says."""

import dataclasses
import os
import sys

STUBS = os.environ["STEPCAST_STUBS"]
sys.path.insert(0, STUBS)

import grpc  # noqa: E402

# grpc.health lies beside the stubs, where Python does not look for parts of a package that Debian installed.
grpc.__path__.append(os.path.join(STUBS, "grpc"))

from google.protobuf import json_format  # noqa: E402
from google.rpc import error_details_pb2, status_pb2  # noqa: E402
from grpc.health.v1 import health_pb2, health_pb2_grpc  # noqa: E402, F401
from stepcast.v1 import allocation_pb2, calibration_pb2, comparison_pb2, diagnosis_pb2, layout_pb2, order_pb2, pipeline_pb2, profile_pb2, recommendation_pb2, scenario_pb2, strategy_pb2, tuning_pb2  # noqa: E402, F401
from stepcast.v1 import admin_service_pb2 as admin_pb2  # noqa: E402, F401
from stepcast.v1 import admin_service_pb2_grpc as admin_grpc  # noqa: E402, F401
from stepcast.v1 import prediction_pb2 as prediction  # noqa: E402
from stepcast.v1 import prediction_service_pb2 as trace_pb2  # noqa: E402, F401
from stepcast.v1 import prediction_service_pb2_grpc as prediction_grpc  # noqa: E402
from stepcast.v1 import profile_service_pb2 as store  # noqa: E402
from stepcast.v1 import profile_service_pb2_grpc as store_grpc  # noqa: E402


@dataclasses.dataclass
class Details:
    """What AIP-193 puts beside the code of an error."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    domain: str = ""
    metadata: dict = dataclasses.field(default_factory=dict)
    violations: dict = dataclasses.field(default_factory=dict)  # field -> description
    resource: str = ""
    retry_delay_seconds: float = 0
    quota_subjects: list = dataclasses.field(default_factory=list)


def details_of(error):
    """The details of a grpc.RpcError."""
    found = Details(code=error.code(), message=error.details())
    raw = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    for packed in status_pb2.Status.FromString(raw).details if raw else ():
        _read(packed, found)
    return found


def details_within(status):
    """The same of a google.rpc.Status that is part of a reply."""
    found = Details(code=next(code for code in grpc.StatusCode if code.value[0] == status.code), message=status.message)
    for packed in status.details:
        _read(packed, found)
    return found


def _read(packed, found):
    info, bad, resource = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.ResourceInfo()
    retry, quota = error_details_pb2.RetryInfo(), error_details_pb2.QuotaFailure()
    if packed.Unpack(info):
        found.reason, found.domain, found.metadata = info.reason, info.domain, dict(info.metadata)
    elif packed.Unpack(bad):
        found.violations = {violation.field: violation.description for violation in bad.field_violations}
    elif packed.Unpack(resource):
        found.resource = resource.resource_name
    elif packed.Unpack(retry):
        found.retry_delay_seconds = retry.retry_delay.ToTimedelta().total_seconds()
    elif packed.Unpack(quota):
        found.quota_subjects = [violation.subject for violation in quota.violations]
    else:
        raise AssertionError(f"an unknown detail: {packed.type_url}")


def prediction_request(method):
    """An empty request of a method of PredictionService: each has its file."""
    modules = (prediction, recommendation_pb2, order_pb2, tuning_pb2, allocation_pb2, calibration_pb2, comparison_pb2, diagnosis_pb2, layout_pb2, strategy_pb2, trace_pb2)
    return next(getattr(module, f"{method}Request") for module in modules if hasattr(module, f"{method}Request"))()


def from_json(message, value):
    """`message` filled from its proto JSON."""
    return json_format.ParseDict(value, message)
