#include "core/predict/bottleneck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/communication/all_reduce.h"

namespace stepcast {

namespace {

// Gains of steps per second, as a share, that are as good as equal.
constexpr double kSameGain = 1e-4;
// A gain below which no resource is worth naming but the workers' computation.
constexpr double kLeastGain = 0.01;
// A utilisation that is all of the time.
constexpr double kAlwaysInUse = 1 - 1e-6;
// A change whose gain nothing bounds.
constexpr double kUnbounded = 1;

// The most gain where a step may be shorter by such a share.
double GainOf(double share) {
  return share >= kUnbounded ? std::numeric_limits<double>::infinity() : share / (1 - share);
}

double SpeedOf(const WorkerGroup& group) { return group.compute_speed_factor.value_or(1); }

// The bounds of what changes of a job may bring, as shares of its step.
class StepBounds {
 public:
  StepBounds(const Profile& profile, const Prediction& base,
             const std::vector<PlannedCollective>& planned)
      : profile_(profile), base_(base), planned_(planned), step_(base.step_time.mean) {}

  double Of(WhatIf change, const Scenario& changed) const {
    switch (change) {
      case WhatIf::kComputationTwiceAsFast:
        return OfComputation(0.5);
      case WhatIf::kNoHostWait:
        return OfComputation(profile_.content().device_idle_fraction.value_or(1));
      case WhatIf::kServersTwiceAsFast:
        return std::min(0.5 * InUse(Resource::kParameterServer), 1 - OfTheBusiestLink());
      case WhatIf::kLinksTwiceAsFast:
        return OfLinks(0.5, changed);
      case WhatIf::kNoLatency:
        return OfLinks(1, changed);
      default:
        return OfStragglers(changed);
    }
  }

  // The share of the time in which resources of that kind are in use, together: no more than all.
  double InUse(Resource resource) const {
    double sum = 0;
    for (const ResourceUtilization& used : base_.utilization)
      sum += used.resource == resource ? used.fraction : 0;
    return std::min(1.0, sum);
  }

 private:
  // The share of a server's link that is in use, of the link with the most: all steps need it.
  double OfTheBusiestLink() const {
    double most = 0;
    for (const ResourceUtilization& used : base_.utilization) {
      if (used.resource == Resource::kDownlink || used.resource == Resource::kUplink)
        most = std::max(most, used.fraction);
    }
    return std::min(1.0, most);
  }

  // Steps that end together: one worker computes while the others wait for it.
  double OfComputation(double share) const {
    const Scenario& scenario = base_.scenario;
    const bool waits = scenario.is_synchronous() && scenario.workers > 1;
    if (!base_.collectives.has_value())
      return std::min(waits ? share : share * InUse(Resource::kWorker), 1 - OfTheBusiestLink());
    const CollectiveReport& report = *base_.collectives;
    // The slowest of unlike workers is what counts, and it may compute all the time.
    const bool alike = scenario.worker_groups.empty() && profile_.recorded_workers() == 1;
    const double used = InUse(Resource::kWorker) + report.waiting_seconds / step_;
    return std::min(share * (alike ? std::min(1.0, used) : 1),
                    1 - report.collective_seconds / step_);
  }

  // `share`: of the time in which links are in use, that a change may save.
  double OfLinks(double share, const Scenario& changed) const {
    if (!base_.collectives.has_value()) {
      // A link is in use, and not all of it, while slower links of workers feed it.
      if (!base_.scenario.worker_groups.empty()) return share;
      return std::min(share * std::min(1.0, InUse(Resource::kDownlink) + InUse(Resource::kUplink)),
                      1 - InUse(Resource::kWorker));
    }
    const CollectiveReport& report = *base_.collectives;
    const double most =
        std::min(share * InUse(Resource::kCollective), 1 - report.computation_seconds / step_);
    return std::min(most,
                    MostSavedSeconds(planned_, report.lone_collective_seconds, changed) / step_);
  }

  double OfStragglers(const Scenario& changed) const {
    if (profile_.recorded_workers() > 1) return kUnbounded;
    double slowest = 1;
    const WorkerGroup& best = changed.worker_groups.front();
    for (const WorkerGroup& group : base_.scenario.worker_groups) {
      slowest = std::min({slowest, SpeedOf(group) / SpeedOf(best),
                          group.bandwidth_bytes_per_second.value_or(0) /
                              best.bandwidth_bytes_per_second.value_or(1)});
    }
    return 1 - slowest;
  }

