"""What Stepcast and the models it is compared with predict for a measured point."""

import json
import statistics
import subprocess

SEEDS = 8
# The payload of the largest segment that Linux hands to a queue as one.
TURN_BYTES = 65_160


class Prediction:
    """Steps per second: mean over restarts and seeds, and its standard error; where 95 % of single restarts fall; and the baselines' by name."""

    def __init__(self, reply):
        runs = [rate for restart in reply["predicted"] for rate in restart]
        self.mean = statistics.fmean(runs)
        # Of the seeds: the start offsets are those of the measurement.
        self.standard_error = (statistics.fmean(statistics.variance(restart) for restart in reply["predicted"]) / len(runs)) ** 0.5
        self.run_interval = (reply["run_interval"]["lower"], reply["run_interval"]["upper"])
        # Of a steady state, with staggered and with simultaneous starts.
        self.steady = reply.get("steady", {})
        self.baselines = reply.get("baselines", {})


def downloads_in_order(predictor, profile, order):
    """The downloads, as operations of the profile, in which a scenario's order has them requested. predictor: the program."""
    return _asked(predictor, {"profile": profile, "downloads_in_order": order})


def predict(
    predictor, profile, *, start_offsets_ns, window, servers=1, order="RECORDED", sharing="TURNS", baselines=False, window_bytes=0
):
    """predictor: the program. start_offsets_ns: by restart, one a worker. window_bytes: of flow control, 0: none. Raises RuntimeError with what it says
    where it fails."""
    request = {
        "profile": profile,
        "workers": len(start_offsets_ns[0]),
        "parameter_servers": servers,
        "transfer_order": order,
        "link_sharing": sharing,
        "turn_bytes": TURN_BYTES,
        "window_seconds": window,
        "seeds": SEEDS,
        "restarts": [{"start_offsets_ns": offsets} for offsets in start_offsets_ns],
        "baselines": baselines,
    }
    if window_bytes > 0:
        request["window_bytes"] = window_bytes
    return Prediction(_asked(predictor, request))


def _asked(predictor, request):
    reply = subprocess.run([predictor], input=json.dumps(request), capture_output=True, text=True, check=False)
    if reply.returncode != 0:
        raise RuntimeError(f"no prediction: {reply.stderr.strip()}")
    return json.loads(reply.stdout)
