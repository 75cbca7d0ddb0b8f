// UTF-8 validation, which every string of the contract must pass, and text that is made valid.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/model/profile.h"

namespace stepcast::server {

// Well-formed in the sense of Unicode 15, table 3-7. Cost: linear.
bool IsUtf8(std::string_view text);

// The first `max` bytes of `text`, never cut within a character; each byte that is part of none
// becomes '?'.
std::string ToUtf8(std::string_view text, size_t max);

// A fault for each text of a profile that is not UTF-8. Binary and JSON parsing see to that
// themselves; text form and imports do not, and what they let through could be stored but never be
// read again.
std::vector<Fault> FindBrokenText(const ProfileDraft& draft);

}  // namespace stepcast::server