  const Profile& profile_;
  const Prediction& base_;
  const std::vector<PlannedCollective>& planned_;
  const double step_;
};

Resource ResourceOf(WhatIf change, const Prediction& prediction) {
  switch (change) {
    case WhatIf::kNoLatency:
      return Resource::kCollective;
    case WhatIf::kServersTwiceAsFast:
      return Resource::kParameterServer;
    case WhatIf::kLinksTwiceAsFast:
      return prediction.collectives.has_value() ? Resource::kCollective : Resource::kDownlink;
    default:
      return Resource::kWorker;
  }
}

CollectiveBottleneck CollectiveBottleneckOf(WhatIf change, const CollectiveReport& report) {
  switch (change) {
    case WhatIf::kNoStragglers:
      return CollectiveBottleneck::kSlowestWorker;
    case WhatIf::kNoHostWait:
      return CollectiveBottleneck::kHost;
    case WhatIf::kNoLatency:
      return CollectiveBottleneck::kLatency;
    case WhatIf::kLinksTwiceAsFast:
      return report.links == LinkPlace::kInsideNodes ? CollectiveBottleneck::kLinkInsideNode
                                                     : CollectiveBottleneck::kLinkBetweenNodes;
    default:
      return CollectiveBottleneck::kComputation;
  }
}

}  // namespace

std::optional<ResourceGain> GreatestGain(const std::vector<ResourceGain>& gains) {
  std::optional<ResourceGain> greatest;
  std::optional<ResourceGain> computation;
  for (const WhatIf change : kChangesOfOneResource) {
    for (const ResourceGain& each : gains) {
      if (each.change != change) continue;
      if (!greatest.has_value() || each.gain > greatest->gain + kSameGain) greatest = each;
      if (change == WhatIf::kComputationTwiceAsFast) computation = each;
    }
  }
  if (computation.has_value() && greatest->gain < kLeastGain) return computation;
  return greatest;
}

void NameBottleneck(const ResourceGain& gain, Prediction& prediction) {
  const Resource resource = ResourceOf(gain.change, prediction);
  const auto is_it = [&](const ResourceUtilization& used) {
    return used.resource == resource ||
           (resource == Resource::kDownlink && used.resource == Resource::kUplink);
  };
  prediction.bottleneck = {.resource = resource};
  for (const ResourceUtilization& used : prediction.utilization) {
    if (is_it(used) && used.fraction > prediction.bottleneck.fraction) prediction.bottleneck = used;
  }
  prediction.bottleneck_gain = gain;
  if (prediction.collectives.has_value())
    prediction.collectives->bottleneck =
        CollectiveBottleneckOf(gain.change, *prediction.collectives);
}

BottleneckSearch::BottleneckSearch(const Profile& profile, const JobChanges& changes,
                                   const Prediction& base,
                                   const std::vector<PlannedCollective>& planned, bool is_bounded) {
  const StepBounds bounds(profile, base, planned);
  for (const WhatIf change : kChangesOfOneResource) {
    Changed changed = changes.By(change, base.scenario);
    if (!changed.scenario.has_value()) continue;
    // The slowest worker's step may lose more by another recording than the mean one does.
    const bool has_bound = is_bounded && changed.profile == nullptr;
    const double most = GainOf(has_bound ? bounds.Of(change, *changed.scenario) : kUnbounded);
    candidates_.push_back({.change = change,
                           .scenario = *std::move(changed.scenario),
                           .profile = std::move(changed.profile),
                           .most = most});
  }
  // One worker that does nothing but compute.
  if (base.scenario.workers > 1 || bounds.InUse(Resource::kWorker) < kAlwaysInUse ||
      base.utilization.size() > 2)
    return;
  for (Candidate& candidate : candidates_) {
    if (candidate.change == WhatIf::kNoStragglers || candidate.scenario.worker_groups.empty() ||
        candidate.profile != nullptr)
      continue;
    const double now =
        base.scenario.worker_groups.empty() ? 1 : SpeedOf(base.scenario.worker_groups.front());
    candidate.gain = SpeedOf(candidate.scenario.worker_groups.front()) / now - 1;
  }
}

std::optional<size_t> BottleneckSearch::Next() const {
  std::optional<size_t> next;
  double best = -1;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    best = std::max(best, candidate.gain.value_or(-1));
    if (candidate.gain.has_value() || candidate.in_full) continue;
    if (!next.has_value() || candidate.most > candidates_[*next].most) next = i;
  }
  if (!next.has_value()) return next;
  // Computation is named where nothing is worth naming, and its gain is told.
  if (best >= 0 && best < kLeastGain) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (candidate.change == WhatIf::kComputationTwiceAsFast && !candidate.gain.has_value() &&
          !candidate.in_full)
        return i;
    }
  }
  return candidates_[*next].most > best - kSameGain ? next : std::nullopt;
}

void BottleneckSearch::AddShort(size_t change, std::optional<double> gain) {
  Candidate& candidate = candidates_[change];
  candidate.in_full = !gain.has_value();
  candidate.is_short = gain.has_value();
  if (gain.has_value()) candidate.gain = std::min(*gain, candidate.most);
}

void BottleneckSearch::AddInFull(size_t change, double gain) {
  candidates_[change].gain = gain;
  candidates_[change].is_short = false;
}

std::optional<size_t> BottleneckSearch::GreatestByShort() const {
  const std::optional<ResourceGain> greatest = Greatest();
  for (size_t i = 0; i < candidates_.size() && greatest.has_value(); ++i) {
    if (candidates_[i].change == greatest->change && candidates_[i].is_short) return i;
  }
  return std::nullopt;
}

std::vector<size_t> BottleneckSearch::Unclear(double error) const {
  const std::optional<ResourceGain> greatest = Greatest();
  std::vector<size_t> unclear;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    bool near = false;
    if (candidate.gain.has_value()) {
      const double less = greatest->gain - *candidate.gain;
      const bool is_equal = candidate.change != greatest->change && std::abs(less) <= kSameGain;
      near = *candidate.gain > kLeastGain && !is_equal &&
             (1 + *candidate.gain) * (1 + error) > 1 + greatest->gain;
    }
    if (candidate.in_full || near) unclear.push_back(i);
  }
  const bool alone = unclear.size() == 1 && !candidates_[unclear.front()].in_full;
  return alone ? std::vector<size_t>() : unclear;
}

std::optional<ResourceGain> BottleneckSearch::Greatest() const {
  std::vector<ResourceGain> gains;
  for (const Candidate& candidate : candidates_) {
    if (candidate.gain.has_value())
      gains.push_back({.change = candidate.change, .gain = *candidate.gain});
  }
  return GreatestGain(gains);
}

}  // namespace stepcast
