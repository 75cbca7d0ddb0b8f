"""Traces of the ranks of one job under DistributedDataParallel, as PyTorch's profiler writes them or as Chakra has them, of which every instant is known."""

import json

MS, US = 1_000_000, 1_000
BASE_NS = 1_767_189_312_000_000_000
# What happens around a gradient's hook besides its computation.
HOOK_NS = 6 * US
# By bucket: its one gradient of 4-byte elements, and how long its all-reduce takes.
BUCKETS = ((750_000, 3 * MS), (250_000, 1 * MS))


class _Rank:
    def __init__(self, offset_ns):
        self.now, self.offset_ns, self.events = 5 * MS, offset_ns, []

    def event(self, category, name, begin, end, **arguments):
        times = {"ts": (begin - self.offset_ns) / US, "dur": (end - begin) / US}
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 2, **times, "args": arguments})

    def compute(self, name, length):
        begin, self.now = self.now, self.now + length
        self.event("cpu_op", name, begin, self.now)


def rank_traces(forward_ms=(10, 10, 20), backward_ms=(4, 2), optimizer_ms=1, steps=7, offsets_ns=None, jumps_ns=None, slowdown=None, contention=None):
    """The traces, by rank. A rank's clock reads the true time less its offset, and from the fifth step on less its jump, too.

    With a slow-down ranks take turns at being slow, at everything by a fifth; the slow one comes last to the first collective, makes the gradient after it
    beside that, alone of all, and takes so many times as long for it.

    With contention the second gradient takes from half its time to twice that, in turns, and the first all-reduce so many times as long beside the last
    rank's.
    """
    ranks = [_Rank(offset) for offset in offsets_ns or [0] * len(forward_ms)]
    free = 0
    for step in range(steps):
        begins = [rank.now for rank in ranks]
        if step == 5 and jumps_ns:
            for rank, jump in zip(ranks, jumps_ns):
                rank.offset_ns += jump
        slow = [1.2 if slowdown and number == step % len(ranks) else 1 for number in range(len(ranks))]
        for rank, forward, times in zip(ranks, forward_ms, slow):
            rank.compute("aten::conv2d", round(forward * MS * times))
        launches = None
        for (elements, length), backward in zip(BUCKETS, backward_ms):
            shape = {"Input Dims": [[elements], []], "Input type": ["float", "Scalar"]}
            if contention:
                second = backward_ms[1] * MS * (1 + step % 4) // 2
                # What is left of the hook, and of the next one before its bucket is launched, is computed, too.
                length += 0 if launches else round((second + HOOK_NS) * (1 - 1 / contention))
                backward = second / MS if launches else backward
            lengths = [backward * MS * times * (slowdown if times > 1 and launches else 1) for times in slow]
            launches = [_gradient(rank, round(length), shape) for rank, length in zip(ranks, lengths)]
            end = max(free, *launches) + length
            for rank, launch in zip(ranks, launches):
                rank.event("cpu_op", "c10d::allreduce_", launch, launch + 100)
                rank.event("user_annotation", "gloo:all_reduce", max(free, launch), end, **shape)
            free = end
        for number, rank in enumerate(ranks):
            begin, rank.now = max(rank.now, free), max(rank.now, free) + round(optimizer_ms * MS * slow[number])
            rank.event("user_annotation", "Optimizer.step#SGD.step", begin, rank.now)
            rank.event("user_annotation", f"ProfilerStep#{step + 5}", begins[number], rank.now)
    return [_trace(rank.events, number, len(ranks)) for number, rank in enumerate(ranks)]


def _gradient(rank, length, shape):
    """Returns when its bucket is launched."""
    rank.compute("autograd::engine::evaluate_function: AddmmBackward0", length)
    scope = rank.now
    rank.event("cpu_op", "torch::autograd::AccumulateGrad", scope + 1 * US, scope + 4 * US, **shape)
    launch, rank.now = scope + 5 * US, scope + HOOK_NS
    rank.event("cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", scope, rank.now)
    return launch


def _trace(events, rank, world_size):
    trace = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": world_size}}
    trace |= {"baseTimeNanoseconds": BASE_NS, "traceEvents": events}
    return json.dumps(trace).encode()


def chakra_ranks(forward_ms=(10, 10, 20), backward_ms=(4, 2), optimizer_ms=1, offsets_ns=None, buckets=BUCKETS):
    """Chakra's traces of one step of the same job on GPUs, by rank; a rank's ids are its own."""
    ranks = [_ChakraRank(1000 * number, offset) for number, offset in enumerate(offsets_ns or [0] * len(forward_ms))]
    free = 0
    for rank, forward in zip(ranks, forward_ms):
        rank.compute("conv2d", forward * MS)
    for (elements, length), backward in zip(buckets, backward_ms):
        for rank in ranks:
            rank.compute("addmm_backward", backward * MS)
        end = max(free, *(rank.now for rank in ranks)) + length
        for rank in ranks:
            rank.meet(4 * elements, max(free, rank.now), end)
        free = end
    for rank in ranks:
        rank.now = max(rank.now, free)
        rank.compute("sgd", optimizer_ms * MS, rank.collectives)
    return [json.dumps({"schema": "Chakra", "workload_graph": rank.nodes}).encode() for rank in ranks]


class _ChakraRank:
    def __init__(self, first_id, offset_ns):
        self.now, self.first_id, self.offset_ns, self.nodes, self.collectives, self.last = 5 * MS, first_id, offset_ns, [], [], []

    def node(self, name, kind, begin, end, waits, **attributes):
        number = self.first_id + len(self.nodes)
        times = {"start_time_micros": (BASE_NS + begin - self.offset_ns) // US, "duration_micros": (end - begin) // US}
        self.nodes.append({"id": number, "name": name, "type": kind, "data_deps": waits, "is_cpu_op": False, **times, **attributes})
        return number

    def compute(self, name, length, waits=()):
        begin, self.now = self.now, self.now + length
        self.last = [self.node(name, "COMP_NODE", begin, self.now, [*self.last, *waits])]

    def meet(self, size_bytes, begin, end):
        self.collectives.append(self.node("nccl_all_reduce", "COMM_COLL_NODE", begin, end, list(self.last), comm_type=0, comm_size=size_bytes, stream=20))
