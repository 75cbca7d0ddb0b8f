"""AlexNet, ResNet-50 and BERT-base by the shapes of their parameters, narrowed until a step takes 0.1 to 0.6 s on links of 0.5 to 1 Gbit/s.

A layer's time is its share of a total by multiply-adds, as if on one accelerator; none was measured.
"""

import math
from dataclasses import dataclass, replace

# The part of the time that is the same for every layer, as launches and small kernels are.
_EVEN_SHARE = 0.15


@dataclass(frozen=True)
class Layer:
    kind: str  # of torch.nn, which is what its autograd function is called in a trace
    shapes: tuple  # of its parameters
    work: float
    forward_seconds: float = 0.0
    backward_seconds: float = 0.0


@dataclass(frozen=True)
class Network:
    layers: list
    batch: int
    optimizer_seconds: float

    @property
    def bytes(self):
        return sum(4 * math.prod(shape) for layer in self.layers for shape in layer.shapes)


def _convolution(inputs, outputs, kernel, pixels, bias=False):
    shapes = ((outputs, inputs, kernel, kernel),) + (((outputs,),) if bias else ())
    return Layer("Conv2d", shapes, math.prod(shapes[0]) * pixels**2)


def _normalisation(channels, pixels):
    # Bound by memory: some 40 multiply-adds a value.
    return Layer("BatchNorm2d", ((channels,), (channels,)), 40 * channels * pixels**2)


def _linear(inputs, outputs):
    # Bound by memory, too.
    return Layer("Linear", ((outputs, inputs), (outputs,)), 3 * inputs * outputs)


def _embedding(rows, width):
    # Bound by memory: its gradient is dense.
    return Layer("Embedding", ((rows, width),), 3 * rows * width)


def _layer_norm(width, tokens):
    return Layer("LayerNorm", ((width,), (width,)), 40 * width * tokens)


def _projection(inputs, outputs, tokens):
    return Layer("Linear", ((outputs, inputs), (outputs,)), inputs * outputs * tokens)


def _alexnet():
    convolutions = [(3, 24, 11, 55), (24, 64, 5, 27), (64, 96, 3, 13), (96, 96, 3, 13), (96, 64, 3, 13)]
    return [_convolution(*one, bias=True) for one in convolutions] + [_linear(64 * 36, 1024), _linear(1024, 1024), _linear(1024, 250)]


def _resnet50():
    width, inputs = 32, 32
    layers = [_convolution(3, width, 7, 112), _normalisation(width, 112)]
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner, outputs, pixels = width << stage, 4 * width << stage, 56 >> stage
        for block in range(blocks):
            before = 2 * pixels if stage and not block else pixels
            for shape in ((inputs, inner, 1, before), (inner, inner, 3, pixels), (inner, outputs, 1, pixels)):
                layers += [_convolution(*shape), _normalisation(shape[1], shape[3])]
            if not block:
                layers += [_convolution(inputs, outputs, 1, pixels), _normalisation(outputs, pixels)]
            inputs = outputs
    return layers + [_linear(inputs, 1000)]


def _bert():
    # A quarter as wide, with a quarter of the vocabulary.
    width, tokens = 192, 128
    layers = [_embedding(rows, width) for rows in (7630, 512, 2)] + [_layer_norm(width, tokens)]
    for _ in range(12):
        layers += [_projection(width, width, tokens) for _ in range(4)] + [_layer_norm(width, tokens)]
        layers += [_projection(width, 4 * width, tokens), _projection(4 * width, width, tokens), _layer_norm(width, tokens)]
    return layers + [_projection(width, width, 1)]


def timed(layers, forward_seconds, backward_seconds):
    """The layers with their shares of both times."""
    work = sum(layer.work for layer in layers)
    shares = [_EVEN_SHARE / len(layers) + (1 - _EVEN_SHARE) * layer.work / work for layer in layers]
    return [replace(layer, forward_seconds=share * forward_seconds, backward_seconds=share * backward_seconds) for layer, share in zip(layers, shares)]


def network(name):
    if name == "alexnet_s":
        return Network(timed(_alexnet(), 0.04, 0.08), 128, 0.003)
    if name == "resnet50_s":
        return Network(timed(_resnet50(), 0.08, 0.16), 32, 0.006)
    if name == "bert_s":
        return Network(timed(_bert(), 0.07, 0.14), 16, 0.006)
    raise ValueError(f"no network is called {name!r}")
