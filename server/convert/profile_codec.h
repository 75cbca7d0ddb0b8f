// A profile as bytes: what the store keeps and what the digest is of.
//
// The content is the deterministic serialisation of the Profile message without its output-only
// fields. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "core/model/profile.h"
#include "server/convert/stored_requests.h"

namespace stepcast::server {

// The digest of a content that parses but was altered differs; that is the store's to notice.
struct EncodedProfile {
  std::string content;
  std::string digest;  // SHA-256 (hex) of the content without display name and labels
};

EncodedProfile EncodeProfile(const Profile& profile);

// The digest alone, for a profile that is not to be stored.
std::string DigestOf(const Profile& profile);

// DATA_LOSS, reason PROFILE_CORRUPT, if `content` is not what EncodeProfile made.
absl::StatusOr<Profile> DecodeProfile(std::string_view content);

// Reads a profile in one of the encodings of UploadProfile. Unknown fields are an error.
// INVALID_ARGUMENT, reason PROFILE_MALFORMED, field `chunk`, if the
// bytes are none.
absl::StatusOr<ProfileInput> ReadProfile(ProfileEncoding encoding, std::string_view bytes);

}  // namespace stepcast::server
