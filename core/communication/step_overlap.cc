#include "core/communication/step_overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/communication/full_sharding.h"
#include "core/model/job_change.h"

namespace stepcast {

namespace {

constexpr char kField[] = "all_reduce.byte_scheduler";

class StepTurner {
 public:
  StepTurner(const Profile& profile, const StepPlan& plan, ForwardUse forward)
      : profile_(profile),
        plan_(plan),
        forward_(std::move(forward)),
        gradients_(AllReducesOf(plan)),
        kinds_(plan.size(), Kind::kBackward),
        sum_of_(plan.size(), kNoSum),
        became_(plan.size(), kGone) {
    // Further micro-batches come behind the first one's forward pass, before the next step's
    // backward.
    others_ = static_cast<int32_t>(
        std::stable_partition(forward_.computations.begin(), forward_.computations.end(),
                              [&](int32_t i) { return !IsOfOthers(Index(i)); }) -
        forward_.computations.begin());
  }

  StepPlan Run() && {
    Classify();
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (kinds_[i] == Kind::kBackward || kinds_[i] == Kind::kSum) Append(i);
    }
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (kinds_[i] == Kind::kUpdate) Append(i);
    }
    ShareUpdateOfAll();
    for (const int32_t i : forward_.computations) Append(Index(i));
    Connect();
    return std::move(made_);
  }

 private:
  static constexpr int32_t kNoSum = -1;
  static constexpr int32_t kSeveral = -2;
  static constexpr int32_t kGone = -1;

  enum class Kind : uint8_t {
    kForward,
    kBackward,
    kSum,
    kUpdate,       // of one gradient
    kUpdateOfAll,  // of several
  };

  // True of micro-batches beside the recorded one, which use every parameter.
  bool IsOfOthers(size_t i) const {
    return profile_.change() != nullptr &&
           plan_[i].source >= profile_.change()->recorded_operations;
  }

  void Classify() {
    for (const int32_t i : forward_.computations) kinds_[Index(i)] = Kind::kForward;
    for (size_t g = 0; g < gradients_.size(); ++g) {
      kinds_[Index(gradients_[g])] = Kind::kSum;
      sum_of_[Index(gradients_[g])] = static_cast<int32_t>(g);
    }
    std::vector<std::vector<int32_t>> dependents(plan_.size());
    for (size_t i = 0; i < plan_.size(); ++i) {
      for (const int32_t before : plan_[i].waiting_for)
        dependents[Index(before)].push_back(static_cast<int32_t>(i));
    }
    // Each operation changes twice at most: to one sum, and to several.
    std::vector<int32_t> changed = gradients_;
    while (!changed.empty()) {
      const int32_t before = changed.back();
      changed.pop_back();
      for (const int32_t after : dependents[Index(before)]) {
        int32_t& sum = sum_of_[Index(after)];
        const int32_t now =
            sum == kNoSum || sum == sum_of_[Index(before)] ? sum_of_[Index(before)] : kSeveral;
        if (now == sum) continue;
        sum = now;
        kinds_[Index(after)] = sum == kSeveral ? Kind::kUpdateOfAll : Kind::kUpdate;
        changed.push_back(after);
      }
    }
  }

  void Append(size_t i) {
    became_[i] = static_cast<int32_t>(made_.size());
    made_.push_back(plan_[i]);
    made_.back().waiting_for.clear();
  }

