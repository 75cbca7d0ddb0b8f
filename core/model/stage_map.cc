#include "core/model/stage_map.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/numeric/int128.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/base/message_text.h"

namespace stepcast {

namespace {

// By links before: what they cost, or the cost of the slowest stage of the best cuts of them.
using Row = std::vector<int64_t>;
constexpr int64_t kImpossible = std::numeric_limits<int64_t>::max() / 2;
// Bytes at the cuts, and how uneven the stages are: the sum of their squares.
using CutLoad = std::pair<int64_t, absl::uint128>;

absl::uint128 Square(int64_t cost) {
  const absl::uint128 wide = static_cast<uint64_t>(cost);
  return wide * wide;
}

Row PrefixCosts(const std::vector<ChainLink>& chain) {
  Row costs(chain.size() + 1);
  for (size_t i = 0; i < chain.size(); ++i) costs[i + 1] = costs[i] + chain[i].cost_ns;
  return costs;
}

// The least that the slowest of so many stages can take.
int64_t SlowestStage(const Row& costs, size_t stages) {
  Row best = costs;
  for (size_t stage = 1; stage < stages; ++stage) {
    Row next(costs.size(), kImpossible);
    for (size_t end = stage + 1; end < costs.size(); ++end)
      for (size_t begin = end - 1; begin >= stage; --begin) {
        // With an earlier cut this stage alone takes more.
        if (costs[end] - costs[begin] >= next[end]) break;
        next[end] = std::min(next[end], std::max(best[begin], costs[end] - costs[begin]));
      }
    best = std::move(next);
  }
  return best.back();
}

}  // namespace

std::vector<size_t> CutIntoStages(const std::vector<ChainLink>& chain, size_t stages) {
  const Row costs = PrefixCosts(chain);
  const int64_t slowest = SlowestStage(costs, stages);
  // By stages and links before, where no stage takes more than that.
  using Loads = std::vector<CutLoad>;
  std::vector<Loads> loads(stages + 1, Loads(costs.size(), CutLoad(kImpossible, 0)));
  std::vector<std::vector<size_t>> cut_of(stages + 1, std::vector<size_t>(costs.size()));
  loads[0][0] = CutLoad(0, 0);
  for (size_t stage = 1; stage <= stages; ++stage)
    for (size_t end = stage; end < costs.size(); ++end)
      for (size_t begin = end; begin-- > stage - 1;) {
        const int64_t cost = costs[end] - costs[begin];
        if (cost > slowest) break;
        const CutLoad& before = loads[stage - 1][begin];
        if (before.first == kImpossible) continue;
        const int64_t sent = begin == 0 ? 0 : chain[begin - 1].output_bytes;
        const CutLoad load(before.first + sent, before.second + Square(cost));
        if (load > loads[stage][end]) continue;
        loads[stage][end] = load;
        cut_of[stage][end] = begin;
      }
  std::vector<size_t> firsts(stages);
  size_t end = chain.size();
  for (size_t stage = stages; stage > 0; --stage) end = firsts[stage - 1] = cut_of[stage][end];
  return firsts;
}

namespace {

// Links that cuts are found among, at most.
constexpr size_t kMaxLinks = 2048;

bool IsBackward(Pass pass) {
  return pass == Pass::kBackward || pass == Pass::kBackwardInput || pass == Pass::kBackwardWeight;
}

// The part of a name behind its first slash; empty: there is none.
absl::string_view AfterSlash(absl::string_view name) {
  const size_t slash = name.find('/');
  return slash == absl::string_view::npos ? absl::string_view() : name.substr(slash + 1);
}

}  // namespace

int32_t RecordedRanksOf(const Profile& profile) {
  if (profile.framework() != kPytorchFramework) return 0;
  absl::flat_hash_set<std::string> names;
  int32_t links = 0;
  for (const Operation& operation : profile.operations()) {
    const bool is_link =
        operation.pass == Pass::kForward && operation.resource == Resource::kWorker;
    if (is_link && operation.name != absl::StrCat("forward/", links++)) return 0;
    if (operation.pass == Pass::kOptimizer) names.insert(operation.name);
  }
  for (int32_t rank = 0; rank < links; ++rank)
    if (!names.contains(absl::StrCat("optimizer/", rank))) return 0;
  return links < 2 ? 0 : links;
}

namespace {

class StageMapper {
 public:
  explicit StageMapper(const Profile& profile) : profile_(profile) {}

