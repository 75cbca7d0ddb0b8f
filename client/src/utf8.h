// Whether text is UTF-8, which every string of the contract must be.
#pragma once

#include <string>
#include <string_view>

#include "stepcast/profile.h"

namespace stepcast::client {

// Well-formed by RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool IsUtf8(std::string_view text);

// The path of the first text of a profile that is not UTF-8, for instance "operations[3].name";
// empty: all are.
std::string FirstBrokenText(const Profile& profile);

}  // namespace stepcast::client
