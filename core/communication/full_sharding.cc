#include "core/communication/full_sharding.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/model/dependency_cycle.h"
#include "core/model/job_change.h"

namespace stepcast {

namespace {

// Each after what it waits for, and collectives in graph order; the lowest index first of what
// could come next.
std::vector<int32_t> RunnableOrder(const StepPlan& plan) {
  struct Waiting {
    std::vector<int32_t> waiting_for;
  };
  std::vector<Waiting> operations;
  operations.reserve(plan.size());
  int32_t last = -1;
  for (size_t i = 0; i < plan.size(); ++i) {
    std::vector<int32_t>& waiting_for =
        operations.emplace_back(Waiting{plan[i].waiting_for}).waiting_for;
    if (plan[i].kind == Collective::kUnspecified) continue;
    if (last >= 0) waiting_for.push_back(last);
    last = static_cast<int32_t>(i);
  }
  return OrderThatCanRun(operations);
}

class ParameterSharder {
 public:
  // `field`: of the scenario, of faults.
  ParameterSharder(const Profile& profile, const StepPlan& plan, const char* field)
      : profile_(profile),
        plan_(plan),
        field_(field),
        order_(RunnableOrder(plan)),
        rewriter_(plan) {}

  absl::StatusOr<StepPlan> Run(const std::vector<int32_t>& counts) && {
    if (absl::Status status = PlaceUnits(counts); !status.ok()) return status;
    MakeRuns();
    return std::move(*this).Write();
  }
  absl::StatusOr<ForwardUse> Forward(bool as_recorded_only) && {
    as_recorded_only_ = as_recorded_only;
    if (absl::Status status = PlaceUnits(Alone()); !status.ok()) return status;
    ForwardUse forward{.computations = computations_, .uses = Uses()};
    forward.computations.resize(Index(FirstMaker()));
    return forward;
  }

 private:
  static constexpr int32_t kNowhere = -1;

  // A unit that is gathered and scattered together. Positions count the computations that need no
  // sum.
  struct Unit {
    std::vector<int32_t> gradients;  // of the plan
    int64_t bytes = 0;
    int32_t forward = 0;      // position of the first computation that uses it
    int32_t first_maker = 0;  // of one of its gradients
    int32_t last_maker = 0;
  };
  // Computations from `begin` to `end`, which need the units that begin there.
  struct UnitRun {
    std::vector<size_t> units;
    int32_t begin = 0;
    int32_t end = 0;
  };

  std::vector<int32_t> Alone() const { return std::vector<int32_t>(AllReducesOf(plan_).size(), 1); }
  // By unit.
  std::vector<int32_t> Uses() const {
    std::vector<int32_t> uses;
    for (const Unit& unit : units_) uses.push_back(computations_[Index(unit.forward)]);
    return uses;
  }
  // The position of the first computation that makes a gradient. REQUIRES: units were made.
  int32_t FirstMaker() const {
    int32_t first = units_.front().first_maker;
    for (const Unit& unit : units_) first = std::min(first, unit.first_maker);
    return first;
  }

  absl::Status PlaceUnits(const std::vector<int32_t>& counts) {
    PlaceComputations();
    if (absl::Status status = MakeUnits(counts); !status.ok()) return status;
    return PlaceForward();
  }

  absl::Status CannotTell(std::string why) const {
    return FaultsError("SCENARIO_INVALID", {{.field = field_, .description = std::move(why)}});
  }

  void PlaceComputations() {
    position_.assign(plan_.size(), kNowhere);
    latest_.assign(plan_.size(), kNowhere);
    needs_sum_.assign(plan_.size(), 0);
    for (const int32_t i : order_) {
      const PlannedOperation& operation = plan_[Index(i)];
      for (const int32_t before : operation.waiting_for) {
        if (plan_[Index(before)].is_gradient || needs_sum_[Index(before)] != 0)
          needs_sum_[Index(i)] = 1;
        latest_[Index(i)] = std::max(latest_[Index(i)], latest_[Index(before)]);
      }
      if (operation.kind != Collective::kUnspecified || needs_sum_[Index(i)] != 0) continue;
      position_[Index(i)] = latest_[Index(i)] = static_cast<int32_t>(computations_.size());
      computations_.push_back(i);
    }
  }

