// The answers of the service, as people read them; each is defined beside its command.
#pragma once

#include <cstddef>
#include <string>

#include "google/longrunning/operations.pb.h"

#include "stepcast/v1/allocation.pb.h"
#include "stepcast/v1/calibration.pb.h"
#include "stepcast/v1/comparison.pb.h"
#include "stepcast/v1/diagnosis.pb.h"
#include "stepcast/v1/layout.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/profile.pb.h"
#include "stepcast/v1/profile_service.pb.h"
#include "stepcast/v1/recommendation.pb.h"
#include "stepcast/v1/strategy.pb.h"
#include "stepcast/v1/tuning.pb.h"

namespace stepcast::server {
struct RecordingReport;
}  // namespace stepcast::server

namespace stepcast::client {

// The reason; then each simulated choice in a row, with servers, time, cost and broken constraints
// where there is any to tell. `->` marks the recommended choice, or the nearest to the
// constraints, `=` one that is as good. Then what the marks mean, what was not simulated, and the
// warnings.
std::string RecommendationText(const v1::RecommendWorkersResponse& response);

// The number of transfers that are shown unless somebody says otherwise.
inline constexpr size_t kDefaultTransfers = 10;
// A row a method with the chosen one marked, what the bounds are, and the first `transfers_max`
// transfers of the chosen order.
std::string OrderText(const v1::OptimizeOrderResponse& response, size_t transfers_max);

// A row a method with the chosen one marked, for each number of workers; the reason; the groups of
// the chosen one; the warnings.
std::string TuningText(const v1::OptimizeCommunicationResponse& response);

// A row a job, the total, what one more worker would give, and the jobs with an error of their own.
std::string AllocationText(const v1::AllocateWorkersResponse& response);

// Examples per second, a row a number of workers and a column a model, each with its difference to
// the simulation; then why a model says nothing, and what the models were given.
std::string ComparisonText(const v1::CompareModelsResponse& response);

// One sentence: what a step is made of most, whom the others wait for, and the change that gains
// most. Then the critical path by kind, a row a change with its gain, why others were not tried,
// the longest operations of the path, and the warnings.
std::string DiagnosisText(const v1::DiagnoseJobResponse& response);

// A row a worker with its clock's offset and its step; then the replay beside the recording, and
// what it does not explain.
std::string RecordingText(const v1::RecordingReport& report);

// The reason; a row for everything that was compared, with its gain; the strategy's groups, the
// first ones; the memory before and after; what the search did; the warnings.
std::string StrategyText(const v1::OptimizeJobResponse& response);

// A row a layout, the best first; how sure that is, what was refused and why.
std::string LayoutText(const v1::RecommendLayoutResponse& response);

// Both coefficients with their intervals, what they leave unexplained, and how to use them; a
// warning where many measurements are 0.
std::string FitText(const v1::FitParsingOverheadRequest& request,
                    const v1::FitParsingOverheadResponse& response);

// The coefficients with their intervals, a row a number of workers, the warnings, and the flags
// that use what was fitted.
std::string CollectiveFitText(const v1::FitCollectivesRequest& request,
                              const v1::FitCollectivesResponse& response);

// The constants with their intervals, what they leave unexplained, the assumptions that fail, and
// how to use them; `path`: of the file that holds them, empty: none.
std::string ContentionFitText(const v1::FitContentionResponse& response, const std::string& path);

// A row a profile.
std::string ProfileTable(const v1::ListProfilesResponse& response);
// A line a property. With operations: also what they are and how much they move.
std::string ProfileText(const v1::Profile& profile);

// A row a job.
std::string JobTable(const google::longrunning::ListOperationsResponse& response);
// A line a property, without its reply.
std::string JobText(const google::longrunning::Operation& job);
// The reply of a job, as the command that asks in a call prints it. Empty for none, and for one of
// a type that this program does not know.
std::string ReplyText(const google::longrunning::Operation& job);
// Its proto JSON.
std::string ReplyJson(const google::longrunning::Operation& job);

// The report of `profile check` on a valid profile, for people and for programs.

// The share of a recorded step that the model explains, a line for each link and for clocks, or of
// collectives what a step is made of, the buckets and DistributedDataParallel's rule; and at least
// one line `to do: ...`.
std::string CheckSummary(const server::RecordingReport& recording);

// For each link its bandwidth, its start, its window, and a table of how well each way of sharing
// it explains the recording, the nearest one marked; and the scheduling efficiency of each step.
std::string CheckDetails(const server::RecordingReport& recording);

// The profile as the service returned it, and the report as a member `recording` beside its fields:
// { replay {..} clocks {..} links [..] orders {..} }, or of collectives { replay {..} allReduce
// {..} }, the members of the reports in lowerCamelCase.
std::string CheckJson(const v1::Profile& profile, const server::RecordingReport& recording);

}  // namespace stepcast::client
