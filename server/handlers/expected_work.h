// The expected work of a checked request: how much it will simulate, for a queue to go by before
// anything has run.
//
// Rough: the runs that tell whether a prediction is steady come on top, and so does a search over
// orders; runs that are recalled, a precision that is reached early and choices that need not be
// tried make it less.
// The time of a unit of it is learned (CostModel).
// Threads: pure functions of their arguments.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"

#include "core/advise/communication_query.h"
#include "core/advise/strategy_query.h"
#include "core/allocate/allocation_query.h"
#include "core/compare/comparison.h"
#include "core/diagnose/diagnosis.h"
#include "core/layouts/layout_search.h"
#include "core/model/profile.h"
#include "core/predict/order.h"
#include "core/predict/run_memory.h"
#include "core/predict/throughput.h"
#include "core/recommend/recommendation_query.h"
#include "core/trace/trace.h"
#include "server/base/clock.h"
#include "server/handlers/engine_run.h"

namespace stepcast::server {

// A counter of simulated operations, of the runs of one computation that have ended.
// Threads: safe.
class SimulatedOperations final : public RunCounter {
 public:
  void Add(int64_t simulated_operations) override {
    count_.fetch_add(simulated_operations, std::memory_order_relaxed);
  }
  int64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> count_{0};
};

struct ExpectedWork {
  std::string method;
  std::string profile;      // digest; empty: of several, or of none
  double operations = 0;    // simulated
  double most_seconds = 0;  // the request's time budget; 0: none
  std::shared_ptr<SimulatedOperations> simulated =
      std::make_shared<SimulatedOperations>();  // so far; shared by all copies
};

// No machine simulates faster: a fifth of what the fast engines take on one thread
// (core/predict/throughput.h).
inline constexpr double kMinSecondsPerOperation = 1e-9;

// Simulated operations of all runs.
double OperationsOf(const Profile& profile, const ThroughputQuery& query);
double OperationsOf(const Profile& profile, const RecommendationQuery& query);
double OperationsOf(const Profile& profile, const OrderQuery& query);
double OperationsOf(const Profile& profile, const TuningQuery& query);
double OperationsOf(const Profile& profile, const ComparisonQuery& query);
double OperationsOf(const Profile& profile, const DiagnosisQuery& query);
double OperationsOf(const Profile& profile, const StrategyQuery& query);
double OperationsOf(const Profile& profile, const TraceQuery& query);
double OperationsOf(const Profile& profile, const LayoutQuery& query);
double OperationsOf(const AllocationQuery& query);

// The kind of the jobs of a checked request.
Communication CommunicationOf(const ThroughputQuery& query);
Communication CommunicationOf(const RecommendationQuery& query);
Communication CommunicationOf(const OrderQuery& query);
Communication CommunicationOf(const TuningQuery& query);
Communication CommunicationOf(const ComparisonQuery& query);
Communication CommunicationOf(const DiagnosisQuery& query);
Communication CommunicationOf(const StrategyQuery& query);
Communication CommunicationOf(const TraceQuery& query);
Communication CommunicationOf(const LayoutQuery& query);
Communication CommunicationOf(const AllocationQuery& query);

// The remedy that is offered instead of waiting.
enum class Remedy : uint8_t { kStartAJob, kAskForLess };

// DEADLINE_EXCEEDED with what was asked added to its message and, as `expected_operations`, to its
// metadata; anything else, and what is about no simulation, as it is.
absl::Status SayWhatWasAsked(const absl::Status& status, const ExpectedWork& work, Remedy remedy);

// The progress of a computation, and the error for whoever gave up on it: what was asked, how long
// it would take here, and what to do.
//
// Work that is done is counted twice: in operations, by the runs that have ended, and in pieces of
// kStopCheckInterval units, by the questions whether to go on, of which the fast engines ask one in
// up to eight times as many operations. The larger number counts, so early on the time may be
// overestimated.
// Threads: safe.
class WorkProgress {
 public:
  // Its time counts from here. The clock outlives it.
  WorkProgress(ExpectedWork work, const Clock& clock, Remedy remedy);

  // Another piece is done.
  void Count();
  // Operations, so far.
  int64_t done() const;
  int64_t expected() const { return static_cast<int64_t>(work_.operations); }
  // Error of SayWhatWasAsked; with `simulated_operations`, `elapsed_seconds` and `expected_seconds`
  // of all that was asked, once something is done.
  absl::Status Explain(const absl::Status& status) const;

 private:
  const ExpectedWork work_;
  const Clock& clock_;
  const Remedy remedy_;
  const int64_t start_ns_;
  std::atomic<int64_t> pieces_{0};
};

}  // namespace stepcast::server