  StageMap Make(const char* path, FaultList& faults) {
    const std::vector<Operation>& operations = profile_.operations();
    map_.link_of.assign(operations.size(), -1);
    map_.role_of.assign(operations.size(), StageRole::kForward);
    IndexChain();
    if (!Check(path, faults)) return {};
    for (size_t i = 0; i < operations.size(); ++i) Place(i);
    // A weights' pass alone is all of a backward.
    map_.splits_backward =
        std::any_of(operations.begin(), operations.end(),
                    [](const Operation& o) { return o.pass == Pass::kBackwardWeight; });
    map_.recorded_ranks = RecordedRanksOf(profile_);
    return std::move(map_);
  }

 private:
  void IndexChain() {
    const std::vector<Operation>& operations = profile_.operations();
    for (size_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      if (operation.pass != Pass::kForward || operation.resource != Resource::kWorker) continue;
      const auto link = static_cast<int32_t>(map_.chain.size());
      map_.chain.push_back(static_cast<int32_t>(i));
      map_.link_of[i] = link;
      if (absl::StartsWith(operation.name, "forward"))
        by_name_.try_emplace(AfterSlash(operation.name), link);
      if (!operation.parameter.empty()) by_parameter_.try_emplace(operation.parameter, link);
    }
    for (const Operation& operation : operations) {
      if (!IsAcrossWorkers(operation)) continue;
      for (const int32_t before : operation.waiting_for)
        if (const auto link = by_parameter_.find(operation.parameter); link != by_parameter_.end())
          of_gradient_.try_emplace(before, link->second);
    }
  }

  // False, with a fault.
  bool Check(const char* path, FaultList& faults) const {
    const std::vector<Operation>& operations = profile_.operations();
    bool has_backward = false;
    for (size_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      has_backward = has_backward || IsBackward(operation.pass);
      const std::string name = absl::StrCat("operations[", i, "], ", Quoted(operation.name));
      if (IsTransfer(operation.resource) || operation.resource == Resource::kParameterServer) {
        faults.Add(path, absl::StrCat("of a job with parameter servers: ", name, ", is a ",
                                      std::string(ResourceName(operation.resource)),
                                      ", and the replicas of a pipeline meet in collectives"));
        return false;
      }
      if (IsAcrossWorkers(operation) && operation.collective != Collective::kAllReduce) {
        faults.Add(path, absl::StrCat(name,
                                      ", is a collective of the replicas that is not an "
                                      "ALL_REDUCE: a pipeline reduces gradients alone"));
        return false;
      }
      const auto sums_others = [&](int32_t before) {
        const Operation& sum = operations[Index(before)];
        return IsAcrossWorkers(sum) && !SumsGradients(sum);
      };
      const auto& needed = operation.waiting_for;
      const auto sum = std::find_if(needed.begin(), needed.end(), sums_others);
      if (sum != needed.end() && (operation.pass == Pass::kForward || IsBackward(operation.pass))) {
        faults.Add(path,
                   absl::StrCat(name, ", waits for operations[", *sum, "], ",
                                Quoted(operations[Index(*sum)].name),
                                ", in which the replicas sum something else than gradients (as "
                                "SyncBatchNorm does): a pipeline reduces gradients alone"));
        return false;
      }
    }
    if (!map_.chain.empty() && has_backward) return true;
    faults.Add(path, absl::StrCat("the profile says of no operation that it is ",
                                  map_.chain.empty() ? "FORWARD" : "BACKWARD",
                                  " (Operation.pass), so that nothing tells where a stage could "
                                  "begin: import the recording again, or set it"));
    return false;
  }

  void Place(size_t i) {
    const Operation& operation = profile_.operations()[i];
    if (IsAcrossWorkers(operation)) {
      map_.has_gradients = true;
      Put(i, StageRole::kGradient, LinkOfGradient(operation));
    } else if (operation.pass == Pass::kOptimizer || FollowsGradients(operation)) {
      Put(i, StageRole::kEndOfStep, -1);
    } else if (operation.pass == Pass::kForward) {
      if (map_.link_of[i] < 0) map_.link_of[i] = LastAwaited(operation).value_or(link_);
      Put(i, StageRole::kForward, map_.link_of[i]);
    } else if (IsBackward(operation.pass)) {
      Put(i,
          operation.pass == Pass::kBackwardWeight ? StageRole::kBackwardWeight
                                                  : StageRole::kBackward,
          LinkOfBackward(static_cast<int32_t>(i)));
    } else {
      PlaceUnsaid(i);
    }
  }

  void Put(size_t i, StageRole role, int32_t link) {
    map_.role_of[i] = role;
    map_.link_of[i] = link;
    if (role == StageRole::kGradient || role == StageRole::kEndOfStep) return;
    role_ = role;
    link_ = link;
  }

  void PlaceUnsaid(size_t i) {
    StageRole role = role_;
    int32_t link = link_;
    for (const int32_t before : profile_.operations()[i].waiting_for) {
      if (Index(before) >= i) continue;
      role = map_.role_of[Index(before)];
      link = map_.link_of[Index(before)];
    }
    Put(i, role, link);
  }

