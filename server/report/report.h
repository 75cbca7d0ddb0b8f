// The report on a job: one HTML file that answers, in the order in which a person asks, how many
// workers, why, how sure, and what else there would be.
//
// Everything on it is a reply of the service: this asks, leaves out what is not shown, and puts the
// rest into a page (page.h) that draws it. Nothing is computed here that an RPC does not say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server {

// The answers that a report is made of. Implementations: a client's connection
// (client/cli/commands/report.cc), and a server's own (server/app/report_pages.cc).
// Threads: called by one at a time. Calls block; their time is the implementation's to bound.
class ReportSource {
 public:
  virtual ~ReportSource() = default;

  virtual absl::StatusOr<v1::Profile> GetProfile(const v1::GetProfileRequest& request) = 0;
  virtual absl::StatusOr<v1::PredictThroughputResponse> PredictThroughput(
      const v1::PredictThroughputRequest& request) = 0;
  virtual absl::StatusOr<v1::RecommendWorkersResponse> RecommendWorkers(
      const v1::RecommendWorkersRequest& request) = 0;
  virtual absl::StatusOr<v1::OptimizeOrderResponse> OptimizeOrder(
      const v1::OptimizeOrderRequest& request) = 0;
  virtual absl::StatusOr<v1::OptimizeCommunicationResponse> OptimizeCommunication(
      const v1::OptimizeCommunicationRequest& request) = 0;
  virtual absl::StatusOr<v1::CompareModelsResponse> CompareModels(
      const v1::CompareModelsRequest& request) = 0;
  virtual absl::StatusOr<v1::DiagnoseJobResponse> DiagnoseJob(
      const v1::DiagnoseJobRequest& request) = 0;
  // Hands every piece to `take`; its failure ends the call.
  virtual absl::Status GenerateTrace(const v1::GenerateTraceRequest& request,
                                     const std::function<absl::Status(std::string_view)>& take) = 0;
};

// A job to report on.
struct ReportSubject {
  std::string label;  // for people, to tell it from another; empty: the profile's own names
  std::string file;   // that the profile was read from; empty: a stored one
  // The profile, the scenario, the options, and what is asked of a recommendation. The bounds of
  // the number of workers are those of `worker_counts` where it has none.
  v1::RecommendWorkersRequest question;
};

struct ReportRequest {
  std::vector<ReportSubject> subjects;  // one, or two to compare
  std::vector<int32_t> worker_counts;   // REQUIRES: not empty
  std::string command;                  // that gives the same numbers again, as a shell takes it
  int64_t made_at_seconds = 0;          // since 1970; 0: not said
};

// A word as a POSIX shell takes it: as it is, or in quotes.
std::string ShellWord(std::string_view word);

// A request as an address says it: the profile's id in its path, and the rest behind a question
// mark; without the instant.
//
//   workers=1-16             numbers of workers as counts and ranges, at most 64; default 1-16
//   bandwidth_bytes_per_second=125000000
//   against=PROFILE          a second profile, to compare with
//
// NOT_FOUND, reason PAGE_UNKNOWN, for an id that no profile can have. INVALID_ARGUMENT, reason
// QUERY_INVALID, naming each parameter that is unknown, there twice, or has no such value. What the
// service itself checks, as the range of a bandwidth, is left to it. Threads: a pure function.
absl::StatusOr<ReportRequest> ReadReportQuery(std::string_view profile_id, std::string_view query);

struct Report {
  std::string title;
  std::string summary;  // the recommendation in a sentence, of each job
  std::string data;     // JSON: what the page shows
};

// Collects the data of the page. Fails as the service did where there is no profile or no
// prediction; what else could not be had is left out, and the page says why.
absl::StatusOr<Report> CollectReport(ReportSource& source, const ReportRequest& request);

struct ReportPage {
  std::string html;
  std::string summary;
};

// CollectReport as a page. FAILED_PRECONDITION, reason REPORT_NOT_BUILT, before anything is asked,
// in a build without it.
absl::StatusOr<ReportPage> MakeReportPage(ReportSource& source, const ReportRequest& request);

}  // namespace stepcast::server
