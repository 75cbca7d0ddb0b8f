// A network architecture: layers with their tensors and the arithmetic they do for one example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast {

struct Shape {
  int64_t height = 1;
  int64_t width = 1;
  int64_t channels = 1;

  constexpr int64_t elements() const { return height * width * channels; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// A trained variable, float32.
struct Variable {
  std::string name;
  int64_t elements = 0;
};

struct Layer {
  std::string name;
  std::vector<int32_t> inputs;  // earlier layers; none: it reads the image
  std::vector<Variable> variables;
  Shape output;
  double forward_flops = 0;  // additions and multiplications for one example
  double backward_flops = 0;
};

// The last layer is the loss. Inputs are indices of earlier layers.
struct Architecture {
  std::vector<Layer> layers;
};

}  // namespace stepcast
