#include "core/advise/memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/advise/strategy.h"
#include "core/base/error.h"
#include "core/base/index.h"
#include "core/model/step_model.h"

namespace stepcast {

const char* NameOf(MemoryPass pass) {
  switch (pass) {
    case MemoryPass::kNone:
      return "NONE";
    case MemoryPass::kRecomputation:
      return "RECOMPUTATION";
    case MemoryPass::kGradientAccumulation:
      return "GRADIENT_ACCUMULATION";
  }
  return "";
}

UnusedNames::UnusedNames(const Profile& profile) {
  for (const Operation& operation : profile.operations()) taken_.insert(operation.name);
}

std::string UnusedNames::Make(const char* prefix, std::string_view name) {
  std::string made = absl::StrCat(prefix, std::string(name));
  while (!taken_.insert(made).second) made += "'";
  return made;
}

MemoryEstimate EstimateMemory(const Profile& profile, const MemoryModel& model) {
  return {.parameter_bytes = ParameterBytes(profile) * model.parameter_copies,
          .output_bytes = PeakOfKept(profile, model.kept_bytes)};
}

namespace {

// A job whose batch is computed in two halves.
class HalvedJob {
 public:
  HalvedJob(const Profile& profile, const std::vector<double>& shares)
      : profile_(profile),
        operations_(profile.operations()),
        waits_(operations_.size(), 0),
        is_once_(operations_.size(), 0),
        half_(operations_.size(), -1),
        factors_(operations_.size(), 1) {
    FindWaiting();
    FindOnce();
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (waits_[i] || is_once_[i] || operations_[i].resource != Resource::kWorker) continue;
      half_[i] = static_cast<int32_t>(sources_.size());
      sources_.push_back(static_cast<int32_t>(i));
      factors_[i] = shares[i];
    }
  }

  bool has_halves() const { return !sources_.empty(); }

  // REQUIRES: it has halves. First ones stand before all the rest.
  absl::StatusOr<Profile> Write() const {
    ProfileDraft draft = profile_.content();
    draft.operations.clear();
    const std::vector<int32_t> last_halves = AddFirstHalves(draft.operations);
    AddTheRest(last_halves, draft.operations);
    RewriteSteps(draft, [this](const RecordedStep& step) { return StepOf(step); });
    return Profile::Create(std::move(draft));
  }

 private:
  // Operations that wait for a gradient's exchange, directly or not.
  void FindWaiting() {
    std::vector<std::vector<int32_t>> dependents(operations_.size());
    std::vector<int32_t> left;
    for (size_t i = 0; i < operations_.size(); ++i) {
      for (const int32_t before : operations_[i].waiting_for)
        dependents[Index(before)].push_back(static_cast<int32_t>(i));
      if (IsGradient(operations_[i])) left.push_back(static_cast<int32_t>(i));
    }
    while (!left.empty()) {
      const int32_t operation = left.back();
      left.pop_back();
      if (std::exchange(waits_[Index(operation)], uint8_t{1}) != 0) continue;
      const std::vector<int32_t>& after = dependents[Index(operation)];
      left.insert(left.end(), after.begin(), after.end());
    }
  }

  // A collective of another kind that a computation waits for is there once, before both halves,
  // as is what it waits for itself.
  void FindOnce() {
    std::vector<int32_t> left;
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (waits_[i] || operations_[i].resource != Resource::kWorker) continue;
      for (const int32_t before : operations_[i].waiting_for) {
        if (operations_[Index(before)].resource != Resource::kWorker) left.push_back(before);
      }
    }
    while (!left.empty()) {
      const int32_t operation = left.back();
      left.pop_back();
      if (std::exchange(is_once_[Index(operation)], uint8_t{1}) != 0) continue;
      const std::vector<int32_t>& before = operations_[Index(operation)].waiting_for;
      left.insert(left.end(), before.begin(), before.end());
    }
  }

  int32_t halves() const { return static_cast<int32_t>(sources_.size()); }

