// A report asked for by an address: the profile's id in its path, and the rest behind a question
// mark.
//
//   workers=1-16             numbers of workers as counts and ranges, at most 64; default 1-16
//   bandwidth_bytes_per_second=125000000
//   against=PROFILE          a second profile, to compare with
//
// Threads: a pure function.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"

#include "server/report/report.h"

namespace stepcast::server {

// NOT_FOUND, reason PAGE_UNKNOWN, for an id that no profile can have. INVALID_ARGUMENT, reason
// QUERY_INVALID, naming each parameter that is unknown, there twice, or has no such value. What the
// service itself checks, as the range of a bandwidth, is left to it.
absl::StatusOr<ReportRequest> ReadReportQuery(std::string_view profile_id, std::string_view query);

}  // namespace stepcast::server
