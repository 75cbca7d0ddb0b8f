"""Two chains of layers for pipelines, by the shapes of their parameters and of what they hand on, narrowed until a micro-batch takes 90 ms.

A layer's time is its share of a total by multiply-adds, as if on one accelerator; none was measured.
"""

import math
import pathlib
import sys
from dataclasses import dataclass

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "ddp"))

import networks  # noqa: E402


@dataclass(frozen=True)
class Layer(networks.Layer):
    outputs: tuple = ()  # shape of what it hands on, of one example


@dataclass(frozen=True)
class Chain:
    layers: list
    inputs: tuple  # of one example
    batch: int  # examples of a micro-batch
    optimizer_seconds: float  # of all parameters
    cuts: dict  # by number of stages, the first layer of each but the first

    def boundaries(self, stages):
        return [0, *self.cuts[stages], len(self.layers)] if stages > 1 else [0, len(self.layers)]

    def shape_into(self, layer):
        """Of the micro-batch that the layer takes."""
        return (self.batch, *(self.layers[layer - 1].outputs if layer else self.inputs))

    @property
    def seconds(self):
        """Of a micro-batch, forward and backward."""
        return sum(layer.forward_seconds + layer.backward_seconds for layer in self.layers)


def _elements(layers):
    return sum(math.prod(shape) for layer in layers for shape in layer.shapes)


def _convolution(inputs, outputs, kernel, pixels, left):
    """left: pixels a side of what is handed on, where pooling follows."""
    return Layer("Conv2d", ((outputs, inputs, kernel, kernel), (outputs,)), outputs * inputs * kernel**2 * pixels**2, outputs=(outputs, left, left))


def _linear(inputs, outputs):
    # Bound by memory.
    return Layer("Linear", ((outputs, inputs), (outputs,)), 3 * inputs * outputs, outputs=(outputs,))


def _alexnet():
    """A quarter as wide as AlexNet."""
    convolutions = [(3, 24, 11, 55, 27), (24, 64, 5, 27, 13), (64, 96, 3, 13, 13), (96, 96, 3, 13, 13), (96, 64, 3, 13, 6)]
    return [_convolution(*one) for one in convolutions] + [_linear(64 * 36, 1024), _linear(1024, 1024), _linear(1024, 250)]


def _transformer(width=160, blocks=12, words=7630, tokens=128):
    """An embedding, blocks of attention and feed-forward, and a head."""

    def layer(kind, shapes, work, outputs=(tokens, width)):
        return Layer(kind, shapes, work, outputs=outputs)

    norm = layer("LayerNorm", ((width,), (width,)), 60 * width * tokens)
    attention = layer("SelfAttention", ((3 * width, width), (3 * width,), (width, width), (width,)), (4 * width + 2 * tokens) * width * tokens)
    wide = layer("FeedForward", ((4 * width, width), (4 * width,), (width, 4 * width), (width,)), 8 * width**2 * tokens)
    embedding = layer("Embedding", ((words, width), (tokens, width)), 100 * width * tokens)
    head = layer("Linear", ((words, width), (words,)), words * width * tokens, (1,))
    return [embedding, *[norm, attention, norm, wide] * blocks, norm, head]


def chain(name):
    if name == "alexnet_p":
        return Chain(networks.timed(_alexnet(), 0.03, 0.06), (3, 224, 224), 32, 0.004, {2: [2], 3: [1, 3]})
    if name == "transformer_p":
        return Chain(networks.timed(_transformer(), 0.03, 0.06), (128,), 16, 0.006, {2: [25], 3: [21, 37]})
    raise ValueError(f"no chain is called {name!r}")


def share_of(chain_, stage, stages):
    """Of all parameters, those of the stage."""
    boundaries = chain_.boundaries(stages)
    return _elements(chain_.layers[boundaries[stage] : boundaries[stage + 1]]) / _elements(chain_.layers)
