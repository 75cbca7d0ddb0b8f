"""An ordinary training script with DistributedDataParallel, recorded as one worker alone: no GPU, no second machine.

A small convolutional network on random images of 64 x 64 pixels, on one thread of the processor. Usage: record_one_worker.py TRACE.json.gz
"""

import pathlib
import sys

import torch
import torch.distributed
import torch.profiler
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import kineto_trace  # noqa: E402

BATCH = 32


def network():
    blocks, channels = [], 3
    for wider in (32, 64, 128, 256):
        blocks += [nn.Conv2d(channels, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU(), nn.MaxPool2d(2)]
        channels = wider
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(channels * 4 * 4, 1024), nn.ReLU(), nn.Linear(1024, 1000))


def main(path):
    torch.set_num_threads(1)
    store = torch.distributed.TCPStore("127.0.0.1", 0, world_size=1, is_master=True)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = [(torch.randn(BATCH, 3, 64, 64), torch.randint(1000, (BATCH,))) for _ in range(20)]

    # What a training script needs to be recorded.
    schedule = torch.profiler.schedule(wait=5, warmup=3, active=12)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule, record_shapes=True) as profiler:
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            profiler.step()
    if torch.profiler.kineto_available():
        profiler.export_chrome_trace(path)
    else:  # Debian's PyTorch
        kineto_trace.write(profiler.profiler.kineto_results, path, workers=1, rank=0)


if __name__ == "__main__":
    main(sys.argv[1])
