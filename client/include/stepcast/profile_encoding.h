// The encodings of a profile in a file: proto binary, proto JSON, proto text.
//
// Threads: pure functions; any number at once.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

// The encoding that `bytes` are in, judged by their content: anything with a byte that no text has
// is binary, text that begins with a brace is JSON. UTF-8's byte order mark is passed over. Cost:
// linear. Never ENCODING_UNSPECIFIED.
v1::UploadProfileRequest::Encoding DetectProfileEncoding(std::string_view bytes);

// Reads a profile without asking any service; ENCODING_UNSPECIFIED: DetectProfileEncoding.
// Failure: INVALID_ARGUMENT, reason PROFILE_UNREADABLE, saying where. Only the form is checked:
// the service says if the profile is valid.
absl::StatusOr<v1::Profile> ParseProfile(
    std::string_view bytes,
    v1::UploadProfileRequest::Encoding encoding = v1::UploadProfileRequest::ENCODING_UNSPECIFIED);

// The content of a file, decompressed where that is compressed by gzip. Failure: NOT_FOUND or
// PERMISSION_DENIED, reason FILE_UNREADABLE; the same with INVALID_ARGUMENT for a directory, a
// socket, a device and for damaged compression; OUT_OF_RANGE, reason FILE_TOO_LARGE, over 1 GiB,
// of a regular file before it is read. The path and the cause are in the message.
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace stepcast::client
