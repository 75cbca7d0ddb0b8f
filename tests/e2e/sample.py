"""Profiles to send."""

import json
import os

from contract import from_json, profile_pb2

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def small(**changes):
    """The proto JSON of the smallest profile that has all there is: a download, a computation, an upload and an update."""
    profile = {
        "display_name": "small",
        "model": "tiny",
        "batch_size": 8,
        "platform": {"bandwidth_bytes_per_second": 1e8},
        "parameter_servers": 1,
        "operations": [
            {"name": "pull", "resource": "DOWNLINK", "size_bytes": 1000000, "parameter": "w"},
            {"name": "compute", "resource": "WORKER", "waiting_for": [0]},
            {"name": "push", "resource": "UPLINK", "size_bytes": 1000000, "waiting_for": [1], "parameter": "w"},
            {"name": "update", "resource": "PARAMETER_SERVER", "waiting_for": [2], "parameter": "w"},
        ],
        "steps": [{"start_ns": [0, 10000000, 30000000, 40000000], "end_ns": [10000000, 30000000, 40000000, 42000000]}],
    }
    profile.update(changes)
    return profile


def message(profile):
    """A Profile of its proto JSON."""
    return from_json(profile_pb2.Profile(), profile)


def recorded(name="alexnet_64"):
    """The proto JSON of a profile that was recorded on a real parameter server."""
    with open(os.path.join(TOP, "tests", "data", "testbed", f"{name}.profile.json"), encoding="utf-8") as file:
        return json.load(file)


def golden(name):
    with open(os.path.join(TOP, "tests", "data", "golden", f"{name}.json"), encoding="utf-8") as file:
        return json.load(file)
