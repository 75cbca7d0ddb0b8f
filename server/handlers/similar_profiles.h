// Suggestions for the name of a profile that is not there: profiles that a caller may have meant.
//
// Names what ListProfiles would list, so it is only for callers who may call that; its test holds
// the methods that name profiles to it.
// Threads: safe, as the store is; may block on it.
#pragma once

#include <string>

#include "absl/status/status.h"

#include "server/store/profile_store.h"

namespace stepcast::server {

// `status`, where it is the store's NOT_FOUND for this id, with up to three names that are like it
// in its message and in its metadata `similar`, separated by spaces, and the model of the zoo that
// it is, in `zoo_model`; else as it is. Like it are, the likest first: profiles of a model or
// display name that differs from it by case and punctuation alone, those with an id, model or
// display name that holds it or is held by it, and those with an id or model that differs by at
// most a third of its letters. Cost: bounded; a page of kProfilesCompared profiles and one of those
// with its model.
absl::Status NameSimilar(const absl::Status& status, const std::string& id, ProfileStore& store);

inline constexpr int kProfilesCompared = 500;

}  // namespace stepcast::server