  // Adds the first halves; returns those that no other waits for.
  std::vector<int32_t> AddFirstHalves(std::vector<Operation>& to) const {
    UnusedNames names(profile_);
    std::vector<uint8_t> is_waited_for(sources_.size(), 0);
    for (const int32_t source : sources_) {
      Operation first = operations_[Index(source)];
      first.name = names.Make("half/", first.name);
      first.parameter.clear();
      first.kept_bytes = (first.kept_bytes + 1) / 2;
      for (int32_t& before : first.waiting_for) {
        // A collective of another kind, or a download, is there once, for both halves.
        if (half_[Index(before)] < 0) {
          before += halves();
          continue;
        }
        before = half_[Index(before)];
        is_waited_for[Index(before)] = 1;
      }
      to.push_back(std::move(first));
    }
    std::vector<int32_t> last;
    for (int32_t i = 0; i < halves(); ++i) {
      if (!is_waited_for[Index(i)]) last.push_back(i);
    }
    return last;
  }

  void AddTheRest(const std::vector<int32_t>& last_halves, std::vector<Operation>& to) const {
    for (size_t i = 0; i < operations_.size(); ++i) {
      Operation second = operations_[i];
      for (int32_t& before : second.waiting_for) before += halves();
      // The first halves wait for none of those that wait for them.
      const bool is_first =
          std::all_of(operations_[i].waiting_for.begin(), operations_[i].waiting_for.end(),
                      [&](int32_t before) { return is_once_[Index(before)] != 0; });
      if (half_[i] >= 0 && is_first) {
        second.waiting_for.insert(second.waiting_for.end(), last_halves.begin(), last_halves.end());
        std::sort(second.waiting_for.begin(), second.waiting_for.end());
      }
      if (half_[i] >= 0) second.kept_bytes = (second.kept_bytes + 1) / 2;
      to.push_back(std::move(second));
    }
  }

  // Both halves after what is there once, and the rest behind the second as it was behind all.
  RecordedStep StepOf(const RecordedStep& step) const {
    const RecordedStep shared = WarpedStep(profile_, step, factors_);
    int64_t begin = *std::min_element(shared.start_ns.begin(), shared.start_ns.end());
    for (size_t i = 0; i < operations_.size(); ++i) {
      if (is_once_[i]) begin = std::max(begin, shared.end_ns[i]);
    }
    RecordedStep made;
    int64_t first_half_ns = 0;
    const auto add = [&](size_t i, int64_t start_ns) {
      made.start_ns.push_back(start_ns);
      made.end_ns.push_back(start_ns + shared.end_ns[i] - shared.start_ns[i]);
    };
    for (const int32_t source : sources_) {
      add(Index(source), std::max(begin, shared.start_ns[Index(source)]));
      first_half_ns = std::max(first_half_ns, made.end_ns.back() - begin);
    }
    for (size_t i = 0; i < operations_.size(); ++i) {
      const int64_t start = shared.start_ns[i];
      add(i, is_once_[i] ? start : first_half_ns + std::max(begin, start));
    }
    return made;
  }

  const Profile& profile_;
  const std::vector<Operation>& operations_;
  std::vector<uint8_t> waits_;    // by operation
  std::vector<uint8_t> is_once_;  // likewise
  std::vector<int32_t> half_;     // by operation, its place among first halves; -1: it has none
  std::vector<int32_t> sources_;  // of the first halves
  std::vector<double> factors_;   // by operation, of its time
};

}  // namespace

absl::StatusOr<MemoryPlan> Accumulate(const Profile& profile, const MemoryModel& model,
                                      const std::vector<double>& shares) {
  const HalvedJob job(profile, shares);
  if (!job.has_halves()) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "nothing can be done in halves: every computation waits for gradients, or "
                     "another collective for it",
                     {.reason = "NOTHING_TO_HALVE"});
  }
  absl::StatusOr<Profile> made = job.Write();
  if (!made.ok()) return made.status();
  MemoryEstimate memory = EstimateMemory(profile, model);
  memory.output_bytes /= 2;
  return MemoryPlan{
      .pass = MemoryPass::kGradientAccumulation, .profile = *std::move(made), .memory = memory};
}

}  // namespace stepcast