  bool FollowsGradients(const Operation& operation) const {
    return std::any_of(operation.waiting_for.begin(), operation.waiting_for.end(),
                       [&](int32_t before) {
                         const StageRole role = map_.role_of[Index(before)];
                         return role == StageRole::kGradient || role == StageRole::kEndOfStep;
                       });
  }

  // The last of the forward computations that it waits for.
  std::optional<int32_t> LastAwaited(const Operation& operation) const {
    std::optional<int32_t> last;
    for (const int32_t before : operation.waiting_for) {
      if (profile_.operations()[Index(before)].pass != Pass::kForward) continue;
      if (map_.link_of[Index(before)] >= 0)
        last = std::max(last.value_or(0), map_.link_of[Index(before)]);
    }
    return last;
  }

  int32_t LinkOfBackward(int32_t i) const {
    const Operation& operation = profile_.operations()[Index(i)];
    if (const absl::string_view suffix = AfterSlash(operation.name);
        absl::StartsWith(operation.name, "backward") && !suffix.empty())
      if (const auto link = by_name_.find(suffix); link != by_name_.end()) return link->second;
    if (const auto awaited = LastAwaited(operation)) return *awaited;
    if (const auto link = by_parameter_.find(operation.parameter); link != by_parameter_.end())
      return link->second;
    if (const auto link = of_gradient_.find(i); link != of_gradient_.end()) return link->second;
    // The first backward operation is of the last layer.
    return role_ == StageRole::kForward ? static_cast<int32_t>(map_.chain.size()) - 1 : link_;
  }

  // The link of the last of the backward operations that it waits for.
  int32_t LinkOfGradient(const Operation& operation) const {
    int32_t link = -1;
    for (const int32_t before : operation.waiting_for) {
      const int32_t other = map_.link_of[Index(before)];
      if (other >= 0) link = link < 0 ? other : std::min(link, other);
    }
    if (link >= 0) return link;
    const auto of_parameter = by_parameter_.find(operation.parameter);
    return of_parameter != by_parameter_.end() ? of_parameter->second : link_;
  }

  const Profile& profile_;
  StageMap map_;
  absl::flat_hash_map<absl::string_view, int32_t> by_name_;       // of forward/NAME
  absl::flat_hash_map<absl::string_view, int32_t> by_parameter_;  // the first that uses it
  absl::flat_hash_map<int32_t, int32_t> of_gradient_;  // by operation that a gradient waits for
  StageRole role_ = StageRole::kForward;               // of the operation before
  int32_t link_ = 0;                                   // likewise
};

}  // namespace

int32_t StageMap::StageOf(const std::vector<int32_t>& first, int32_t link) {
  return static_cast<int32_t>(std::upper_bound(first.begin(), first.end(), link) - first.begin()) -
         1;
}

StageMap MapStages(const Profile& profile, const char* path, FaultList& faults) {
  return StageMapper(profile).Make(path, faults);
}

int64_t BytesAtCut(const Profile& profile, const StageMap& map, int32_t link) {
  const std::vector<Operation>& operations = profile.operations();
  std::vector<bool> is_needed(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    if (map.role_of[i] != StageRole::kForward || map.link_of[i] < link) continue;
    for (const int32_t before : operations[i].waiting_for)
      if (map.role_of[Index(before)] == StageRole::kForward && map.link_of[Index(before)] < link)
        is_needed[Index(before)] = true;
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < operations.size(); ++i)
    if (is_needed[i]) bytes += operations[i].output_bytes;
  return bytes > 0 ? bytes : operations[Index(map.chain[Index(link - 1)])].output_bytes;
}

std::vector<int32_t> BestCuts(const Profile& profile, const StageMap& map, int32_t stages) {
  // Neighbours of a chain that is too long are cut together.
  const size_t together = 1 + (map.chain.size() - 1) / std::max(kMaxLinks, Index(stages));
  std::vector<ChainLink> chain((map.chain.size() - 1) / together + 1);
  for (const RecordedStep& step : profile.steps())
    for (size_t i = 0; i < map.link_of.size(); ++i)
      if (map.link_of[i] >= 0 && map.role_of[i] != StageRole::kGradient)
        chain[Index(map.link_of[i]) / together].cost_ns += step.end_ns[i] - step.start_ns[i];
  for (size_t link = 0; link + 1 < chain.size(); ++link)
    chain[link].output_bytes =
        profile.operations()[Index(map.chain[(link + 1) * together - 1])].output_bytes;
  std::vector<int32_t> first;
  for (const size_t link : CutIntoStages(chain, std::min(Index(stages), chain.size())))
    first.push_back(static_cast<int32_t>(link * together));
  return first;
}

}  // namespace stepcast
