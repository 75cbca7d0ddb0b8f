"""A training script with DistributedDataParallel on several workers of this machine, each of which records itself; no GPU.

The network of record_one_worker.py; the last worker has twice the batch of the others, so they wait for it. Usage: record_workers.py FOLDER [WORKERS]
writes FOLDER/rank0.json.gz, FOLDER/rank1.json.gz and so on.
"""

import os
import pathlib
import socket
import sys

import torch
import torch.distributed
import torch.multiprocessing
import torch.profiler
from record_one_worker import network
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import kineto_trace  # noqa: E402

BATCH = 8


def worker(rank, workers, port, folder):
    torch.set_num_threads(1)
    store = torch.distributed.TCPStore("127.0.0.1", port, world_size=workers, is_master=rank == 0)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=workers)
    model = nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = BATCH * (2 if rank + 1 == workers else 1)
    loader = [(torch.randn(batch, 3, 64, 64), torch.randint(1000, (batch,))) for _ in range(20)]
    schedule = torch.profiler.schedule(wait=5, warmup=3, active=12)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule, record_shapes=True) as profiler:
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            profiler.step()
    path = os.path.join(folder, f"rank{rank}.json.gz")
    if torch.profiler.kineto_available():
        profiler.export_chrome_trace(path)
    else:  # Debian's PyTorch
        kineto_trace.write(profiler.profiler.kineto_results, path, workers=workers, rank=rank)
    torch.distributed.barrier()


def main(folder, workers=2):
    os.makedirs(folder, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(worker, args=(workers, port, folder), nprocs=workers)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
