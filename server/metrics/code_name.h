// Status codes as metrics label them: in Go's spelling, which dashboards expect.
#pragma once

#include <array>
#include <string_view>

namespace stepcast::server {

inline constexpr std::array<std::string_view, 17> kCodeNames{
    "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
    "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
    "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
    "DataLoss", "Unauthenticated"};

// Of a canonical code's number; "Unknown" for any other.
constexpr std::string_view CodeName(int code) {
  return code >= 0 && code < static_cast<int>(kCodeNames.size())
             ? kCodeNames[static_cast<size_t>(code)]
             : "Unknown";
}

}  // namespace stepcast::server
