"""What torch's profiler observed, in the layout of Kineto's trace.

Debian's PyTorch observes all that Kineto's trace of a processor has, but is built without Kineto: its own export leaves out shapes, sequence
numbers and flows. Names, categories and flows are those of libkineto, which PyTorch's published builds write.
"""

import gzip
import json
import os

# torch's RecordScope.
_BACKWARD, _USER = 1, 7


def write(results, path, workers, rank, clock=(0.0, 0.0)):
    """results: of torch.autograd's profiler, `kineto_results`. path: of the file, compressed by gzip. clock: the offset in seconds and the drift of the
    clock that is pretended, from that of this machine.

    The last step is left out: a worker that is done with it collects what it has observed, and takes the processor from those that are not."""
    offset, drift = clock
    observed = list(results.events())
    last = max(event.start_us() for event in observed if event.name().startswith("ProfilerStep#"))
    observed = [event for event in observed if event.start_us() + event.duration_us() <= last]
    process = os.getpid()
    begins = [event.start_us() for event in observed]
    events, forward = [], {}
    for number, event in enumerate(observed):
        user = event.scope() == _USER
        arguments = {"External id": event.correlation_id(), "Ev Idx": number}
        if event.sequence_nr() >= 0 and not user:
            arguments |= {"Sequence number": event.sequence_nr(), "Fwd thread id": event.fwd_thread_id()}
            if event.fwd_thread_id() == 0 and event.scope() != _BACKWARD:
                # Of several with one number the last is the innermost, which is the one that has a backward.
                forward[event.sequence_nr()] = event
        if any(event.shapes()):
            arguments |= {"Input Dims": event.shapes(), "Input type": event.dtypes()}
        events.append(_complete(process, "user_annotation" if user else "cpu_op", event, arguments))
    backward = [event for event in observed if event.scope() == _BACKWARD and event.fwd_thread_id() > 0 and event.sequence_nr() in forward]
    for number, event in enumerate(backward):
        for phase, end in (("s", forward[event.sequence_nr()]), ("f", event)):
            binding = {"bp": "e"} if phase == "f" else {}
            events.append({"ph": phase, "id": number, "cat": "fwdbwd", "name": "fwdbwd", "ts": end.start_us(), **_place(process, end), **binding})
    events.append({"ph": "M", "name": "process_name", "ts": min(begins), "pid": process, "tid": 0, "args": {"name": "python3"}})
    first = min(begins)
    shown = lambda instant: instant + round(1e6 * offset + drift * (instant - first))  # noqa: E731
    for event in events:
        begin = event["ts"]
        event["ts"] = shown(begin)
        if "dur" in event:
            # Both ends are read from the clock, so that what was inside of an event stays there.
            event["dur"] = shown(begin + event["dur"]) - event["ts"]
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": workers},
        "traceEvents": events,
    }
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps(trace, separators=(",", ":")).encode())


def _complete(process, category, event, arguments):
    times = {"ts": event.start_us(), "dur": event.duration_us()}
    return {"ph": "X", "cat": category, "name": event.name(), **_place(process, event), **times, "args": arguments}


def _place(process, event):
    # As the system numbers them: the main thread like its process.
    thread = event.start_thread_id()
    return {"pid": process, "tid": process + thread - 1 if thread else 0}
