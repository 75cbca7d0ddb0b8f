// The files that commands read, and what is in those that people write for the program.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/byte_stream.h"

#include "core/importing/file_kind.h"
#include "stepcast/v1/calibration.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

// The files that commands read: a path, or `-` for standard input, which is read once.
//
// A file is refused for what it is before it is refused for what it holds: a directory, nothing at
// all, UTF-16, an archive, a page of HTML. Files may be compressed by gzip, and texts may begin
// with UTF-8's byte order mark.
// Failure: reason FILE_UNREADABLE, FILE_TOO_LARGE or PROFILE_UNREADABLE, with the file's name and
// the cause in the message.

inline constexpr std::string_view kStandardInput = "-";

FileToRead InputAt(const std::string& path);

// True where there is something to read at `path`, other than a directory.
bool IsFile(const std::string& path);
// A sentence on a path that is not a file: `there is no file "x"`, `cannot read "x": it is a
// directory`.
std::string WhyNoFile(const std::string& path);

// Failure: as FileStream::Open, and a file that no reader takes.
absl::StatusOr<std::unique_ptr<FileStream>> OpenInput(const std::string& path);
// The kind of what a stream holds, or decompresses to. REQUIRES: nothing was read of it.
absl::StatusOr<std::string> FirstBytes(FileStream& stream);

// A text, without a mark. `what` it should be stands in the refusal of other kinds: "a table of
// size_bytes,seconds".
absl::StatusOr<std::string> ReadTextInput(const std::string& path, std::string_view what);
// A small text: a token, a certificate.
absl::StatusOr<std::string> ReadSecretInput(const std::string& path);

// The bytes of a profile, not parsed yet; refused is what cannot be one.
absl::StatusOr<std::string> ReadProfileBytes(const std::string& path);
absl::StatusOr<v1::Profile> ReadProfileInput(const std::string& path);
// The bytes that ReadProfileBytes gave. `path` is for messages.
absl::StatusOr<v1::Profile> ParseProfileInput(std::string_view bytes, const std::string& path);

// The status, its message behind the name of the file that it is about.
absl::Status InFile(const std::string& path, const absl::Status& status);

// The status with the faults of the service's request renamed to the files that it was made of:
// `chunk` and `recording` become the name of a file, `line 3` that and the line. `names` are by the
// path of the field.
absl::Status NamingFiles(const absl::Status& status,
                         const std::map<std::string, std::string>& names);

// The files that people write for the program, a line for each entry, and recordings.
//
// Threads: pure functions. Cost: linear. Failure: INVALID_ARGUMENT, naming the first line that is
// wrong, and why.

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
