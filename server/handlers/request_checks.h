// The checks that handlers make of requests alike: names of profiles, and faults from several
// sources.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/base/error.h"
#include "server/convert/stored_requests.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// Names of profiles: `profiles/{id}`, and the ids a caller or the digest gives (AIP-122, AIP-155).
//
// An id is 1 to 63 characters of a-z, 0-9 and -, begins with a letter and does not end with -.

bool IsProfileId(std::string_view id);

// The id of a profile nobody named: `p-` and the first 20 digits of its digest. 80 bits: a store of
// 2^32 profiles meets a collision, which is refused with ALREADY_EXISTS, with a probability of
// 1e-5.
std::string DerivedProfileId(std::string_view digest);

std::string ProfileName(std::string_view id);

// INVALID_ARGUMENT, reason REQUEST_INVALID, at `field`.
absl::StatusOr<std::string> ProfileIdOf(std::string_view name, std::string_view field);

// The faults of a placement's ids; `prefix` (empty, or ending with a dot) goes before the field.
// A request id is a UUID in its usual form.
std::vector<Fault> FaultsOf(const ProfilePlacement& placement, std::string_view prefix);

// Suggestions for the name of a profile that is not there: profiles that a caller may have meant.
//
// Names what ListProfiles would list, so it is only for callers who may call that; its test holds
// the methods that name profiles to it.
// Threads: safe, as the store is; may block on it.

// `status`, where it is the store's NOT_FOUND for this id, with up to three names that are like it
// in its message and in its metadata `similar`, separated by spaces, and the model of the zoo that
// it is, in `zoo_model`; else as it is. Like it are, the likest first: profiles of a model or
// display name that differs from it by case and punctuation alone, those with an id, model or
// display name that holds it or is held by it, and those with an id or model that differs by at
// most a third of its letters. Cost: bounded; a page of kProfilesCompared profiles and one of those
// with its model.
absl::Status NameSimilar(const absl::Status& status, const std::string& id, ProfileStore& store);

inline constexpr int kProfilesCompared = 500;

// The union of the faults that several checks of one request found: `status` with `faults` before
// its own, one fault a field, under its reason. `faults` come first because they are about what the
// core never saw, so a status that is not about faults (UNIMPLEMENTED, NOT_FOUND) gives way to
// them: reason REQUEST_INVALID. Without any, `status` as it is.
absl::Status WithFaults(std::vector<Fault> faults, const absl::Status& status);

// The same faults under a longer path.
std::vector<Fault> FaultsUnder(const std::string& prefix, std::vector<Fault> faults);

}  // namespace stepcast::server
