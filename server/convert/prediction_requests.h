// The requests and answers of the methods of PredictionService, in plain types.
// `faults` as in profile_requests.h.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

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
#include "core/strategies/optimize_job.h"
#include "core/trace/trace.h"
#include "core/tune/communication_tuning.h"
#include "core/tune/contention_fit.h"
#include "core/tune/overlap_model.h"
#include "server/convert/profile_requests.h"

namespace stepcast::server {

// The source of a profile: none, the store, by its name, or the request itself.
using ProfileOrigin = std::variant<std::monostate, std::string, ProfileInput>;

// The job that is asked about.
struct ProfileSource {
  ProfileOrigin recorded;
  JobChange change;
  ProfileOrigin second;  // of the change
};

struct PredictThroughputCall {
  ProfileSource source;
  ThroughputDraft draft;
  std::vector<Fault> faults;
};

struct RecommendWorkersCall {
  ProfileSource source;
  RecommendationDraft draft;
  std::vector<Fault> faults;
};

struct OptimizeOrderCall {
  ProfileSource source;
  OrderDraft draft;
  std::optional<double> time_budget_seconds;
  std::vector<Fault> faults;
};

struct OptimizeCommunicationCall {
  ProfileSource source;
  TuningDraft draft;
  std::optional<double> time_budget_seconds;
  std::vector<Fault> faults;
};

// A bad job's faults are its own: paths are relative to it.
struct AllocationJobCall {
  ProfileSource source;
  AllocationJobDraft draft;
  std::vector<Fault> faults;
};

struct AllocateWorkersCall {
  AllocationDraft draft;
  std::vector<AllocationJobCall> jobs;  // one an id of the draft
  std::vector<Fault> faults;
};

struct CompareModelsCall {
  ProfileSource source;
  ComparisonDraft draft;
  std::vector<Fault> faults;
};

struct DiagnoseJobCall {
  ProfileSource source;
  DiagnosisDraft draft;
  std::vector<Fault> faults;
};

struct OptimizeJobCall {
  ProfileSource source;
  StrategyDraft draft;
  std::optional<double> time_budget_seconds;
  std::vector<Fault> faults;
};

// About no profile.
struct FitParsingOverheadCall {
  ParsingOverheadDraft draft;
};

// About no profile.
struct FitCollectivesCall {
  CollectiveFitDraft draft;
  std::vector<Fault> faults;
};

// About no profile.
struct FitContentionCall {
  ContentionMeasurements measurements;
};

struct RecommendLayoutCall {
  ProfileSource source;
  LayoutDraft draft;
  std::vector<Fault> faults;
};

// About no profile.
struct FitRunsCall {
  RunFitDraft draft;
  std::vector<Fault> faults;
};

struct GenerateTraceCall {
  ProfileSource source;
  TraceDraft draft;
  std::vector<Fault> faults;
};

// The context of an answer, common to all of them.
struct AnswerContext {
  SimulationOptions options;
  std::string profile_digest;
  double engine_seconds = 0;
  bool is_cut_short = false;  // by the time budget: another time it may say more
};

struct PredictThroughputAnswer {
  ThroughputAnswer answer;
  AnswerContext context;
};

struct RecommendWorkersAnswer {
  Recommendation answer;
  AnswerContext context;
};

struct OptimizeOrderAnswer {
  OrderAnswer answer;
  AnswerContext context;
};

struct OptimizeCommunicationAnswer {
  TuningAnswer answer;
  AnswerContext context;
};

struct AllocateWorkersAnswer {
  AllocationAnswer answer;
  AnswerContext context;  // without a profile: each job has its own
  std::vector<std::string> job_ids;
  std::vector<std::string> profile_digests;  // by job; empty where none was found
};

struct CompareModelsAnswer {
  ComparisonAnswer answer;
  AnswerContext context;
};

struct DiagnoseJobAnswer {
  Diagnosis answer;
  AnswerContext context;
};

struct OptimizeJobAnswer {
  StrategyAnswer answer;
  AnswerContext context;
};

struct FitParsingOverheadAnswer {
  ParsingOverheadFit answer;
  AnswerContext context;  // nothing is simulated: as default-constructed
};

struct FitCollectivesAnswer {
  CollectiveFit answer;
  AnswerContext context;  // nothing is simulated: as default-constructed
};

struct FitContentionAnswer {
  ContentionFit answer;
  double confidence_level = 0;
  OverlapAssumptions assumptions;  // with the threads measured, where the constants are usable
  std::string unusable_because;
  AnswerContext context;  // nothing is simulated: as default-constructed
};

struct RecommendLayoutAnswer {
  LayoutAnswer answer;
  AnswerContext context;
};

struct FitRunsAnswer {
  RunFit answer;
  AnswerContext context;  // nothing is simulated: as default-constructed
};

// The answer that is left to give when the trace itself has been passed on.
struct GenerateTraceAnswer {
  TraceSummary answer;
  AnswerContext context;
};

}  // namespace stepcast::server
