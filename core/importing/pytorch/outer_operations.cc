#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "core/importing/pytorch/saved_tensors.h"

namespace stepcast {

bool IsOfTensorLibrary(std::string_view name) {
  return name.substr(0, kTensorLibrary.size()) == kTensorLibrary;
}

std::vector<OuterOperation> OuterOperations(const TensorOperations& tensors, int64_t from_ns,
                                            int64_t to_ns) {
  const std::optional<uint8_t> copy = TensorRuleNamed("clone");
  std::vector<OuterOperation> outer;
  auto operation = std::lower_bound(
      tensors.operations.begin(), tensors.operations.end(), from_ns,
      [](const TensorOperation& each, int64_t start_ns) { return each.start_ns < start_ns; });
  for (; operation != tensors.operations.end() && operation->start_ns < to_ns; ++operation) {
    const TensorRule& rule = TensorRuleAt(operation->rule);
    if (!outer.empty() && operation->start_ns < outer.back().operation->end_ns) {
      // One of the library's that calls others is what it calls.
      const TensorOperation& around = *outer.back().operation;
      const bool is_composite =
          around.rule == kUnknownTensorRule &&
          IsOfTensorLibrary(tensors.functions[static_cast<size_t>(around.function)]);
      if (rule.is_dropout_mask) outer.back().mask_bytes = rule.mask_bytes;
      if (operation->rule == copy && TensorRuleAt(around.rule).output == OutputForm::kInPlace)
        outer.back().mask_bytes = -1;
      if (!is_composite) continue;
      outer.pop_back();
    }
    outer.push_back(
        {.operation = &*operation, .mask_bytes = rule.is_dropout_mask ? rule.mask_bytes : 0});
  }
  return outer;
}

namespace {

bool AreAlike(const OuterOperation& a, const OuterOperation& b) {
  return a.operation->rule == b.operation->rule && a.operation->function == b.operation->function &&
         a.operation->shapes == b.operation->shapes;
}

// Operations that run within functions of the backward pass of a forward pass. Those beside them,
// and within others, are of other micro-steps.
std::vector<OuterOperation> WithinNodes(const TensorOperations& tensors,
                                        const std::vector<OuterOperation>& forward,
                                        const std::vector<BackwardNode>& nodes) {
  int64_t last = -1;
  for (const OuterOperation& each : forward) last = std::max(last, each.operation->sequence);
  std::vector<OuterOperation> within;
  int64_t end_ns = INT64_MIN;
  for (const BackwardNode& node : nodes) {
    if (node.sequence > last || node.end_ns <= end_ns) continue;
    const auto inner = OuterOperations(tensors, std::max(node.start_ns, end_ns), node.end_ns);
    within.insert(within.end(), inner.begin(), inner.end());
    end_ns = node.end_ns;
  }
  return within;
}

}  // namespace

std::vector<size_t> PiecesRunAgain(const TensorOperations& tensors,
                                   const std::vector<OuterOperation>& forward,
                                   const std::vector<BackwardNode>& nodes) {
  constexpr size_t kMostTried = 64;
  const std::vector<OuterOperation> backward = WithinNodes(tensors, forward, nodes);
  std::vector<size_t> again(forward.size(), 0);
  absl::flat_hash_map<int64_t, std::vector<size_t>> places;  // by rule and first shape
  const auto key = [](const OuterOperation& outer) {
    return int64_t{outer.operation->shapes[0]} * 256 + outer.operation->rule;
  };
  if (backward.empty()) return again;
  for (size_t i = 0; i < forward.size(); ++i) places[key(forward[i])].push_back(i);
  for (size_t next = 0; next < backward.size();) {
    const std::vector<size_t>& starts = places[key(backward[next])];
    const auto undone = std::upper_bound(
        nodes.begin(), nodes.end(), backward[next].operation->start_ns,
        [](int64_t start_ns, const BackwardNode& node) { return start_ns < node.start_ns; });
    const int64_t until_ns = undone == nodes.end() ? INT64_MAX : undone->start_ns;
    size_t best = 0;
    size_t longest = 0;
    for (size_t tried = 0; tried < std::min(kMostTried, starts.size()); ++tried) {
      const size_t start = starts[starts.size() - 1 - tried];
      size_t length = 0;
      while (start + length < forward.size() && next + length < backward.size() &&
             backward[next + length].operation->start_ns < until_ns && again[start + length] == 0 &&
             AreAlike(forward[start + length], backward[next + length]))
        ++length;
      if (length > longest) std::tie(best, longest) = std::pair(start, length);
    }
    for (size_t i = 0; i < longest; ++i) again[best + i] = next + 1;
    next += std::max<size_t>(1, longest);
  }
  return again;
}

}  // namespace stepcast
