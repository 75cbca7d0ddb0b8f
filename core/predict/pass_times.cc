#include "core/predict/pass_times.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/base/index.h"

namespace stepcast {

namespace {

enum Part : size_t { kForward, kBackward, kOptimizer, kOther, kParts };

Part PartOf(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return Part::kForward;
    case Pass::kBackward:
    case Pass::kBackwardInput:
    case Pass::kBackwardWeight:
      return Part::kBackward;
    case Pass::kOptimizer:
      return Part::kOptimizer;
    case Pass::kOther:
    case Pass::kDataLoading:
    case Pass::kUnspecified:
      break;
  }
  return Part::kOther;
}

}  // namespace

std::optional<PassTimes> PassTimesOf(const Program& program, const Profile& profile) {
  const LaneIndex lanes = program.lanes().count();
  bool is_known = false;
  std::array<double, kParts> sums{};
  for (int32_t step = 0; step < program.step_count(); ++step) {
    std::vector<std::array<double, kParts>> of_lane(Index(lanes));
    for (OpIndex op = 0; op < program.size(); ++op) {
      const LaneRole role = program.lanes()[program.lane(op)].role;
      if ((role != LaneRole::kCompute && role != LaneRole::kHost) || program.IsParsing(op))
        continue;
      const Pass pass = profile.operations()[Index(program.source(op))].pass;
      is_known = is_known || pass != Pass::kUnspecified;
      of_lane[Index(program.lane(op))][PartOf(pass)] += ToSeconds(program.duration(step, op));
    }
    for (size_t part = 0; part < kParts; ++part) {
      double most = 0;
      for (const std::array<double, kParts>& lane : of_lane) most = std::max(most, lane[part]);
      sums[part] += most;
    }
  }
  if (!is_known) return std::nullopt;
  const double steps = program.step_count();
  return PassTimes{.forward = sums[kForward] / steps,
                   .backward = sums[kBackward] / steps,
                   .optimizer = sums[kOptimizer] / steps,
                   .other = sums[kOther] / steps};
}

}  // namespace stepcast
