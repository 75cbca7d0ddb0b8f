#include "core/importing/common/recording_import.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/model/validate_profile.h"

namespace stepcast {

void CheckRecordingOptions(const RecordingOptions& options, const ProfileLimits& limits,
                           FaultList& faults) {
  if (options.model.size() > limits.max_text_bytes)
    faults.Add("model", TooLong(options.model, "max_text_bytes", limits.max_text_bytes));
  if (options.batch_size < 1)
    faults.Add("batch_size", absl::StrCat(options.batch_size, " is below 1"));
  if (options.batch_size > limits.max_batch_size)
    faults.Add("batch_size",
               OverLimit(options.batch_size, "max_batch_size", limits.max_batch_size));
  CheckPlatform("platform", options.platform, faults);
}

absl::Status ImportFault(std::string field, std::string description) {
  return FaultsError("IMPORT_INVALID",
                     {{.field = std::move(field), .description = std::move(description)}});
}

absl::Status AsImportFaults(const absl::Status& status) {
  std::vector<Fault> faults = DetailsOf(status).faults;
  if (faults.empty()) return status;
  for (Fault& fault : faults) {
    if (!absl::StartsWith(fault.field, "operations") && !absl::StartsWith(fault.field, "steps") &&
        fault.field != "parameter_servers")
      continue;
    fault.description = absl::StrCat("as a profile it has ", fault.field, ": ", fault.description);
    fault.field = kAtRecording;
  }
  return FaultsError("IMPORT_INVALID", std::move(faults));
}

}  // namespace stepcast
