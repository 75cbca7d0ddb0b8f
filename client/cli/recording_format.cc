#include "client/cli/recording_format.h"

#include <algorithm>

#include "stepcast/profile_encoding.h"

namespace stepcast::client {

namespace {

constexpr size_t kFirstBytes = 4096;

// Control characters other than tab, line feed and carriage return.
bool NoText(char byte) {
  return byte >= 0 && byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r';
}

}  // namespace

RecordingFormat DetectRecordingFormat(std::string_view first_bytes) {
  if (std::any_of(first_bytes.begin(), first_bytes.end(), NoText))
    return RecordingFormat::kRunMetadata;
  const size_t begin = first_bytes.find_first_not_of(" \t\r\n");
  const bool json =
      begin != std::string_view::npos && (first_bytes[begin] == '{' || first_bytes[begin] == '[');
  return json ? RecordingFormat::kTimeline : RecordingFormat::kLayers;
}

absl::StatusOr<RecordingFormat> DetectRecordingFormatOf(const std::string& path) {
  const absl::StatusOr<std::string> bytes = ReadFileStart(path, kFirstBytes);
  if (!bytes.ok()) return bytes.status();
  return DetectRecordingFormat(*bytes);
}

}  // namespace stepcast::client
