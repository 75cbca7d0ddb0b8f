// A profile in each encoding of UploadProfile.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "server/convert/stored_requests.h"
#include "stepcast/v1/profile.pb.h"
#include "tests/fuzz/fuzz_target.h"

namespace stepcast::fuzz {

inline constexpr std::array<server::ProfileEncoding, 3> kEncodings{server::ProfileEncoding::kBinary,
                                                                   server::ProfileEncoding::kJson,
                                                                   server::ProfileEncoding::kText};

// Of the draft as it is, valid or not.
std::string WriteProfile(server::ProfileEncoding encoding, const ProfileDraft& draft);

// Changes fields of the message that `bytes` are in `encoding`, or the bytes themselves, one time
// in two, or where they are none.
std::string MutateProfile(server::ProfileEncoding encoding, std::string bytes,
                          const Mutation& mutation);

}  // namespace stepcast::fuzz
