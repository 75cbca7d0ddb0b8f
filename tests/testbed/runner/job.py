"""What a worker of the testbed does in a step: the operations of a recorded profile, with the mean times of its computations."""

import json
import pathlib

_RECORDINGS = pathlib.Path(__file__).resolve().parents[2] / "data" / "testbed"
# By the sizes of their tensors: AlexNet's divided by 64 and so on, so that a step takes 70 to 130 ms on a link of 1 Gbit/s.
MODELS = ("alexnet_64", "vgg11_128", "resnet50_16")


def recorded_profile(model):
    return json.loads((_RECORDINGS / f"{model}.profile.json").read_text())


class Job:
    """Operations as the node program reads them."""

    def __init__(self, model, scale=1, servers=1, download_order=()):
        """download_order: the downloads as they are requested; empty: at random."""
        profile = recorded_profile(model)
        self.model = model
        self.batch_size = profile["batch_size"]
        self.servers = servers
        self.operations = [_operation(profile, i, scale) for i in range(len(profile["operations"]))]
        if servers > 1:
            self._place(servers)
        self.download_order = list(download_order)

    def write(self, path):
        path.write_text(json.dumps({"operations": self.operations, "download_order": self.download_order}))

    def transfers(self, resource):
        return [i for i, operation in enumerate(self.operations) if operation["resource"] == resource]

    def _place(self, servers):
        """Each variable, in graph order, on the server with the fewest bytes so far (ICPE 2020, section 5)."""
        loads = [0] * servers
        place = {}
        for operation in self.operations:
            variable = operation["parameter"]
            if operation["resource"] == "DOWNLINK":
                place[variable] = loads.index(min(loads))
                loads[place[variable]] += operation["size_bytes"]
        for operation in self.operations:
            if operation["resource"] != "WORKER":
                operation["parameter_server"] = place[operation["parameter"]]


def _operation(profile, i, scale):
    operation = profile["operations"][i]
    computes = operation["resource"] in ("WORKER", "PARAMETER_SERVER")
    lengths = [step["end_ns"][i] - step["start_ns"][i] for step in profile["steps"]] if computes else [0]
    return {
        "name": operation["name"],
        "resource": operation["resource"],
        "parameter_server": 0,
        "parameter": operation.get("parameter", ""),
        "size_bytes": int(operation.get("size_bytes", 0)) * scale,
        "duration_ns": sum(lengths) // len(lengths),
        "waiting_for": operation.get("waiting_for", []),
    }
