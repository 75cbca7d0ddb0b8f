#include "core/model/validate_profile.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"
#include "core/model/fault_list.h"
#include "core/model/limit_fault.h"
#include "core/model/operation_rules.h"
#include "core/model/platform_rules.h"
#include "core/model/recorded_step_rules.h"

namespace stepcast {

namespace {

void CheckText(std::string path, const std::string& text, const ProfileLimits& limits,
               FaultList& faults) {
  if (text.size() > limits.max_text_bytes)
    faults.Add(std::move(path), TooLong(text, "max_text_bytes", limits.max_text_bytes));
}

void CheckLabels(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults) {
  if (draft.labels.size() > limits.max_labels) {
    faults.Add("labels", OverLimit(static_cast<int64_t>(draft.labels.size()), "max_labels",
                                   static_cast<int64_t>(limits.max_labels)));
    return;
  }
  for (const auto& [key, value] : draft.labels) {
    const std::string path = absl::StrCat("labels[", Quoted(key), "]");
    if (key.empty()) faults.Add(path, "a label needs a key");
    if (key.size() > limits.max_label_key_bytes)
      faults.Add(path, TooLong(key, "max_label_key_bytes", limits.max_label_key_bytes));
    CheckText(path, value, limits, faults);
  }
}

void CheckCount(const char* path, int64_t value, const char* limit, int64_t max,
                FaultList& faults) {
  if (value < 1) faults.Add(path, absl::StrCat(value, " is below 1"));
  if (value > max) faults.Add(path, OverLimit(value, limit, max));
}

}  // namespace

std::vector<Fault> ValidateProfile(const ProfileDraft& draft, const ProfileLimits& limits) {
  FaultList faults;
  CheckText("display_name", draft.display_name, limits, faults);
  CheckText("model", draft.model, limits, faults);
  CheckText("framework", draft.framework, limits, faults);
  CheckLabels(draft, limits, faults);
  CheckCount("batch_size", draft.batch_size, "max_batch_size", limits.max_batch_size, faults);
  CheckPlatform("platform", draft.platform, faults);
  CheckCount("parameter_servers", draft.parameter_servers, "max_parameter_servers",
             limits.max_parameter_servers, faults);
  CheckOperations(draft, limits, faults);
  CheckSteps(draft, limits, faults);
  return std::move(faults).Take();
}

}  // namespace stepcast
