// The encodings of a profile in a file: proto binary, proto JSON, proto text.
//
// Threads: pure functions; any number at once.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

// The encoding that `bytes` are in, judged by their content: anything with a byte that no text has
// is binary, text that begins with a brace is JSON. Cost: linear. Never ENCODING_UNSPECIFIED.
v1::UploadProfileRequest::Encoding DetectProfileEncoding(std::string_view bytes);

// Reads a profile without asking any service; ENCODING_UNSPECIFIED: DetectProfileEncoding.
// Failure: INVALID_ARGUMENT, reason PROFILE_UNREADABLE, saying where. Only the form is checked:
// the service says if the profile is valid.
absl::StatusOr<v1::Profile> ParseProfile(
    std::string_view bytes,
    v1::UploadProfileRequest::Encoding encoding = v1::UploadProfileRequest::ENCODING_UNSPECIFIED);

// The content of a file, decompressed where that is compressed by gzip. Failure: NOT_FOUND or
// PERMISSION_DENIED, reason FILE_UNREADABLE; the same with INVALID_ARGUMENT for a directory and for
// damaged compression; OUT_OF_RANGE over 1 GiB; the path is in the message.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// The first `size` bytes of that, or all there are.
absl::StatusOr<std::string> ReadFileStart(const std::string& path, size_t size);

}  // namespace stepcast::client
