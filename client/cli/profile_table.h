// Profiles, as people read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stepcast/profile.h"

namespace stepcast::client {

// A row a profile.
std::string ProfileTable(const std::vector<Profile>& profiles);

// A line a property. With operations: also what they are and how much they move.
std::string ProfileText(const Profile& profile);

}  // namespace stepcast::client