  absl::Status MakeUnits(const std::vector<int32_t>& counts) {
    const std::vector<int32_t> gradients = AllReducesOf(plan_);
    if (gradients.empty()) return CannotTell("the profile has no ALL_REDUCE of a gradient");
    size_t next = 0;
    for (const int32_t count : counts) {
      Unit& unit = units_.emplace_back();
      unit.first_maker = static_cast<int32_t>(computations_.size());
      for (int32_t i = 0; i < count; ++i) {
        const int32_t gradient = gradients[next++];
        const int32_t maker = latest_[Index(gradient)];
        const auto named = [&] {
          const int32_t source = plan_[Index(gradient)].source;
          return absl::StrCat("operations[", source, "], ",
                              Quoted(profile_.operations()[Index(source)].name));
        };
        if (needs_sum_[Index(gradient)] != 0) {
          return CannotTell(
              absl::StrCat(named(),
                           ", waits for the sum of another ALL_REDUCE, so it is not a "
                           "gradient that a backward computation makes"));
        }
        if (maker == kNowhere) {
          return CannotTell(absl::StrCat(named(),
                                         ", waits for no computation: the profile does not say "
                                         "which one uses its parameter"));
        }
        unit.gradients.push_back(gradient);
        unit.bytes += plan_[Index(gradient)].bytes;
        unit.first_maker = std::min(unit.first_maker, maker);
        unit.last_maker = std::max(unit.last_maker, maker);
      }
    }
    return absl::OkStatus();
  }

  using NameMap = absl::flat_hash_map<std::string_view, int32_t>;

  std::string_view NameAt(int32_t position) const {
    return profile_.operations()[Index(plan_[Index(computations_[Index(position)])].source)].name;
  }
  // Empty: the name begins with something else.
  static std::string_view After(std::string_view prefix, std::string_view name) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string_view();
  }
  // X of backward/X.
  std::string_view PairedName(int32_t maker) const { return After("backward/", NameAt(maker)); }
  // The first computation before `end` that is called forward/X, by X.
  NameMap NamedForward(int32_t end) const {
    NameMap named;
    for (int32_t at = 0; at < end; ++at) {
      const std::string_view name = After("forward/", NameAt(at));
      if (!name.empty()) named.try_emplace(name, at);
    }
    return named;
  }

  // The first computation before `end` that names a parameter or waited for its download.
  NameMap NamedUses(int32_t end) const {
    NameMap uses;
    for (int32_t at = 0; at < end; ++at) {
      const Operation& operation =
          profile_.operations()[Index(plan_[Index(computations_[Index(at)])].source)];
      if (!operation.parameter.empty()) uses.try_emplace(operation.parameter, at);
      for (const int32_t before : operation.waiting_for) {
        const Operation& download = profile_.operations()[Index(before)];
        if (download.resource == Resource::kDownlink) uses.try_emplace(download.parameter, at);
      }
    }
    return uses;
  }

  absl::Status PlaceForward() {
    const auto count = static_cast<int64_t>(computations_.size());
    const int32_t first_maker = FirstMaker();
    const int64_t forward = std::min<int64_t>(first_maker, count / 2);
    if (forward == 0) {
      const Operation& first = profile_.operations()[Index(plan_[Index(computations_[0])].source)];
      return CannotTell(absl::StrCat(Quoted(first.name),
                                     " makes a gradient, and no computation precedes it: the "
                                     "profile does not say what a forward pass is"));
    }
    const auto uses = NamedUses(first_maker);
    const auto by_name = as_recorded_only_ ? NamedForward(first_maker) : NameMap{};
    forward_end_ = static_cast<int32_t>(forward);
    for (Unit& unit : units_) {
      unit.forward = first_maker;
      for (const int32_t gradient : unit.gradients) {
        const int32_t source = plan_[Index(gradient)].source;
        const std::string& parameter = profile_.operations()[Index(source)].parameter;
        const auto named = parameter.empty() ? uses.end() : uses.find(parameter);
        if (as_recorded_only_ && named == uses.end()) {
          const auto paired = by_name.find(PairedName(latest_[Index(gradient)]));
          if (paired == by_name.end()) {
            return CannotTell(absl::StrCat(
                "operations[", source, "], ", Quoted(profile_.operations()[Index(source)].name),
                ": the profile does not say which computation of the forward pass uses its "
                "parameter: none names it, nor is one called forward/X where backward/X makes it"));
          }
          unit.forward = std::min(unit.forward, paired->second);
          continue;
        }
        const int64_t from_end = count - 1 - latest_[Index(gradient)];
        const int64_t mirrored = from_end * forward / (count - forward);
        unit.forward = std::min(
            unit.forward, named != uses.end() ? named->second : static_cast<int32_t>(mirrored));
      }
      forward_end_ = std::max(forward_end_, unit.forward + 1);
    }
    return absl::OkStatus();
  }

