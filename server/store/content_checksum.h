// The checksum of a stored content, which tells whether it is still the one that was put.
#pragma once

#include <cstdint>
#include <string>

#include "server/store/profile_store.h"

namespace stepcast::server {

// CRC-32 of the content and of what says whose it is, so that bytes under another profile's name
// are found too. Cost: about 1 ns a byte.
int64_t ContentChecksum(const ProfileSummary& summary, std::string_view content);

}  // namespace stepcast::server
