"""Recordings of small networks, and the bytes that autograd really kept of each: what an import's inference from shapes is held to.

Usage: record_saved_tensors.py FOLDER. Writes NAME.json.gz for each network, and saved.json with the bytes of the distinct storages that
torch.autograd.graph.saved_tensors_hooks saw in a forward pass, parameters and buffers left out. Debian's PyTorch, on one thread.
"""

import json
import math
import pathlib
import sys

import torch
import torch.profiler
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import kineto_trace  # noqa: E402

BATCH = 2


def convolution(channels, wider, window=3, stride=1):
    return [nn.Conv2d(channels, wider, window, stride, window // 2, bias=False), nn.BatchNorm2d(wider)]


class Residual(nn.Module):
    """ResNet's bottleneck, whose ReLU and addition are in place."""

    def __init__(self, channels, wider, stride):
        super().__init__()
        narrow = wider // 4
        self.branch = nn.Sequential(
            *convolution(channels, narrow, 1), nn.ReLU(True), *convolution(narrow, narrow, 3, stride), nn.ReLU(True), *convolution(narrow, wider, 1)
        )
        same = stride == 1 and channels == wider
        self.shortcut = nn.Identity() if same else nn.Sequential(*convolution(channels, wider, 1, stride))

    def forward(self, image):
        out = self.branch(image)
        out += self.shortcut(image)
        return functional.relu_(out)


class Branches(nn.Module):
    """Inception's: branches that read the same image, and are concatenated."""

    def __init__(self, channels, narrow):
        super().__init__()
        self.one = nn.Sequential(*convolution(channels, narrow, 1), nn.ReLU(True))
        self.two = nn.Sequential(*convolution(channels, narrow, 1), nn.ReLU(True), *convolution(narrow, narrow), nn.ReLU(True))
        self.pooled = nn.Sequential(*convolution(channels, narrow, 1), nn.ReLU(True))

    def forward(self, image):
        return torch.cat([self.one(image), self.two(image), self.pooled(functional.avg_pool2d(image, 3, 1, 1))], 1)


class EncoderLayer(nn.Module):
    """BERT's, as HuggingFace's transformers compute it."""

    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(channels, channels) for _ in range(4))
        self.norm, self.last_norm = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.wider, self.narrower = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def of_heads(self, text):
        return text.view(*text.shape[:2], self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, text, mask):
        query, key, value = (self.of_heads(layer(text)) for layer in (self.query, self.key, self.value))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1]) + mask
        weights = functional.dropout(functional.softmax(scores, -1), 0.1)
        context = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous().view(text.shape)
        text = self.norm(functional.dropout(self.output(context), 0.1) + text)
        return self.last_norm(functional.dropout(self.narrower(functional.gelu(self.wider(text))), 0.1) + text)


class Encoder(nn.Module):
    def __init__(self, layers=2, channels=48, heads=3, words=200, tokens=32):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(words, channels), nn.Embedding(tokens, channels), nn.LayerNorm(channels)
        self.layers = nn.ModuleList(EncoderLayer(channels, heads) for _ in range(layers))
        self.classes = nn.Linear(channels, 2)

    def forward(self, tokens):
        mask = (1.0 - (tokens >= 0)[:, None, None, :].float()) * -10000
        text = functional.dropout(self.norm(self.words(tokens) + self.places(torch.arange(tokens.shape[1])[None])), 0.1)
        for layer in self.layers:
            text = layer(text, mask)
        return self.classes(text).mean(1)


class DecoderLayer(nn.Module):
    """GPT-2's, with queries, keys and values of one product."""

    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.last_norm = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.all, self.output = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.wider, self.narrower = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, text):
        examples, tokens, channels = text.shape
        parts = self.all(self.norm(text)).split(channels, 2)
        query, key, value = (part.view(examples, tokens, self.heads, -1).transpose(1, 2) for part in parts)
        future = torch.tril(torch.ones(tokens, tokens, dtype=torch.bool))[None, None] == 0
        weights = functional.softmax((query @ key.transpose(-2, -1) * 0.25).masked_fill(future, float("-inf")), -1)
        text = text + self.output((weights @ value).transpose(1, 2).contiguous().view(examples, tokens, channels))
        return text + self.narrower(functional.gelu(self.wider(self.last_norm(text))))


class Decoder(nn.Module):
    def __init__(self, layers=2, channels=48, heads=3, words=200, tokens=32):
        super().__init__()
        self.words, self.places = nn.Embedding(words, channels), nn.Embedding(tokens, channels)
        self.layers = nn.Sequential(*(DecoderLayer(channels, heads) for _ in range(layers)))
        self.norm, self.classes = nn.LayerNorm(channels), nn.Linear(channels, words, bias=False)

    def forward(self, tokens):
        text = self.layers(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        return self.classes(self.norm(text)).view(-1, 200)


class FrozenFirst(nn.Module):
    """A part that is not trained, which keeps nothing."""

    def __init__(self):
        super().__init__()
        self.frozen = nn.Sequential(*convolution(3, 16), nn.ReLU(True), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        for parameter in self.frozen.parameters():
            parameter.requires_grad = False
        self.classes = nn.Sequential(nn.Linear(16, 50), nn.ReLU(), nn.Dropout(), nn.Linear(50, 10))

    def forward(self, images):
        return self.classes(self.frozen(images))


def networks():
    images, labels = torch.randn(BATCH, 3, 32, 32), torch.randint(10, (BATCH,))
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    words = torch.randint(200, (BATCH, 32))
    first = [*convolution(3, 16, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    plain = [nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(), nn.Linear(8 * 15 * 15, 64), nn.ReLU(), nn.Linear(64, 10)]
    return {
        "plain": (nn.Sequential(*plain), images, labels),
        "residual": (nn.Sequential(*first, Residual(16, 32, 1), Residual(32, 32, 1), Residual(32, 64, 2), *head), images, labels),
        "branches": (nn.Sequential(*first, Branches(16, 16), Branches(48, 16), *convolution(48, 64), nn.ReLU(True), *head), images, labels),
        "encoder": (Encoder(), words, torch.randint(2, (BATCH,))),
        "decoder": (Decoder(), words, torch.randint(200, (BATCH * 32,))),
        "frozen": (FrozenFirst(), images, labels),
    }


def saved_bytes(model, inputs, labels):
    of_model = {tensor.data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
    saved = {}

    def keep(tensor):
        storage = tensor.storage()
        if storage.data_ptr() not in of_model:
            saved[storage.data_ptr()] = storage.size() * storage.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = functional.cross_entropy(model(inputs), labels)
    assert loss.requires_grad
    return sum(saved.values())


def main(folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    saved = {}
    for name, (model, inputs, labels) in networks().items():
        saved[name] = saved_bytes(model, inputs, labels)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=4)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule, record_shapes=True) as profiler:
            for _ in range(6):
                optimizer.zero_grad()
                functional.cross_entropy(model(inputs), labels).backward()
                optimizer.step()
                profiler.step()
        kineto_trace.write(profiler.profiler.kineto_results, folder / f"{name}.json.gz", workers=1, rank=0)
    (folder / "saved.json").write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