  // Runs of the forward, then of the backward.
  void MakeRuns() {
    std::vector<size_t> all(units_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    std::stable_sort(all.begin(), all.end(), [&](size_t a, size_t b) {
      return std::pair(units_[a].forward, b) < std::pair(units_[b].forward, a);
    });
    AppendRuns(all, &Unit::forward, forward_end_);
    std::stable_sort(all.begin(), all.end(), [&](size_t a, size_t b) {
      return std::pair(units_[a].first_maker, a) < std::pair(units_[b].first_maker, b);
    });
    AppendRuns(all, &Unit::first_maker, static_cast<int32_t>(computations_.size()));
  }
  void AppendRuns(const std::vector<size_t>& units, int32_t Unit::*begin, int32_t end) {
    const size_t first = runs_.size();
    for (const size_t unit : units) {
      const int32_t at = units_[unit].*begin;
      if (runs_.size() == first || runs_.back().begin != at) {
        if (runs_.size() > first) runs_.back().end = at;
        runs_.push_back({.units = {}, .begin = at, .end = end});
      }
      runs_.back().units.push_back(unit);
    }
  }

  StepPlan Write() && {
    now_.assign(plan_.size(), kNowhere);
    run_of_.assign(computations_.size(), kNowhere);
    for (size_t run = 0; run < runs_.size(); ++run) {
      for (int32_t at = runs_[run].begin; at < runs_[run].end; ++at)
        run_of_[Index(at)] = static_cast<int32_t>(run);
    }
    gathered_.assign(runs_.size(), kNowhere);
    std::vector<std::vector<size_t>> made(computations_.size());  // units, by last maker
    for (size_t unit = 0; unit < units_.size(); ++unit)
      made[Index(units_[unit].last_maker)].push_back(unit);
    Gather(0);
    for (const int32_t i : order_) {
      if (plan_[Index(i)].is_gradient) continue;
      const int32_t at = position_[Index(i)];
      const int32_t run = at == kNowhere ? kNowhere : run_of_[Index(at)];
      if (run != kNowhere && runs_[Index(run)].begin == at) Gather(Index(run) + 1);
      const int32_t now = rewriter_.Append(plan_[Index(i)]);
      rewriter_.Became(i, now);
      now_[Index(i)] = now;
      // Computations that wait for another one of their run wait for its all-gather, too.
      if (run != kNowhere && !IsAmong(plan_[Index(i)].waiting_for, run))
        rewriter_.Wait(now, gathered_[Index(run)]);
      if (at == kNowhere) continue;
      for (const size_t unit : made[Index(at)]) Scatter(units_[unit]);
    }
    return std::move(rewriter_).Finish();
  }

  bool IsAmong(const std::vector<int32_t>& operations, int32_t run) const {
    return std::any_of(operations.begin(), operations.end(), [&](int32_t operation) {
      const int32_t at = position_[Index(operation)];
      return at != kNowhere && run_of_[Index(at)] == run;
    });
  }

  PlannedOperation Carrying(const Unit& unit, Collective kind) const {
    const PlannedOperation& last = plan_[Index(unit.gradients.back())];
    PlannedOperation collective{
        .source = last.source, .kind = kind, .bytes = unit.bytes, .threads = last.threads};
    for (const int32_t gradient : unit.gradients)
      collective.members.push_back(plan_[Index(gradient)].source);
    return collective;
  }

  // The all-gathers that the run needs; collectives are one sequence, so whoever waits for the last
  // of them waits for all.
  void Gather(size_t run) {
    if (run >= runs_.size()) return;
    const size_t first_new = runs_[run].units.front();
    for (const size_t unit : runs_[run].units) {
      PlannedOperation gather = Carrying(units_[unit], Collective::kAllGather);
      gather.bytes = ParameterBytesOf(profile_, gather.bytes);
      gathered_[run] = rewriter_.Append(std::move(gather));
      if (run < 2 || unit != first_new) continue;
      const UnitRun& freed = runs_[run - 2];
      std::vector<uint8_t> goes_on(Index(freed.end - freed.begin), 0);
      for (int32_t at = freed.begin; at < freed.end; ++at) {
        for (const int32_t before : plan_[Index(computations_[Index(at)])].waiting_for) {
          const int32_t earlier = position_[Index(before)];
          if (earlier >= freed.begin && earlier < freed.end)
            goes_on[Index(earlier - freed.begin)] = 1;
        }
      }
      for (int32_t at = freed.begin; at < freed.end; ++at) {
        if (goes_on[Index(at - freed.begin)] == 0)
          rewriter_.Wait(gathered_[run], now_[Index(computations_[Index(at)])]);
      }
    }
  }

  void Scatter(const Unit& unit) {
    PlannedOperation scatter = Carrying(unit, Collective::kReduceScatter);
    for (const int32_t gradient : unit.gradients) {
      const std::vector<int32_t>& waiting_for = plan_[Index(gradient)].waiting_for;
      scatter.waiting_for.insert(scatter.waiting_for.end(), waiting_for.begin(), waiting_for.end());
    }
    const int32_t now = rewriter_.Append(std::move(scatter));
    for (const int32_t gradient : unit.gradients) rewriter_.Became(gradient, now);
  }

  const Profile& profile_;
  const StepPlan& plan_;
  const char* const field_;
  const std::vector<int32_t> order_;
  PlanRewriter rewriter_;
  std::vector<int32_t> position_;  // by operation; kNowhere: no computation, or it needs a sum
  std::vector<int32_t> latest_;    // by operation: of itself and of what it waits for
  std::vector<uint8_t> needs_sum_;
  std::vector<int32_t> computations_;  // by position
  bool as_recorded_only_ = false;      // where the profile says no forward, none is taken
  std::vector<Unit> units_;
  int32_t forward_end_ = 0;  // position
  std::vector<UnitRun> runs_;
  std::vector<int32_t> run_of_;    // by position
  std::vector<int32_t> gathered_;  // by run: its last all-gather, of the new plan
  std::vector<int32_t> now_;       // by operation: in the new plan
};

}  // namespace

std::vector<bool> UpdatesOf(const Profile& profile) {
  const std::vector<Operation>& operations = profile.operations();
  bool has_passes = false;
  std::vector<size_t> gradients;
  for (size_t i = 0; i < operations.size(); ++i) {
    if (IsAcrossWorkers(operations[i]) && operations[i].collective == Collective::kReduceScatter)
      return std::vector<bool>(operations.size());
    has_passes = has_passes || operations[i].pass != Pass::kUnspecified;
    if (IsGradient(operations[i])) gradients.push_back(i);
  }
  std::vector<bool> updates = AllThatWaitFor(std::move(gradients), operations);
  for (size_t i = 0; i < operations.size(); ++i) {
    if (has_passes) updates[i] = operations[i].pass == Pass::kOptimizer;
    if (operations[i].resource != Resource::kWorker) updates[i] = false;
  }
  return updates;
}

StepPlan WithSharedUpdates(const Profile& profile, StepPlan plan, int32_t workers) {
  if (workers == 1) return plan;
  const std::vector<bool> updates = UpdatesOf(profile);
  for (PlannedOperation& operation : plan) {
    const size_t source = Index(operation.source);
    if (!updates[source]) continue;
    auto whole_ns = std::make_shared<std::vector<int64_t>>();
    for (const RecordedStep& step : profile.steps())
      whole_ns->push_back(step.end_ns[source] - step.start_ns[source]);
    operation.part = {.whole_ns = std::move(whole_ns), .begin = 0, .end = 1, .whole = workers};
  }
  return plan;
}

Scenario WithShortestUpdates(Scenario scenario, int32_t most) {
  if (ShardingOf(scenario) == Sharding::kNone) return scenario;
  scenario.workers = most;
  std::get<AllReduce>(scenario.communication).fidelity = Fidelity::kCollapsed;
  return scenario;
}

absl::StatusOr<StepPlan> WithShardedParameters(const Profile& profile, const StepPlan& plan,
                                               const std::vector<int32_t>& counts) {
  return ParameterSharder(profile, plan, "all_reduce.sharding").Run(counts);
}

absl::StatusOr<ForwardUse> ForwardUses(const Profile& profile, const StepPlan& plan,
                                       const char* field) {
  return ParameterSharder(profile, plan, field).Forward(/*as_recorded_only=*/false);
}

absl::StatusOr<ForwardUse> ForwardAsRecorded(const Profile& profile, const StepPlan& plan,
                                             const char* field) {
  return ParameterSharder(profile, plan, field).Forward(/*as_recorded_only=*/true);
}

}  // namespace stepcast
