// The parts of a profile's forward pass, and what of the rest of a step belongs to each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/index.h"
#include "core/model/profile.h"

namespace stepcast::testing {

struct ForwardPart {
  std::string name;
  int64_t output_bytes = 0;
  int64_t kept_bytes = 0;
  int64_t forward_ns = 0;
  int64_t backward_ns = 0;
  std::vector<int64_t> gradients;  // bytes, in the order of readiness
};

// Of a recorded step: a backward computation is of the last part that it waits for, a gradient of
// that of its backward computation.
inline std::vector<ForwardPart> ForwardPartsOf(const Profile& profile, size_t step) {
  const std::vector<Operation>& operations = profile.operations();
  const RecordedStep& recorded = profile.steps()[step];
  std::vector<ForwardPart> parts;
  std::vector<int32_t> part_of(operations.size(), -1);
  for (size_t i = 0; i < operations.size(); ++i) {
    const Operation& operation = operations[i];
    const int64_t length = recorded.end_ns[i] - recorded.start_ns[i];
    if (operation.pass == Pass::kForward) {
      part_of[i] = static_cast<int32_t>(parts.size());
      parts.push_back({.name = operation.name,
                       .output_bytes = operation.output_bytes,
                       .kept_bytes = operation.kept_bytes,
                       .forward_ns = length,
                       .gradients = {}});
    }
    for (const int32_t before : operation.waiting_for) {
      if (operation.pass == Pass::kBackward && operations[Index(before)].pass == Pass::kForward)
        part_of[i] = part_of[Index(before)];
      if (IsAcrossWorkers(operation) && part_of[Index(before)] >= 0)
        parts[Index(part_of[Index(before)])].gradients.push_back(operation.size_bytes);
    }
    if (operation.pass == Pass::kBackward && part_of[i] >= 0)
      parts[Index(part_of[i])].backward_ns += length;
  }
  return parts;
}

}  // namespace stepcast::testing
