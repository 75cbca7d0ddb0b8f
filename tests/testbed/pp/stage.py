"""One stage of one replica: a real pipeline over gloo's send and receive, real DistributedDataParallel among the replicas of a stage.

Activations, their gradients, parameters, buckets and all-reduces are real; forward, backward and optimizer sleep. A worker is replica x stages +
stage. Takes a job a line on its standard input, as JSON, from whoever started all workers, and answers each with a line of JSON.
"""

import argparse
import ctypes
import datetime
import json
import os
import pathlib
import sys
import time
import zlib

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "ddp"))

import torch  # noqa: E402
import torch.distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import chains  # noqa: E402
import worker  # noqa: E402

_KINDS = ("Conv2d", "Linear", "LayerNorm", "Embedding", "SelfAttention", "FeedForward")


def order(schedule, stage, stages, micro_batches):
    """What a stage computes in a step: ("F" or "B", micro-batch)."""
    warm_up = micro_batches if schedule == "gpipe" else min(stages - 1 - stage, micro_batches)
    steady = [one for i in range(micro_batches - warm_up) for one in (("F", warm_up + i), ("B", i))]
    return [("F", i) for i in range(warm_up)] + steady + [("B", i) for i in range(micro_batches - warm_up, micro_batches)]


def _autograd_function(kind):
    """A function of the kind's name, which is what the profiler calls it."""

    def forward(context, x, layer, *_):
        context.layer = layer
        layer.device.compute(layer.spec.forward_seconds)
        return layer.outputs.detach()

    def backward(context, _):
        layer = context.layer
        layer.device.compute(layer.spec.backward_seconds)
        gradient = layer.input_gradient.detach() if context.needs_input_grad[0] else None
        return gradient, None, *layer.gradients_of_micro_batch()

    return type(kind, (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


_FUNCTIONS = {kind: _autograd_function(kind) for kind in _KINDS}


class TimedLayer(torch.nn.Module):
    """What it hands on is filled with its number, by which whoever receives it knows it."""

    def __init__(self, spec, number, batch, inputs, device):
        super().__init__()
        self.spec = spec
        self.device = device
        for i, shape in enumerate(spec.shapes):
            self.register_parameter(f"{('weight', 'bias')[i % 2]}{i // 2 or ''}", torch.nn.Parameter(torch.zeros(shape)))
        self.outputs = torch.full((batch, *spec.outputs), float(number + 1))
        self.input_gradient = torch.full(inputs, float(-number - 1))
        self._gradients = [torch.ones(shape) for shape in spec.shapes]
        self._first = [torch.ones(shape) for shape in spec.shapes]
        self._is_first = True

    def begin_step(self):
        self._is_first = True

    def gradients_of_micro_batch(self):
        # New tensors on memory that stays. AccumulateGrad keeps the first micro-batch's and adds the others' to them in place, so those get memory of
        # their own, of which the two elements that are checked are set anew.
        if not self._is_first:
            return [one.detach() for one in self._gradients]
        self._is_first = False
        for one in self._first:
            one.flatten()[0] = one.flatten()[-1] = 1.0
        return [one.detach() for one in self._first]

    def forward(self, x):
        return _FUNCTIONS[self.spec.kind].apply(x, self, *self.parameters())


class Received(torch.autograd.Function):
    """A stage's input, whose gradient is handed to the stage within the backward as soon as it is there. A hook on a leaf would make AccumulateGrad
    clone it."""

    @staticmethod
    def forward(context, x, ready):
        context.ready = ready
        return x.detach()

    @staticmethod
    def backward(context, gradient):
        context.ready(gradient)
        return None, None


class Stage:
    """job: chain, schedule, receives (eager, late, fused or paired), micro_batches, cap_mib, seed."""

    def __init__(self, job, rank, stages, group):
        self._job = job
        self._rank, self._stages, self._stage = rank, stages, rank % stages
        self._micro_batches = job["micro_batches"]
        chain = chains.chain(job["chain"])
        self._first, self._end = chain.boundaries(stages)[self._stage : self._stage + 2]
        self._device = worker.Device(zlib.crc32(f"{job['chain']} {job['seed']} {rank}".encode()), 1.0)
        layers = [TimedLayer(chain.layers[i], i, chain.batch, chain.shape_into(i), self._device) for i in range(self._first, self._end)]
        self._model = DistributedDataParallel(torch.nn.Sequential(*layers), process_group=group, bucket_cap_mb=job["cap_mib"])
        seconds = chain.optimizer_seconds * chains.share_of(chain, self._stage, stages)
        self._optimizer = worker.SGD(self._model.parameters(), self._device, seconds)
        self._inputs = torch.zeros(chain.shape_into(0))
        self._received = {
            kind: [torch.zeros(chain.shape_into(layer)) for _ in range(self._micro_batches)] if self._takes(kind) else []
            for kind, layer in (("F", self._first), ("B", self._end))
        }
        self._outputs, self._gradients, self._last_send = {}, {}, None

    def step(self):
        self._outputs, self._gradients, self._last_send = {}, {}, None
        self._optimizer.zero_grad(set_to_none=True)
        self._device.begin_step()
        for layer in self._model.module:
            layer.begin_step()
        begin = time.monotonic()
        works = order(self._job["schedule"], self._stage, self._stages, self._micro_batches)
        if self._job["receives"] in ("fused", "paired"):
            self._run_fused(works, receive_first=self._job["receives"] == "paired")
        else:
            self._run(works, self._job["receives"] == "eager")
        self._optimizer.step()
        return {"begin": begin, "end": time.monotonic()}

    def is_right(self):
        """Gradients are means over replicas and sums over micro-batches, and what came is what the neighbour's layer hands on."""
        sums = all(abs(float(parameter.grad.flatten()[i]) - self._micro_batches) < 1e-4 for parameter in self._model.parameters() for i in (0, -1))
        expected = {"F": self._first, "B": -self._end - 1}
        return sums and all(float(tensor.flatten()[i]) == expected[kind] for kind, all_ in self._received.items() for tensor in all_ for i in (0, -1))

    def _takes(self, kind):
        return self._stage > 0 if kind == "F" else self._stage < self._stages - 1

    def _gives(self, kind):
        return self._takes("B" if kind == "F" else "F")

    # Tags: even forward, odd backward.
    def _send(self, kind, i):
        tensor, to = (self._outputs[i].detach(), self._rank + 1) if kind == "F" else (self._gradients[i], self._rank - 1)
        return torch.distributed.isend(tensor, to, tag=2 * i + (kind == "B"))

    def _receive(self, kind, i):
        return torch.distributed.irecv(self._received[kind][i], self._rank + (-1 if kind == "F" else 1), tag=2 * i + (kind == "B"))

    def _is_last(self, kind, i):
        return kind == "B" and i == self._micro_batches - 1

    def _gradient_is_there(self, i, gradient):
        self._gradients[i] = gradient
        # The last backward goes on waiting for all-reduces.
        if self._is_last("B", i):
            self._last_send = self._send("B", i)

    def _compute(self, kind, i):
        self._device.synchronize()
        if kind == "F":
            x = self._inputs
            if self._takes("F"):
                x = Received.apply(self._received["F"][i].detach().requires_grad_(), lambda gradient: self._gradient_is_there(i, gradient))
            with self._model.no_sync():
                self._outputs[i] = self._model(x)
            return
        if self._is_last(kind, i):
            # As torch.distributed.pipelining does: buckets are reduced in the last micro-batch's backward only.
            self._model.reducer.prepare_for_backward([])
        output = self._outputs.pop(i)
        if self._takes("B"):
            output.backward(self._received["B"][i])
        else:
            output.sum().backward()

    def _run(self, works, eager):
        """Receives are posted when the step begins, or each when it is about to be used; sends are waited for at the end."""
        receives = {one: self._receive(*one) for one in works if eager and self._takes(one[0])}
        sends = []
        for one in works:
            if self._takes(one[0]):
                (receives.get(one) or self._receive(*one)).wait()
            self._compute(*one)
            if self._gives(one[0]):
                sends.append(self._last_send or self._send(*one))
        for send in sends:
            send.wait()

    def _run_fused(self, works, receive_first):
        """A send is posted with the next receive, and both are waited for, as Megatron-LM's and torch's 1F1B do."""
        before = None
        for one in works:
            posts = [lambda: self._send(*before)] if before and self._gives(before[0]) else []
            if self._takes(one[0]):
                posts.insert(0 if receive_first else len(posts), lambda: self._receive(*one))
            for posted in [post() for post in posts]:
                posted.wait()
            self._compute(*one)
            before = one
        if self._gives(before[0]):
            (self._last_send or self._send(*before)).wait()


def train(job, rank, stages, group):
    stage = Stage(job, rank, stages, group)
    torch.distributed.barrier()
    steps = [stage.step() for _ in range(job["steps"])]
    return {"steps": steps, "right": stage.is_right()}


def record(job, rank, *_):
    """The whole chain in one process, a micro-batch as its batch, as who has not distributed yet records it. job: chain, steps, seed, trace."""
    chain = chains.chain(job["chain"])
    device = worker.Device(zlib.crc32(f"{job['chain']} {job['seed']} plain".encode()), 1.0)
    model = torch.nn.Sequential(*(TimedLayer(layer, i, chain.batch, chain.shape_into(i), device) for i, layer in enumerate(chain.layers)))
    optimizer = worker.SGD(model.parameters(), device, chain.optimizer_seconds)
    inputs = torch.zeros(chain.shape_into(0))
    steps = []

    def step():
        begin = time.monotonic()
        for layer in model:
            layer.begin_step()
        optimizer.zero_grad(set_to_none=True)
        device.begin_step()
        model(inputs).sum().backward()
        optimizer.step()
        steps.append({"begin": begin, "end": time.monotonic()})

    worker.record(step, job["steps"], job["trace"], 1, rank, (0.0, 0.0))
    return {"steps": steps}


def measure_messages(job, rank, stages, group):
    """Seconds of a transfer of `bytes` from worker 0 to 1, which waits for it, and of an all-reduce of `reduced_bytes` among all, by repeat; the first two
    do not count."""
    tensor, reduced = torch.zeros(job["bytes"] // 4), torch.zeros(job["reduced_bytes"] // 4)
    posted, arrived, reductions = [], [], []
    for _ in range(job["repeats"] + 2):
        torch.distributed.barrier()
        if rank == 1:
            torch.distributed.recv(tensor, 0)
            arrived.append(time.monotonic())
        elif rank == 0:
            time.sleep(0.01)
            posted.append(time.monotonic())
            torch.distributed.isend(tensor, 1).wait()
        torch.distributed.barrier()
        begin = time.monotonic()
        torch.distributed.all_reduce(reduced)
        reductions.append(time.monotonic() - begin)
    return {"posted": posted[2:], "arrived": arrived[2:], "reductions": reductions[2:]}


def main():
    parser = argparse.ArgumentParser(prog="stage.py", description=__doc__.splitlines()[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--stages", type=int, required=True)
    parser.add_argument("--address", required=True, help="of worker 0")
    options = parser.parse_args()
    worker.join(options.rank, options.workers, options.address)
    # Every worker makes all groups, in the same order.
    groups = [torch.distributed.new_group(list(range(stage, options.workers, options.stages))) for stage in range(options.stages)]
    group = groups[options.rank % options.stages]
    torch.distributed.all_reduce(torch.zeros(1_000_000), group=group)
    worker.serve({"train": train, "record": record, "messages": measure_messages}, options.rank, options.stages, group)


if __name__ == "__main__":
    main()
