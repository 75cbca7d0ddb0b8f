// The requests and answers of the methods of PredictionService, in plain types.
// `faults` as in stored_requests.h.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/advise/communication_tuning.h"
#include "core/advise/contention_fit.h"
#include "core/advise/optimize_job.h"
#include "core/advise/overlap_model.h"
#include "core/allocate/allocation.h"
#include "core/base/error.h"
#include "core/calibrate/collective_fit.h"
#include "core/calibrate/parsing_overhead_fit.h"
#include "core/compare/comparison.h"
#include "core/diagnose/diagnosis.h"
#include "core/layouts/layout_search.h"
#include "core/layouts/run_fit.h"
#include "core/model/job_change.h"
#include "core/model/simulation_options.h"
#include "core/predict/order.h"
#include "core/predict/throughput.h"
#include "core/recommend/recommendation.h"
#include "core/trace/trace.h"
#include "server/convert/stored_requests.h"

namespace stepcast::server {

// The source of a profile: none, the store, by its name, or the request itself.
using ProfileOrigin = std::variant<std::monostate, std::string, ProfileInput>;

// The job that is asked about.
struct ProfileSource {
  ProfileOrigin recorded;
  JobChange change;
  ProfileOrigin second;  // of the change
};

// A question about a job: what is to be known of it is not checked yet.
template <typename Draft>
struct JobCall {
  ProfileSource source;
  Draft draft;
  std::optional<double> time_budget_seconds;  // the request's own, beside that of its options
  std::vector<Fault> faults;
};
using PredictThroughputCall = JobCall<ThroughputDraft>;
using RecommendWorkersCall = JobCall<RecommendationDraft>;
using OptimizeOrderCall = JobCall<OrderDraft>;
using OptimizeCommunicationCall = JobCall<TuningDraft>;
using CompareModelsCall = JobCall<ComparisonDraft>;
using DiagnoseJobCall = JobCall<DiagnosisDraft>;
using RecommendLayoutCall = JobCall<LayoutDraft>;
using GenerateTraceCall = JobCall<TraceDraft>;

// A bad job's faults are its own: paths are relative to it.
using AllocationJobCall = JobCall<AllocationJobDraft>;

struct OptimizeJobCall {
  ProfileSource source;
  StrategyDraft draft;
  ProfileOrigin second;  // tells what half a batch takes
  std::optional<double> time_budget_seconds;
  std::vector<Fault> faults;
};

struct AllocateWorkersCall {
  AllocationDraft draft;
  std::vector<AllocationJobCall> jobs;  // one an id of the draft
  std::vector<Fault> faults;
};

// A question about measurements, and about no profile.
template <typename Draft>
struct FitCall {
  Draft draft;
  std::vector<Fault> faults;
};
using FitParsingOverheadCall = FitCall<ParsingOverheadDraft>;
using FitCollectivesCall = FitCall<CollectiveFitDraft>;
using FitContentionCall = FitCall<ContentionMeasurements>;
using FitRunsCall = FitCall<RunFitDraft>;

// The context of an answer, common to all of them.
struct AnswerContext {
  SimulationOptions options;
  std::string profile_digest;
  double engine_seconds = 0;
  bool is_cut_short = false;  // by the time budget: another time it may say more
};

// An answer and its context, which of a fit is as default-constructed: nothing is simulated.
template <typename Result>
struct ComputedAnswer {
  Result answer;
  AnswerContext context;
};
using PredictThroughputAnswer = ComputedAnswer<ThroughputAnswer>;
using RecommendWorkersAnswer = ComputedAnswer<Recommendation>;
using OptimizeOrderAnswer = ComputedAnswer<OrderAnswer>;
using OptimizeCommunicationAnswer = ComputedAnswer<TuningAnswer>;
using CompareModelsAnswer = ComputedAnswer<ComparisonAnswer>;
using DiagnoseJobAnswer = ComputedAnswer<Diagnosis>;
using OptimizeJobAnswer = ComputedAnswer<StrategyAnswer>;
using RecommendLayoutAnswer = ComputedAnswer<LayoutAnswer>;
using FitParsingOverheadAnswer = ComputedAnswer<ParsingOverheadFit>;
using FitCollectivesAnswer = ComputedAnswer<CollectiveFit>;
using FitRunsAnswer = ComputedAnswer<RunFit>;
// The answer that is left to give when the trace itself has been passed on.
using GenerateTraceAnswer = ComputedAnswer<TraceSummary>;

struct AllocateWorkersAnswer {
  AllocationAnswer answer;
  AnswerContext context;  // without a profile: each job has its own
  std::vector<std::string> job_ids;
  std::vector<std::string> profile_digests;  // by job; empty where none was found
};

struct FitContentionAnswer {
  ContentionFit answer;
  double confidence_level = 0;
  OverlapAssumptions assumptions;  // with the threads measured, where the constants are usable
  std::string unusable_because;
  AnswerContext context;  // as of ComputedAnswer
};

}  // namespace stepcast::server
