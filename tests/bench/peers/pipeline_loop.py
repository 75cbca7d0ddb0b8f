"""One step of a pipeline in the 1F1B order, by an event loop in plain Python: what a script for one layout costs.

Arguments: devices, micro-batches, nanoseconds of a forward, of a backward and of a transfer. Prints when the step ends,
in nanoseconds, the computations, and the seconds of processor that the loop took.
"""

import heapq
import sys
import time


def order(device, devices, micro_batches):
    warm_up = min(devices - 1 - device, micro_batches)
    work = [(True, i) for i in range(warm_up)]
    for i in range(micro_batches - warm_up):
        work += [(True, warm_up + i), (False, i)]
    return work + [(False, i) for i in range(micro_batches - warm_up, micro_batches)]


def step(devices, micro_batches, forward_ns, backward_ns, transfer_ns):
    orders = [order(device, devices, micro_batches) for device in range(devices)]
    at = [0] * devices
    busy = [False] * devices
    link_free = {}
    arrived = set()
    events = []
    end = 0

    def advance(device, now):
        if busy[device] or at[device] == len(orders[device]):
            return
        is_forward, micro_batch = orders[device][at[device]]
        has_input = device > 0 if is_forward else device < devices - 1
        if has_input and (device, is_forward, micro_batch) not in arrived:
            return
        busy[device] = True
        heapq.heappush(events, (now + (forward_ns if is_forward else backward_ns), 0, device, is_forward, micro_batch))

    for device in range(devices):
        advance(device, 0)
    while events:
        now, kind, device, is_forward, micro_batch = heapq.heappop(events)
        end = max(end, now)
        if kind == 1:
            arrived.add((device, is_forward, micro_batch))
        else:
            busy[device] = False
            at[device] += 1
            to = device + (1 if is_forward else -1)
            if 0 <= to < devices:
                begin = max(now, link_free.get((device, to), 0))
                link_free[device, to] = begin + transfer_ns
                heapq.heappush(events, (begin + transfer_ns, 1, to, is_forward, micro_batch))
        advance(device, now)
    return end


def main():
    layout = [int(argument) for argument in sys.argv[1:]]
    begin = time.process_time()
    end = step(*layout)
    print(end, 2 * layout[0] * layout[1], time.process_time() - begin)


if __name__ == "__main__":
    main()
