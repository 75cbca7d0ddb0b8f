#include "core/model/recorded_step_rules.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/model/limit_fault.h"

namespace stepcast {

namespace {

class RecordedStepRules {
 public:
  RecordedStepRules(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults)
      : draft_(draft),
        limits_(limits),
        faults_(faults),
        operation_count_(static_cast<int64_t>(draft.operations.size())),
        step_count_(static_cast<int64_t>(draft.steps.size())) {}

  void Check() {
    if (step_count_ == 0) faults_.Add("steps", "a profile needs at least one recorded step");
    if (step_count_ > limits_.max_steps) {
      faults_.Add("steps", OverLimit(step_count_, "max_steps", limits_.max_steps));
    } else if (step_count_ > 0 && operation_count_ > limits_.max_recorded_times / step_count_) {
      faults_.Add("steps", absl::StrCat(operation_count_, " operations in ", step_count_,
                                        " steps are above the limit max_recorded_times = ",
                                        limits_.max_recorded_times));
    } else if (operation_count_ > 0) {
      for (const Operation& operation : draft_.operations)
        has_transfer_ = has_transfer_ || IsTransfer(operation.resource);
      for (size_t i = 0; i < draft_.steps.size() && !faults_.full(); ++i) CheckStep(i);
    }
  }

 private:
  void CheckStep(size_t index) {
    const RecordedStep& step = draft_.steps[index];
    const bool starts = CheckStepLength(index, "start_ns", step.start_ns);
    const bool ends = CheckStepLength(index, "end_ns", step.end_ns);
    if (!starts || !ends) return;
    bool takes_time = has_transfer_;
    bool sound = true;
    for (size_t i = 0; i < draft_.operations.size(); ++i) {
      const int64_t start = step.start_ns[i];
      const int64_t end = step.end_ns[i];
      takes_time = takes_time || end > start;
      if (start >= 0 && end >= start && end <= limits_.max_step_ns) continue;
      sound = false;
      AddTimeFault(index, i);
      if (faults_.full()) return;
    }
    if (sound && !takes_time)
      faults_.Add(absl::StrCat("steps[", index, "]"),
                  "takes no time: no transfer, and no operation ends after it starts");
  }

  bool CheckStepLength(size_t index, const char* field, const std::vector<int64_t>& times) {
    if (times.size() == draft_.operations.size()) return true;
    faults_.Add(absl::StrCat("steps[", index, "].", field),
                absl::StrCat(times.size(), " times for ", operation_count_, " operations"));
    return false;
  }

  void AddTimeFault(size_t step, size_t operation) {
    const int64_t start = draft_.steps[step].start_ns[operation];
    const int64_t end = draft_.steps[step].end_ns[operation];
    const std::string start_path = absl::StrCat("steps[", step, "].start_ns[", operation, "]");
    const std::string end_path = absl::StrCat("steps[", step, "].end_ns[", operation, "]");
    if (start < 0) faults_.Add(start_path, absl::StrCat(start, " is a negative time"));
    if (start > limits_.max_step_ns)
      faults_.Add(start_path, OverLimit(start, "max_step_ns", limits_.max_step_ns));
    if (end < 0) {
      faults_.Add(end_path, absl::StrCat(end, " is a negative time"));
    } else if (end < start) {
      faults_.Add(end_path, absl::StrCat(end, " is before the start at ", start));
    } else if (end > limits_.max_step_ns && start <= limits_.max_step_ns) {
      faults_.Add(end_path, OverLimit(end, "max_step_ns", limits_.max_step_ns));
    }
  }

  const ProfileDraft& draft_;
  const ProfileLimits& limits_;
  FaultList& faults_;
  const int64_t operation_count_;
  const int64_t step_count_;
  bool has_transfer_ = false;
};

}  // namespace

void CheckSteps(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults) {
  RecordedStepRules(draft, limits, faults).Check();
}

}  // namespace stepcast