  // A part for each gradient of what waits for several.
  void ShareUpdateOfAll() {
    auto whole_ns = std::make_shared<std::vector<int64_t>>(profile_.steps().size(), 0);
    int32_t first = kGone;
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (kinds_[i] != Kind::kUpdateOfAll) continue;
      if (first == kGone) first = static_cast<int32_t>(i);
      const auto source = Index(plan_[i].source);
      for (size_t s = 0; s < whole_ns->size(); ++s) {
        const RecordedStep& step = profile_.steps()[s];
        (*whole_ns)[s] += step.end_ns[source] - step.start_ns[source];
      }
    }
    if (first == kGone) return;
    int64_t bytes = 0;
    for (const int32_t gradient : gradients_) bytes += plan_[Index(gradient)].bytes;
    int64_t before = 0;
    for (const int32_t gradient : gradients_) {
      const int64_t after = before + plan_[Index(gradient)].bytes;
      PlannedOperation share = plan_[Index(first)];
      share.part = {.whole_ns = whole_ns, .begin = before, .end = after, .whole = bytes};
      share.waiting_for = {became_[Index(gradient)]};
      shares_.push_back(static_cast<int32_t>(made_.size()));
      made_.push_back(std::move(share));
      before = after;
    }
  }

  // The dependencies of operations in the new plan.
  void Connect() {
    const auto keep = [&](size_t i, auto keeps) {
      for (const int32_t before : plan_[i].waiting_for) {
        if (IsOfOthers(Index(before)) && !IsOfOthers(i)) continue;
        if (keeps(kinds_[Index(before)])) Wait(became_[i], became_[Index(before)]);
      }
    };
    for (size_t i = 0; i < plan_.size(); ++i) {
      switch (kinds_[i]) {
        case Kind::kForward:
          keep(i, [](Kind kind) { return kind == Kind::kForward; });
          break;
        case Kind::kBackward:
        case Kind::kSum:
          keep(i, [](Kind kind) { return kind == Kind::kBackward; });
          break;
        case Kind::kUpdate:
          keep(i, [](Kind kind) { return kind != Kind::kForward && kind != Kind::kUpdateOfAll; });
          break;
        case Kind::kUpdateOfAll:
          break;
      }
    }
    ConnectStreams();
    ConnectUses();
    for (PlannedOperation& operation : made_) SortUnique(operation.waiting_for);
  }

  // The forward pass follows the backward pass on each stream, one computation after the other.
  void ConnectStreams() {
    std::vector<std::vector<int32_t>> last;  // by stream, of the new plan
    const auto of_stream = [&](int32_t i) -> std::vector<int32_t>& {
      const size_t stream = Index(plan_[Index(i)].stream);
      if (last.size() <= stream) last.resize(stream + 1);
      return last[stream];
    };
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (kinds_[i] == Kind::kBackward) of_stream(static_cast<int32_t>(i)).push_back(became_[i]);
    }
    for (const int32_t i : forward_.computations) {
      std::vector<int32_t>& before = of_stream(i);
      for (const int32_t earlier : before) Wait(became_[Index(i)], earlier);
      before = {became_[Index(i)]};
    }
    for (size_t other = Index(others_); other < forward_.computations.size(); ++other) {
      for (int32_t i = 0; i < others_; ++i)
        Wait(became_[Index(forward_.computations[other])],
             became_[Index(forward_.computations[Index(i)])]);
    }
  }

  void ConnectUses() {
    int32_t rank = 0;
    std::vector<int32_t> rank_of(plan_.size(), 0);
    for (const int32_t i : forward_.computations) rank_of[Index(i)] = rank++;
    const auto use_of = [&](int32_t gradient) {
      return became_[Index(forward_.uses[Index(gradient)])];
    };
    for (size_t g = 0; g < gradients_.size(); ++g) {
      const int32_t sum = became_[Index(gradients_[g])];
      made_[Index(sum)].rank = rank_of[Index(forward_.uses[g])];
      Wait(use_of(static_cast<int32_t>(g)), sum);
      if (!shares_.empty()) Wait(use_of(static_cast<int32_t>(g)), shares_[g]);
    }
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (kinds_[i] == Kind::kUpdate) Wait(use_of(sum_of_[i]), became_[i]);
    }
  }

  void Wait(int32_t after, int32_t before) { made_[Index(after)].waiting_for.push_back(before); }

  const Profile& profile_;
  const StepPlan& plan_;
  ForwardUse forward_;
  int32_t others_ = 0;                    // where other micro-batches begin in its computations
  const std::vector<int32_t> gradients_;  // of the plan
  std::vector<Kind> kinds_;
  std::vector<int32_t> sum_of_;  // position in gradients_ of the sum that it waits for
  std::vector<int32_t> became_;  // in the new plan
  std::vector<int32_t> shares_;  // by gradient, in the new plan; empty: none
  StepPlan made_;
};

}  // namespace

absl::StatusOr<StepPlan> WithoutStepBarrier(const Profile& profile, const StepPlan& plan) {
  for (const PlannedOperation& operation : plan) {
    if (operation.kind == Collective::kUnspecified || operation.is_gradient) continue;
    return FaultsError(
        "SCENARIO_INVALID",
        {{.field = kField,
          .description = absl::StrCat("operations[", operation.source, "], ",
                                      Quoted(profile.operations()[Index(operation.source)].name),
                                      ", is not an ALL_REDUCE of gradients: only those whose "
                                      "parameter the next forward pass uses go by priority")}});
  }
  absl::StatusOr<ForwardUse> forward = ForwardAsRecorded(profile, plan, kField);
  if (!forward.ok()) return forward.status();
  return WithoutStepBarrier(profile, plan, *std::move(forward));
}

StepPlan WithoutStepBarrier(const Profile& profile, const StepPlan& plan, ForwardUse forward) {
  return StepTurner(profile, plan, std::move(forward)).Run();
}

}  // namespace stepcast
