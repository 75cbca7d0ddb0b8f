// Which of the formats that `profile import` takes a file has.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepcast::client {

enum class RecordingFormat { kLayers, kRunMetadata, kTimeline };

// By the first bytes: JSON is a timeline, what has bytes that no text has is RunMetadata, all else
// measured layers.
RecordingFormat DetectRecordingFormat(std::string_view first_bytes);
// The same of a file, or of what it decompresses to. Failure: as ReadFile.
absl::StatusOr<RecordingFormat> DetectRecordingFormatOf(const std::string& path);

}  // namespace stepcast::client
