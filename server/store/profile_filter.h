// The match of a profile against a filter.
#pragma once

#include "server/store/profile_store.h"

namespace stepcast::server {

// Cost: O(terms x log labels).
bool Matches(const ProfileFilter& filter, const ProfileSummary& summary);

}  // namespace stepcast::server
