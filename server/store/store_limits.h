// The limits of a store: the most it holds.
#pragma once

#include <cstdint>

namespace stepcast::server {

// Reaching one of the store's is RESOURCE_EXHAUSTED, reason STORE_FULL, with the field's name as
// quota subject; one of a client's is RESOURCE_EXHAUSTED, reason CLIENT_QUOTA_EXCEEDED, with
// "client:NAME". Clients without a name have no limit of their own.
struct StoreLimits {
  int64_t max_profiles = 100'000;
  int64_t max_total_bytes = int64_t{16} << 30;  // of the contents, 16 GiB
  int64_t max_client_profiles = 0;              // of one owner; 0: no limit
  int64_t max_client_store_bytes = 0;           // of the contents of one owner; 0: no limit
  int64_t max_request_ids = 100'000;  // beyond it the oldest is forgotten. REQUIRES: above 0
};

}  // namespace stepcast::server
