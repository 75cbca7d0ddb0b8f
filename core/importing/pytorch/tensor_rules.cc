#include <algorithm>
#include <array>

#include "core/importing/pytorch/saved_tensors.h"

namespace stepcast {

namespace {

constexpr int64_t kIndexBytes = 8;  // of a maximum's place

using Form = OutputForm;

constexpr TensorRule Unary(std::string_view name, bool keeps) {
  return {
      .name = name, .reads = kFirst, .keeps = keeps ? kFirst : uint8_t{0}, .output = Form::kSame};
}
constexpr TensorRule Result(std::string_view name, Form output = Form::kSame) {
  return {.name = name, .reads = kFirst, .output = output, .keeps_output = true};
}
// In place, and its gradient needs what was there before.
constexpr TensorRule CopyOfInput(std::string_view name) {
  return {.name = name, .reads = kFirst, .output = Form::kInPlace, .mask_bytes = -1};
}
constexpr TensorRule View(std::string_view name, Form output = Form::kView) {
  return {.name = name, .reads = kFirst, .output = output};
}
constexpr TensorRule Convolution(std::string_view name) {
  return {.name = name, .reads = kFirst, .keeps = kFirst, .output = Form::kChannels};
}
constexpr TensorRule Pool(std::string_view name, int64_t index_bytes = 0) {
  return {.name = name,
          .reads = kFirst,
          .keeps = kFirst,
          .output = Form::kPooled,
          .index_bytes = index_bytes};
}
constexpr TensorRule Product(std::string_view name, uint8_t factors = kBoth) {
  return {.name = name, .reads = factors, .keeps = factors, .output = Form::kProduct};
}
// A mean's gradient needs no values, but PyTorch 1.13 keeps its input.
constexpr TensorRule Reduction(std::string_view name) {
  return {.name = name, .reads = kFirst, .keeps = kFirst, .output = Form::kReduced};
}
constexpr TensorRule Loss(std::string_view name) {
  return {.name = name, .reads = kBoth, .keeps = kBoth};
}
constexpr TensorRule Attention(std::string_view name) {
  return {.name = name,
          .reads = kBoth | kThird,
          .keeps = kBoth | kThird,
          .output = Form::kSame,
          .keeps_output = true};
}

// Means and inverses of deviations are kept in float32.
constexpr TensorRule Normalization(std::string_view name, size_t weights) {
  return {.name = name,
          .reads = kFirst,
          .keeps = kFirst,
          .output = Form::kSame,
          .statistics_bytes = 8,
          .statistics_input = weights};
}

// In ascending order of the names. Operations that call others of these are not in it, so that what
// they call is counted: linear is t and addmm, softmax is _softmax.
constexpr std::array kRules{
    Pool("_adaptive_avg_pool2d"),
    Pool("_adaptive_avg_pool3d"),
    Normalization("_batch_norm_with_update", 1),
    Convolution("_conv_depthwise2d"),
    Convolution("_convolution"),
    TensorRule{.name = "_fused_dropout",
               .reads = kFirst,
               .output = Form::kSame,
               .mask_bytes = 1,
               .is_dropout_mask = true},
    Result("_log_softmax"),
    Normalization("_native_batch_norm_legit", 1),
    View("_reshape_alias"),
    Attention("_scaled_dot_product_cudnn_attention"),
    Attention("_scaled_dot_product_efficient_attention"),
    Attention("_scaled_dot_product_flash_attention"),
    Attention("_scaled_dot_product_flash_attention_for_cpu"),
    Convolution("_slow_conv2d_forward"),
    Result("_softmax"),
    Unary("_to_copy", false),
    View("_unsafe_view"),
    Unary("abs", true),
    Pool("adaptive_max_pool2d", kIndexBytes),
    Pool("adaptive_max_pool3d", kIndexBytes),
    TensorRule{.name = "add", .reads = kBoth, .output = Form::kLarger},
    TensorRule{.name = "add_", .reads = kBoth, .output = Form::kInPlace},
    Product("addmm", kSecond | kThird),
    View("alias"),
    View("as_strided", Form::kPart),
    Pool("avg_pool2d"),
    Pool("avg_pool3d"),
    Product("baddbmm", kSecond | kThird),
    Loss("binary_cross_entropy"),
    Loss("binary_cross_entropy_with_logits"),
    Product("bmm"),
    TensorRule{.name = "cat", .output = Form::kAny, .reads_all = true},
    Unary("clamp", true),
    Unary("clamp_min", true),
    Unary("clone", false),
    TensorRule{.name = "constant_pad_nd", .reads = kFirst, .output = Form::kAny},
    Convolution("convolution"),
    Convolution("convolution_overrideable"),
    TensorRule{.name = "copy_", .reads = kSecond, .output = Form::kSame},
    Normalization("cudnn_batch_norm", 1),
    Convolution("cudnn_convolution"),
    Convolution("cudnn_convolution_transpose"),
    TensorRule{.name = "div", .reads = kBoth, .output = Form::kLarger, .keeps_if_both = true},
    TensorRule{.name = "div_", .reads = kBoth, .keeps = kSecond, .output = Form::kInPlace},
    TensorRule{.name = "dropout", .reads = kFirst, .output = Form::kSame, .mask_bytes = -1},
    TensorRule{.name = "dropout_", .reads = kFirst, .output = Form::kInPlace, .mask_bytes = -1},
    Result("elu"),
    Result("elu_", Form::kInPlace),
    TensorRule{.name = "embedding", .reads = kSecond, .keeps = kSecond, .output = Form::kRows},
    Result("exp"),
    View("expand", Form::kExpanded),
    Pool("fractional_max_pool2d", kIndexBytes),
    Pool("fractional_max_pool3d", kIndexBytes),
    Unary("gelu", true),
    Unary("hardsigmoid", true),
    CopyOfInput("hardsigmoid_"),
    Unary("hardswish", true),
    CopyOfInput("hardswish_"),
    Unary("hardtanh", true),
    CopyOfInput("hardtanh_"),
    Loss("huber_loss"),
    Loss("kl_div"),
    Loss("l1_loss"),
    Unary("leaky_relu", true),
    Result("leaky_relu_", Form::kInPlace),
    Unary("log", true),
    TensorRule{.name = "masked_fill", .reads = kBoth, .keeps = kSecond, .output = Form::kSame},
    TensorRule{.name = "masked_fill_", .reads = kBoth, .keeps = kSecond, .output = Form::kInPlace},
    Pool("max_pool2d_with_indices", kIndexBytes),
    Pool("max_pool3d_with_indices", kIndexBytes),
    Reduction("mean"),
    Normalization("miopen_batch_norm", 1),
    Convolution("miopen_convolution"),
    Unary("mish", true),
    CopyOfInput("mish_"),
    Convolution("mkldnn_convolution"),
    Product("mm"),
    Loss("mse_loss"),
    TensorRule{.name = "mul", .reads = kBoth, .output = Form::kLarger, .keeps_if_both = true},
    TensorRule{.name = "mul_", .reads = kBoth, .keeps = kSecond, .output = Form::kInPlace},
    Normalization("native_batch_norm", 1),
    TensorRule{.name = "native_dropout",
               .reads = kFirst,
               .output = Form::kSame,
               .mask_bytes = 1,
               .is_dropout_mask = true},
    Unary("native_group_norm", true),
    Normalization("native_layer_norm", 2),
    Unary("neg", false),
    Loss("nll_loss2d_forward"),
    Loss("nll_loss_forward"),
    View("permute", Form::kPermuted),
    Unary("pow", true),
    Result("relu"),
    Result("relu_", Form::kInPlace),
    Result("rsqrt"),
    TensorRule{.name = "rsub", .reads = kBoth, .output = Form::kLarger},
    View("select", Form::kPart),
    Result("sigmoid"),
    Result("sigmoid_", Form::kInPlace),
    Unary("silu", true),
    CopyOfInput("silu_"),
    View("slice", Form::kPart),
    Convolution("slow_conv2d_forward"),
    Loss("smooth_l1_loss"),
    Unary("softplus", true),
    View("split", Form::kPart),
    View("split_with_sizes", Form::kPart),
    Result("sqrt"),
    View("squeeze", Form::kSqueezed),
    TensorRule{.name = "stack", .output = Form::kAny, .reads_all = true},
    Reduction("std"),
    TensorRule{.name = "sub", .reads = kBoth, .output = Form::kLarger},
    TensorRule{.name = "sub_", .reads = kBoth, .output = Form::kInPlace},
    TensorRule{.name = "sum", .reads = kFirst, .output = Form::kReduced},
    View("t", Form::kPermuted),
    Result("tanh"),
    Result("tanh_", Form::kInPlace),
    Convolution("thnn_conv2d_forward"),
    Unary("threshold", true),
    Result("threshold_", Form::kInPlace),
    View("transpose", Form::kPermuted),
    View("unbind", Form::kPart),
    View("unsafe_split", Form::kPart),
    View("unsafe_split_with_sizes", Form::kPart),
    View("unsqueeze", Form::kSqueezed),
    TensorRule{.name = "upsample_bilinear2d", .reads = kFirst, .output = Form::kPooled},
    TensorRule{.name = "upsample_nearest2d", .reads = kFirst, .output = Form::kPooled},
    Reduction("var"),
    View("view"),
    TensorRule{.name = "where", .reads = kBoth | kThird, .keeps = kFirst, .output = Form::kAny},
};
static_assert(std::is_sorted(kRules.begin(), kRules.end(),
                             [](const TensorRule& a, const TensorRule& b) {
                               return a.name < b.name;
                             }) &&
              kRules.size() < kUnknownTensorRule);

// The rule of an unknown operation: it reads its first input, and what it keeps is not known.
constexpr TensorRule kUnknownRule{.name = "", .reads = kFirst, .output = OutputForm::kAny};

}  // namespace

const TensorRule& TensorRuleAt(uint8_t index) {
  return index < kRules.size() ? kRules[index] : kUnknownRule;
}

std::optional<uint8_t> TensorRuleNamed(std::string_view name) {
  const auto* const rule =
      std::lower_bound(kRules.begin(), kRules.end(), name,
                       [](const TensorRule& a, std::string_view b) { return a.name < b; });
  if (rule == kRules.end() || rule->name != name) return std::nullopt;
  return static_cast<uint8_t>(rule - kRules.begin());
}

bool IsView(const TensorRule& rule) {
  return rule.output == OutputForm::kView || rule.output == OutputForm::kPermuted ||
         rule.output == OutputForm::kSqueezed || rule.output == OutputForm::kPart ||
         rule.output == OutputForm::kExpanded;
}

}  // namespace stepcast
