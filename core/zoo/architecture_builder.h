// A network architecture, and a builder of it, layer by layer, which works out shapes, variables
// and arithmetic.
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

// kSame: the output is the input divided by the stride, rounded up. kValid: only whole windows.
enum class Padding : uint8_t { kSame, kValid };

// A window that moves over an image.
struct Window {
  int64_t height = 1;
  int64_t width = 1;
  int64_t stride = 1;
  Padding padding = Padding::kSame;
};

// Whose conventions the variables keep. kTfSlim: `NAME/weights` and `NAME/biases`; batch
// normalisation has an offset alone. kTorch: `NAME.weight` and `NAME.bias`, in the order in which a
// module registers them; batch normalisation has both.
enum class Library : uint8_t { kTfSlim, kTorch };

inline constexpr Window kOne{};
inline constexpr Window kThree{.height = 3, .width = 3};
inline constexpr Window kFive{.height = 5, .width = 5};

// Arithmetic, for one example. Convolution, dense and the products of attention: a multiplication
// and an addition for each weight and output position, also where a weight sees one channel alone.
// Cheap layers, in operations per output element: ReLU and addition 1; batch and layer
// normalisation 7 (mean 1, variance 3, subtract, scale, offset); response normalisation 10
// (squares, sum of five, power, division); GELU 9 (the form with a hyperbolic tangent, which counts
// as 1); softmax with the scaling of scores 6; a pool reads its window; embeddings add up their
// tables' rows; concatenation moves data and computes nothing; the loss 5 a class. Backward: as
// much again for the gradient of each factor that was computed, and as much for that of the
// variables where there are any; what reads the image needs no gradient of its input.
class ArchitectureBuilder {
 public:
  using LayerId = int32_t;
  static constexpr LayerId kImage = -1;

  // Texts are images too: of so many tokens' height, one wide.
  explicit ArchitectureBuilder(Shape image, Library library = Library::kTfSlim)
      : image_(image), library_(library) {}

  LayerId Convolution(const std::string& name, LayerId from, int64_t channels, const Window& window,
                      bool biases);
  // `multiplier` filters a channel, each over that channel alone; without biases.
  LayerId DepthwiseConvolution(const std::string& name, LayerId from, int64_t multiplier,
                               const Window& window);
  // Named NAME, with the variables that the library's has.
  LayerId BatchNormalization(const std::string& name, LayerId from);
  // With one bias a channel, and a ReLU after it.
  LayerId BiasedConvolution(const std::string& name, LayerId from, int64_t channels,
                            const Window& window);
  // Without biases; after it batch normalisation, NAME/batch_norm, then a ReLU.
  LayerId NormalizedConvolution(const std::string& name, LayerId from, int64_t channels,
                                const Window& window);
  // The same without the ReLU.
  LayerId LinearConvolution(const std::string& name, LayerId from, int64_t channels,
                            const Window& window);
  // With biases. What it reads is flattened.
  LayerId Dense(const std::string& name, LayerId from, int64_t channels);
  LayerId Relu(const std::string& name, LayerId from);
  LayerId Pool(const std::string& name, LayerId from, const Window& window);
  LayerId GlobalPool(const std::string& name, LayerId from);
  LayerId ResponseNormalization(const std::string& name, LayerId from);
  // REQUIRES: equal heights and widths.
  LayerId Concatenation(const std::string& name, const std::vector<LayerId>& from);
  // REQUIRES: equal shapes.
  LayerId Addition(const std::string& name, LayerId a, LayerId b);

  // The sum of one row of each table a position; a table's variable is NAME of `tables` with the
  // library's suffix. Reads the image, its tokens.
  struct Table {
    std::string name;
    int64_t rows = 0;
  };
  LayerId Embeddings(const std::string& name, const std::vector<Table>& tables, int64_t channels);
  // With biases, at each position alike.
  LayerId Linear(const std::string& name, LayerId from, int64_t channels);
  // Without variables of its own: those of an embedding, whose gradient is ready when the
  // embedding's is.
  LayerId TiedLinear(const std::string& name, LayerId from, int64_t channels);
  // With scale and offset, a pair a channel.
  LayerId LayerNormalization(const std::string& name, LayerId from);
  LayerId Gelu(const std::string& name, LayerId from);
  // Scores, softmax and the weighted sum, of `channels` in all heads together, each position with
  // every one. `from`: what queries, keys and values are read from, the values' last.
  LayerId Attention(const std::string& name, const std::vector<LayerId>& from, int64_t channels,
                    int64_t heads);

  const Shape& ShapeOf(LayerId layer) const {
    return layer == kImage ? image_ : architecture_.layers[static_cast<size_t>(layer)].output;
  }

  // Adds the loss over these outputs.
  Architecture Finish(const std::vector<LayerId>& outputs) &&;

 private:
  // `factors`: those of the forward arithmetic that were computed, so need gradients, too.
  LayerId Add(Layer layer, const std::vector<LayerId>& from, int factors = 1);
  Variable Weights(const std::string& name, int64_t elements) const;
  Variable Biases(const std::string& name, int64_t elements) const;

  Shape image_;
  Library library_;
  Architecture architecture_;
};

}  // namespace stepcast
