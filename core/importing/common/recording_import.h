// The import of a foreign recording: its units, the facts that it does not hold and whoever imports
// it must state, its faults, and its result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast {

// The units of recordings, and their texts in the form that absl takes.

inline constexpr double kNsPerMs = 1e6;
inline constexpr double kMebibyte = 1 << 20;

// Debian 12's absl has a string_view of its own.
inline absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

struct RecordingOptions {
  std::string model;
  int32_t batch_size = 0;  // required
  Platform platform;       // bandwidth is required
};

// Faults at `model`, `batch_size` and below `platform`.
void CheckRecordingOptions(const RecordingOptions& options, const ProfileLimits& limits,
                           FaultList& faults);

// The paths of faults in an import: in the recording itself, or in the graph given beside it.
// All others are at fields of the options.
inline constexpr char kAtRecording[] = "recording";
inline constexpr char kAtGraph[] = "graph";

// INVALID_ARGUMENT, reason IMPORT_INVALID, with one fault.
absl::Status ImportFault(std::string field, std::string description);

// A profile's faults as ones of the recording it was made of; other statuses as they are.
absl::Status AsImportFaults(const absl::Status& status);

struct ImportedProfile {
  Profile profile;
  std::vector<std::string> notes;  // findings, omissions and assumptions, a sentence each
};

}  // namespace stepcast
