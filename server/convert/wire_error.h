// The wire form of a failed status: what a client of any language reads from `grpc-message` and
// `grpc-status-details-bin`.
//
// Both travel in a reply's metadata, which most clients limit to 8 KiB, so both are bounded here,
// whatever the status carries; and both are valid UTF-8, because they may quote what a client sent.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace stepcast::server {

inline constexpr char kErrorDomain[] = "stepcast";
inline constexpr size_t kMaxWireMessageBytes = 512;
inline constexpr size_t kMaxWireDetailsBytes = 4096;

struct WireError {
  std::string message;
  std::string details;  // a serialised google.rpc.Status
};

// Details, AIP-193: ErrorInfo always (a status without a reason gets its code's name), BadRequest
// with faults, ResourceInfo, RetryInfo and QuotaFailure where the status has them. Violations that
// do not fit are counted in the ErrorInfo's metadata, `violations_left_out`. REQUIRES:
// !status.ok().
WireError ToWireError(const absl::Status& status);

}  // namespace stepcast::server
