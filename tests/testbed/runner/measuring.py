"""Measures points on a real network: restarts with random start offsets, over one window of time."""

import dataclasses
import random
import statistics

import nodes
import packets
from job import MODELS, Job
from network import Network
from points import PRECISION, SCALE_OF_LARGE

_LATEST_START_NS = 200_000_000
# Steps of the one-worker recording, and how long they take at most.
RECORDED_STEPS = 60
_RECORDING_SECONDS = 10.0
# Until connections have found their pace.
SETTLING_STEPS = 4
SWITCHING_STEPS = 10


@dataclasses.dataclass
class Measurement:
    rates: list  # steps/s of all workers, by restart
    start_offsets_ns: list  # by restart, one a worker
    spread: float  # the fastest worker's rate over the slowest's, mean over restarts
    tcp_timeouts: int = 0

    @property
    def mean(self):
        return statistics.fmean(self.rates)

    @property
    def standard_error(self):
        return statistics.stdev(self.rates) / len(self.rates) ** 0.5


def is_precise(rates):
    """Whether the mean's standard error is below the share that a verdict needs."""
    return statistics.stdev(rates) / len(rates) ** 0.5 <= PRECISION * statistics.fmean(rates)


class Laboratory:
    """node: the program. quiet: collects what tells a noisy machine."""

    def __init__(self, node, quiet):
        self._node = node
        self._quiet = quiet

    def record(self, model):
        """One worker's run, from which its profile is made, and its job."""
        job = Job(model)
        with Network(1, 1) as network:
            run = nodes.run(self._node, network, job, start_offsets_ns=[0], seconds=_RECORDING_SECONDS, seed=99, most_steps=RECORDED_STEPS + SETTLING_STEPS)
            self._quiet.note_timeouts(network.tcp_timeouts())
        self._quiet.note_one_worker(run)
        return job, run

    def record_switching(self, folder):
        """One worker of a job whose tensors exceed the window, with its packets: job, run, and the window that the packets show in each step."""
        job = Job(MODELS[0], scale=SCALE_OF_LARGE)
        path = folder / "packets.pcap"
        with Network(1, 1) as network, packets.captured(network, 0, path):
            run = nodes.run(self._node, network, job, start_offsets_ns=[0], seconds=2 * _RECORDING_SECONDS, seed=98, most_steps=SWITCHING_STEPS + SETTLING_STEPS)
        # Every call is a stream, and clients' are odd.
        streams_of_step = len(job.transfers("DOWNLINK")) + len(job.transfers("UPLINK"))
        # Once to warm up, then the steps that are left out.
        windows = packets.windows_by_step(path, first_stream=2 * (1 + SETTLING_STEPS) * streams_of_step, streams_of_step=streams_of_step)
        path.unlink()
        return job, run, windows[:SWITCHING_STEPS]

    def measure(self, point, download_order=()):
        """download_order: as a Job's."""
        job = Job(point.model, scale=point.scale, servers=point.servers, download_order=download_order)
        rates, offsets, spreads = [], [], []
        with Network(point.servers, point.workers, first_come=point.first_come) as network:
            for restart in range(point.most_restarts):
                if restart >= point.restarts and is_precise(rates):
                    break
                rng = random.Random(f"{point} {restart}")
                planned = [0 if point.together else rng.randrange(point.scale * _LATEST_START_NS) for _ in range(point.workers)]
                run = nodes.run(self._node, network, job, start_offsets_ns=planned, seconds=point.window[1], seed=restart + 1)
                if point.workers == 1:
                    self._quiet.note_one_worker(run)
                of_workers = run.steps_per_second(point.window)
                rates.append(sum(of_workers))
                offsets.append(run.start_offsets_ns())
                spreads.append(max(of_workers) / min(of_workers))
            timeouts = network.tcp_timeouts()
            self._quiet.note_timeouts(timeouts)
        return Measurement(rates, offsets, statistics.fmean(spreads), timeouts)
