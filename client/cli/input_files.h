// The files that people write for the program, a line for each entry, and recordings.
//
// Threads: pure functions. Cost: linear. Failure: INVALID_ARGUMENT, naming the first line that is
// wrong, and why.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "stepcast/v1/calibration.pb.h"
#include "stepcast/v1/order.pb.h"

namespace stepcast::client {

// Measurements of parsing: lines `size_bytes,seconds`. Separators are commas, semicolons or tabs;
// empty lines and those that begin with # are skipped, and so is a first line that begins with a
// letter: the columns' names.
absl::StatusOr<std::vector<v1::ParsingMeasurement>> ParseMeasurements(std::string_view text);
// True where the first line with content looks like the above and not like a profile.
bool LooksLikeMeasurements(std::string_view text);

// The ranks of transfers: lines `name<TAB>rank`. Empty lines, and those that begin with #, mean
// nothing. Refused: no tab, no rank, a name that comes twice.
absl::StatusOr<std::map<std::string, int32_t>> ParsePriorities(std::string_view text);
// A text that ParsePriorities reads, in the order of the transfers: each with how many transfers
// from the same server go before it, which is what TicTac's enforcement at the sender counts to
// (SysML 2019, 5.1). Refused: a name that no line can hold.
absl::StatusOr<std::string> PriorityText(const v1::TransferOrderResult& order);

// The sizes of variables: lines `NAME BYTES`, blank ones and those that begin with # apart. BYTES
// with a unit or without, as everywhere in the program. Refused: a name that is there twice.
absl::StatusOr<std::map<std::string, int64_t>> ParseVariableSizes(std::string_view text);

// A format that `profile import` takes.
enum class RecordingFormat { kLayers, kRunMetadata, kTimeline, kPyTorch, kChakra, kHorovod };

// By the first bytes: JSON that looks like PyTorch's, Chakra's or Horovod's is that, other JSON a
// timeline, bytes that no text has are RunMetadata, all else is measured layers.
RecordingFormat DetectRecordingFormat(std::string_view first_bytes);

}  // namespace stepcast::client
