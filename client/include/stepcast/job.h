// Computations that outlive the call that asked for them: requests and replies of JobClient.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/job_service.proto. A job is one
// google.longrunning.Operation there.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "stepcast/allocation.h"
#include "stepcast/comparison.h"
#include "stepcast/order.h"
#include "stepcast/prediction.h"
#include "stepcast/recommendation.h"

namespace stepcast::client {

enum class JobState : int32_t {
  kUnspecified = 0,
  kQueued = 1,
  kRunning = 2,
  kSucceeded = 3,
  kFailed = 4,
  kCancelled = 5
};

// QUEUED and so on; STATE_UNSPECIFIED for what is none.
std::string_view JobStateName(JobState state);

// What can be asked of a job: what the method of Client with this request computes.
using JobComputation =
    std::variant<PredictThroughputRequest, RecommendWorkersRequest, OptimizeOrderRequest,
                 AllocateWorkersRequest, CompareModelsRequest>;

// What that method would have replied.
using JobReply =
    std::variant<std::monostate, PredictThroughputResponse, RecommendWorkersResponse,
                 OptimizeOrderResponse, AllocateWorkersResponse, CompareModelsResponse>;

struct StartJobRequest {
  std::string request_id;  // empty: the client makes a new one for each call
  JobComputation computation;

  friend bool operator==(const StartJobRequest&, const StartJobRequest&) = default;
};

struct Job {
  using Time = std::chrono::sys_time<std::chrono::nanoseconds>;

  std::string name;    // `operations/{operation}`
  std::string method;  // `PredictThroughput` for instance
  JobState state = JobState::kUnspecified;
  std::optional<Time> create_time;
  std::optional<Time> start_time;  // of the present or last attempt; empty while queued
  std::optional<Time> end_time;    // empty before it is done
  int32_t attempts = 0;
  int64_t simulated_operations = 0;  // about; tells whether it moves, not how long it will take
  std::string replica;               // the server that computes it; empty while queued
  bool cancel_requested = false;
  bool done = false;
  absl::Status
      status;      // what the method would have failed with; OK where it did not, or is not done
  JobReply reply;  // empty where it failed or is not done, and where a later server replies what
                   // this client does not know

  friend bool operator==(const Job&, const Job&) = default;
};

struct ListJobsRequest {
  int32_t page_size = 0;  // 0: the service's default, 50
  std::string page_token;

  friend bool operator==(const ListJobsRequest&, const ListJobsRequest&) = default;
};

struct ListJobsResponse {
  std::vector<Job> jobs;        // in the order in which they were started
  std::string next_page_token;  // empty on the last page

  friend bool operator==(const ListJobsResponse&, const ListJobsResponse&) = default;
};

}  // namespace stepcast::client
