"""One worker of the testbed: real DistributedDataParallel over gloo, whose forward, backward and optimizer sleep.

Takes a job a line on its standard input, as JSON, from whoever started all workers, and answers each with a line of JSON.
"""

import argparse
import ctypes
import datetime
import json
import os
import random
import sys
import time
import zlib

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import kineto_trace  # noqa: E402
import networks  # noqa: E402

# Half-widths of the uniform factors of an operation and of a step.
_VARIATION = 0.05
# Before what is recorded: DistributedDataParallel settles its buckets in the first two.
_STEPS_BEFORE_RECORDING, _STEPS_OF_WARM_UP = 4, 2
_PR_SET_TIMERSLACK = 29


class Device:
    """Operations that follow one another by planned ends, as kernels do on a stream: what the processor does between two of them delays none,
    unless it takes longer than they do."""

    def __init__(self, seed, slowdown):
        self._slowdown = slowdown
        self._random = random.Random(seed)
        self._end = 0.0
        self._factor = 1.0

    def begin_step(self):
        self._end = time.monotonic()
        self._factor = self._around_one()

    def synchronize(self):
        """The next operation begins no earlier than now."""
        self._end = max(self._end, time.monotonic())

    def compute(self, seconds):
        self._end += seconds * self._slowdown * self._factor * self._around_one()
        time.sleep(max(0.0, self._end - time.monotonic()))

    def _around_one(self):
        return 1 + self._random.uniform(-_VARIATION, _VARIATION)


def _autograd_function(kind):
    """A function of the kind's name, which is what the profiler calls it."""

    def forward(context, x, layer, *_):
        context.layer = layer
        layer.device.compute(layer.spec.forward_seconds)
        return x + 1

    def backward(context, gradient):
        context.layer.device.compute(context.layer.spec.backward_seconds)
        # New tensors on memory that stays: AccumulateGrad takes them as it takes a kernel's output, without a copy.
        return gradient, None, *(one.detach() for one in context.layer.gradients)

    return type(kind, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


_FUNCTIONS = {kind: _autograd_function(kind) for kind in ("Conv2d", "BatchNorm2d", "Linear", "Embedding", "LayerNorm")}


class TimedLayer(torch.nn.Module):
    def __init__(self, spec, device):
        super().__init__()
        self.spec = spec
        self.device = device
        for name, shape in zip(("weight", "bias"), spec.shapes):
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape)))
        self.gradients = [torch.ones(shape) for shape in spec.shapes]

    def forward(self, x):
        return _FUNCTIONS[self.spec.kind].apply(x, self, *self.parameters())


class SGD(torch.optim.Optimizer):
    """Has the name of torch's, which the profiler shows; a real one would take the processor from the other workers."""

    def __init__(self, parameters, device, seconds):
        super().__init__(parameters, {})
        self._device = device
        self._seconds = seconds

    def step(self):
        self._device.synchronize()
        self._device.compute(self._seconds)


class BucketLog:
    """A communication hook, `reduce`, that does what DistributedDataParallel does without one, and notes when each bucket was ready and when it had been
    reduced."""

    def __init__(self, workers):
        self._workers = workers
        self.buckets = []

    def reduce(self, _, bucket):
        tensor = bucket.buffer()
        entry = {"bytes": 4 * tensor.numel(), "ready": time.monotonic()}
        self.buckets.append(entry)
        tensor.div_(self._workers)

        def reduced(future):
            entry["end"] = time.monotonic()
            return future.value()[0]

        return torch.distributed.all_reduce(tensor, async_op=True).get_future().then(reduced)


def train(job, rank, workers):
    """job: network, cap_mib, steps, seed; log_buckets; by rank, where there: traces, files to record to; clocks, offset in seconds and drift of what is
    recorded; slowdowns, factors of every computation. The answer's instants are seconds of the host's clock."""
    network = networks.network(job["network"])
    device = Device(zlib.crc32(f"{job['network']} {job['seed']} {rank}".encode()), _of_rank(job, "slowdowns", rank, 1.0))
    model = DistributedDataParallel(
        torch.nn.Sequential(*(TimedLayer(layer, device) for layer in network.layers)), bucket_cap_mb=job["cap_mib"]
    )
    optimizer = SGD(model.parameters(), device, network.optimizer_seconds)
    log = BucketLog(workers)
    if job.get("log_buckets"):
        model.register_comm_hook(None, log.reduce)
    inputs = torch.zeros(network.batch, 1)
    steps = []

    def step():
        log.buckets = []
        begin = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        device.begin_step()
        model(inputs).sum().backward()
        optimizer.step()
        steps.append({"begin": begin, "end": time.monotonic(), "buckets": log.buckets})

    torch.distributed.barrier()
    trace = _of_rank(job, "traces", rank)
    if trace:
        record(step, job["steps"], trace, workers, rank, _of_rank(job, "clocks", rank, (0.0, 0.0)))
    else:
        for _ in range(job["steps"]):
            step()
    right = all(abs(float(parameter.grad.flatten()[0]) - 1) < 1e-5 for parameter in model.parameters())
    return {"steps": steps, "gradients_are_means": right}


def _of_rank(job, field, rank, default=None):
    values = job.get(field, ())
    return values[rank] if rank < len(values) else default


def record(step, steps, trace, workers, rank, clock):
    from torch.profiler import ProfilerActivity, profile, schedule

    before = _STEPS_BEFORE_RECORDING + _STEPS_OF_WARM_UP
    stages = schedule(wait=_STEPS_BEFORE_RECORDING, warmup=_STEPS_OF_WARM_UP, active=steps - before)

    def write(profiler):
        kineto_trace.write(profiler.profiler.kineto_results, trace, workers, rank, clock)

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=stages, on_trace_ready=write) as profiler:
        for _ in range(steps):
            step()
            profiler.step()


def measure_all_reduces(job, *_):
    """job: sizes in bytes, repeats. The answer has seconds of each repeat, by size."""
    seconds = []
    for size in job["sizes"]:
        tensor = torch.zeros(max(1, size // 4))
        torch.distributed.all_reduce(tensor)
        seconds.append([])
        for _ in range(job["repeats"]):
            torch.distributed.barrier()
            begin = time.monotonic()
            torch.distributed.all_reduce(tensor)
            seconds[-1].append(time.monotonic() - begin)
    return {"seconds": seconds}


def join(rank, workers, address):
    """Joins the group of all workers, whose connections are then warm."""
    torch.set_num_threads(1)
    # Sleeps end within a microsecond of what they ask for.
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1000, 0, 0, 0)
    # gloo would look for the host's own name, which is not known in a namespace.
    os.environ.update(MASTER_ADDR=address, MASTER_PORT="29500", GLOO_SOCKET_IFNAME="eth0")
    torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=60), rank=rank, world_size=workers)
    for _ in range(3):
        torch.distributed.all_reduce(torch.zeros(1_000_000))


def serve(kinds, *arguments):
    """Answers jobs by their kind, until there are no more; then ends the process."""
    print("ready", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(kinds[job["kind"]](job, *arguments)), flush=True)
    torch.distributed.barrier()
    # gloo's threads would be waited for.
    os._exit(0)


def main():
    parser = argparse.ArgumentParser(prog="worker.py", description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--address", required=True, help="of worker 0")
    options = parser.parse_args()
    join(options.rank, options.workers, options.address)
    serve({"train": train, "all_reduces": measure_all_reduces}, options.rank, options.workers)


if __name__ == "__main__":
    main()
