#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"

#include "server/convert/prediction_convert.h"

namespace stepcast::server::search_convert_test {
namespace {

using ::testing::ElementsAre;

TEST(RecommendationConvertTest, RecommendWorkersCarriesEveryConstraint) {
  v1::RecommendWorkersRequest wire;
  wire.set_objective(v1::RecommendWorkersRequest::MIN_COST);
  v1::Constraints& constraints = *wire.mutable_constraints();
  constraints.set_min_workers(1);
  constraints.add_worker_counts(4);
  constraints.add_worker_counts(3);
  constraints.set_max_workers(2);
  constraints.set_max_parameter_servers(3);
  constraints.mutable_deadline()->set_seconds(4);
  constraints.set_examples(5);
  constraints.set_budget(6);
  constraints.set_min_scaling_efficiency(0.7);
  wire.mutable_prices()->set_worker_hour(8);
  wire.mutable_prices()->set_parameter_server_hour(9);
  wire.mutable_prices()->set_currency_code("EUR");
  wire.mutable_current()->set_workers(10);
  wire.mutable_current()->set_rescale_seconds(11);
  wire.mutable_current()->set_parameter_servers(12);
  const RecommendationDraft draft = FromWire(wire).draft;
  EXPECT_EQ(draft.objective, Objective::kMinCost);
  EXPECT_EQ(draft.min_workers, 1);
  EXPECT_EQ(draft.max_workers, 2);
  EXPECT_THAT(draft.worker_counts, ElementsAre(4, 3));
  EXPECT_EQ(draft.max_parameter_servers, 3);
  EXPECT_EQ(draft.deadline_seconds, 4);
  EXPECT_EQ(draft.examples, 5);
  EXPECT_EQ(draft.budget, 6);
  EXPECT_EQ(draft.min_scaling_efficiency, 0.7);
  EXPECT_EQ(draft.prices->worker_hour, 8);
  EXPECT_EQ(draft.prices->parameter_server_hour, 9);
  EXPECT_EQ(draft.prices->currency_code, "EUR");
  EXPECT_EQ(draft.current->workers, 10);
  EXPECT_EQ(draft.current->rescale_seconds, 11);
  EXPECT_EQ(draft.current->parameter_servers, 12);
}

TEST(RecommendationConvertTest, UnsetConstraintsStayUnset) {
  const RecommendationDraft draft = FromWire(v1::RecommendWorkersRequest()).draft;
  EXPECT_EQ(draft.objective, Objective::kKnee);
  EXPECT_FALSE(draft.min_workers || draft.max_workers || draft.max_parameter_servers ||
               draft.deadline_seconds || draft.examples || draft.budget);
  EXPECT_FALSE(draft.min_scaling_efficiency || draft.prices || draft.current);
}

TEST(RecommendationConvertTest, WithoutExamplesThereIsNoCostAndNoDuration) {
  const v1::RecommendWorkersResponse wire =
      ToWire(RecommendWorkersAnswer{.answer = {.outcomes = {Outcome{}}}, .context = {}});
  EXPECT_FALSE(wire.has_cost() || wire.has_duration() || wire.has_nearest());
  EXPECT_FALSE(wire.frontier_outcomes(0).has_cost() || wire.frontier_outcomes(0).has_duration());
  EXPECT_TRUE(wire.frontier_outcomes(0).keeps_constraints());
}

TEST(RecommendationConvertTest, ARecommendationCarriesEverything) {
  RecommendWorkersAnswer answer{
      .context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}};
  const Outcome outcome{.duration_seconds = 90.5,
                        .cost = 3,
                        .broken = {{.kind = ConstraintKind::kBudget, .missed_by = 0.25}},
                        .in_full = true};
  answer.answer = {
      .workers = 4,
      .parameter_servers = 2,
      .prediction = Prediction{.scenario = {.workers = 4}},
      .outcome = {.duration_seconds = 60, .cost = 2},
      .workers_edge = ChoiceEdge::kLargestAsked,
      .servers_edge = ChoiceEdge::kOnlyFeasible,
      .reason = "because",
      .frontier = {Prediction{.scenario = {.workers = 4}}},
      .outcomes = {outcome},
      .ties = {{.workers = 5, .parameter_servers = 6}},
      .warnings = {{.reason = Warning::Reason::kNothingRandom, .message = "4 workers: fixed"}},
      .nearest = NearestChoice{.prediction = {.scenario = {.workers = 7,
                                                           .communication =
                                                               ParameterServers{.servers = 8}}},
                               .outcome = outcome},
      .infeasible_reason = "not so",
      .currency_code = "EUR",
      .choices = 99,
      .untried_gain_bound = 0.125};
  const v1::RecommendWorkersResponse wire = ToWire(answer);
  EXPECT_EQ(wire.workers(), 4);
  EXPECT_EQ(wire.parameter_servers(), 2);
  EXPECT_EQ(wire.prediction().scenario().workers(), 4);
  EXPECT_EQ(wire.reason(), "because");
  EXPECT_EQ(wire.workers_edge(), v1::AT_LARGEST_ASKED);
  EXPECT_EQ(wire.parameter_servers_edge(), v1::ONLY_FEASIBLE);
  EXPECT_EQ(wire.frontier_size(), 1);
  EXPECT_EQ(wire.infeasible_reason(), "not so");
  EXPECT_EQ(wire.cost(), 2);
  EXPECT_EQ(wire.duration().seconds(), 60);
  ASSERT_EQ(wire.frontier_outcomes_size(), 1);
  for (const v1::FrontierOutcome& each : {wire.frontier_outcomes(0), wire.nearest().outcome()}) {
    EXPECT_EQ(each.cost(), 3);
    EXPECT_EQ(each.duration().nanos(), 500'000'000);
    EXPECT_FALSE(each.keeps_constraints());
    EXPECT_TRUE(each.in_full());
    ASSERT_EQ(each.broken_constraints_size(), 1);
    EXPECT_EQ(each.broken_constraints(0).kind(), v1::BrokenConstraint::BUDGET);
    EXPECT_EQ(each.broken_constraints(0).missed_by(), 0.25);
  }
  ASSERT_EQ(wire.ties_size(), 1);
  EXPECT_EQ(wire.ties(0).workers(), 5);
  EXPECT_EQ(wire.ties(0).parameter_servers(), 6);
  EXPECT_EQ(wire.nearest().workers(), 7);
  EXPECT_EQ(wire.nearest().parameter_servers(), 8);
  EXPECT_EQ(wire.nearest().prediction().scenario().workers(), 7);
  ASSERT_EQ(wire.warnings_size(), 1);
  EXPECT_EQ(wire.warnings(0).reason(), v1::Warning::NOTHING_RANDOM);
  EXPECT_EQ(wire.warnings(0).message(), "4 workers: fixed");
  EXPECT_EQ(wire.currency_code(), "EUR");
  EXPECT_EQ(wire.choices(), 99);
  EXPECT_EQ(wire.untried_gain_bound(), 0.125);
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

TEST(OrderConvertTest, OptimizeOrderRefusesMethodsItDoesNotKnow) {
  v1::OptimizeOrderRequest wire;
  wire.add_methods(v1::TAC);
  wire.add_methods(v1::ORDER_METHOD_UNSPECIFIED);
  wire.add_methods(static_cast<v1::OrderMethod>(70));
  wire.mutable_time_budget()->set_seconds(2);
  wire.set_inference(true);
  const OptimizeOrderCall call = FromWire(wire);
  EXPECT_EQ(call.draft.methods, std::vector<OrderMethod>{OrderMethod::kTac});
  ASSERT_EQ(call.faults.size(), 2U);
  EXPECT_EQ(call.faults[0].field, "methods[1]");
  EXPECT_EQ(call.faults[1].field, "methods[2]");
  EXPECT_EQ(call.time_budget_seconds, 2);
  EXPECT_TRUE(call.draft.inference);
}

TEST(TuningConvertTest, ARequestCarriesEverythingAndRefusesMethodsItDoesNotKnow) {
  v1::OptimizeCommunicationRequest wire;
  wire.add_methods(v1::OptimizeCommunicationRequest::HOROVOD);
  wire.add_methods(v1::OptimizeCommunicationRequest::METHOD_UNSPECIFIED);
  wire.add_methods(static_cast<v1::OptimizeCommunicationRequest::Method>(70));
  wire.mutable_scenario()->set_workers(3);
  wire.mutable_options()->set_seed(7);
  wire.add_worker_counts(5);
  wire.add_bucket_caps_bytes(6);
  wire.set_first_bucket_bytes(7);
  wire.mutable_time_budget()->set_seconds(2);
  const OptimizeCommunicationCall call = FromWire(wire);
  EXPECT_EQ(call.draft.methods, std::vector<TuningMethod>{TuningMethod::kHorovod});
  ASSERT_EQ(call.faults.size(), 2U);
  EXPECT_EQ(call.faults[0].field, "methods[1]");
  EXPECT_EQ(call.faults[1].field, "methods[2]");
  EXPECT_EQ(call.draft.scenario.workers, 3);
  EXPECT_EQ(call.draft.options.seed, 7U);
  EXPECT_EQ(call.draft.worker_counts, std::vector<int32_t>{5});
  EXPECT_EQ(call.draft.bucket_caps_bytes, std::vector<int64_t>{6});
  EXPECT_EQ(call.draft.first_bucket_bytes, 7);
  EXPECT_EQ(call.time_budget_seconds, 2);
}

TEST(TuningConvertTest, AnAnswerCarriesEverything) {
  OptimizeCommunicationAnswer answer{
      .context = {.profile_digest = "digest", .engine_seconds = 1.5}};
  Tuning tuning{.workers = 4, .reason = "why"};
  TunedStrategy& strategy = tuning.strategies.emplace_back();
  strategy.method = TuningMethod::kDdpBuckets;
  strategy.groups = {{.operations = {"a", "b"}, .size_bytes = 12}};
  strategy.prediction.step_time.mean = 0.5;
  strategy.prediction.examples_per_second = 16;
  strategy.prediction.confidence_interval = {.lower = 15, .upper = 17};
  strategy.prediction.collectives.emplace().exposed_seconds = 0.125;
  strategy.gain = {.mean = 0.4, .confidence_interval = {.lower = 0.3, .upper = 0.5}};
  strategy.gain.is_none = true;
  strategy.setting = "bucket_cap_mb=6";
  strategy.lower_bound_seconds = 0.25;
  strategy.gap = 1;
  tuning.curve = {{.cap_bytes = 6,
                   .step_seconds = 0.5,
                   .examples_per_second = 16,
                   .confidence_interval = {.lower = 14, .upper = 18}}};
  answer.answer.tunings = {tuning, tuning};
  answer.answer.tunings[1].workers = 8;
  answer.answer.has_counts = true;
  answer.answer.advice_changes = true;
  answer.answer.left_out = {{.method = TuningMethod::kByteScheduler, .reason = "not told"}};
  answer.answer.warnings = {{.reason = Warning::Reason::kNothingRandom, .message = "all: fixed"}};
  const v1::OptimizeCommunicationResponse wire = ToWire(answer);
  ASSERT_EQ(wire.strategies_size(), 1);
  const v1::CommunicationStrategy& first = wire.strategies(0);
  EXPECT_EQ(first.method(), v1::OptimizeCommunicationRequest::DDP_BUCKETS);
  EXPECT_EQ(first.groups(0).operations_size(), 2);
  EXPECT_EQ(first.groups(0).operations(1), "b");
  EXPECT_EQ(first.groups(0).size_bytes(), 12);
  EXPECT_EQ(first.step_seconds(), 0.5);
  EXPECT_EQ(first.examples_per_second(), 16);
  EXPECT_EQ(first.confidence_interval().upper(), 17);
  EXPECT_EQ(first.exposed_communication_seconds(), 0.125);
  EXPECT_EQ(first.gain(), 0.4);
  EXPECT_EQ(first.gain_interval().lower(), 0.3);
  EXPECT_TRUE(first.no_difference());
  EXPECT_EQ(first.setting(), "bucket_cap_mb=6");
  EXPECT_EQ(first.lower_bound_seconds(), 0.25);
  EXPECT_EQ(first.gap(), 1);
  EXPECT_EQ(wire.chosen(), v1::OptimizeCommunicationRequest::DDP_BUCKETS);
  EXPECT_EQ(wire.reason(), "why");
  EXPECT_EQ(wire.curve(0).cap_bytes(), 6);
  EXPECT_EQ(wire.curve(0).confidence_interval().lower(), 14);
  ASSERT_EQ(wire.advice_size(), 2);
  EXPECT_EQ(wire.advice(1).workers(), 8);
  EXPECT_EQ(wire.advice(1).strategies(0).setting(), "bucket_cap_mb=6");
  EXPECT_EQ(wire.advice(1).curve_size(), 1);
  EXPECT_TRUE(wire.advice_changes());
  ASSERT_EQ(wire.left_out_size(), 1);
  EXPECT_EQ(wire.left_out(0).method(), v1::OptimizeCommunicationRequest::BYTESCHEDULER);
  EXPECT_EQ(wire.left_out(0).reason(), "not told");
  EXPECT_EQ(wire.warnings(0).message(), "all: fixed");
  EXPECT_EQ(wire.simulation().engine_seconds(), 1.5);
  EXPECT_EQ(wire.profile_digest(), "digest");
  EXPECT_EQ(wire.engine_version(), kEngineVersion);
}

TEST(OrderConvertTest, AnOrderCarriesEverything) {
  OptimizeOrderAnswer answer{
      .context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}};
  answer.answer.orders = {
      {.method = OrderMethod::kTac,
       .transfers =
           {{.name = "t", .rank = 3, .size_bytes = 4, .parameter_server = 20, .server_rank = 21}},
       .makespan_ns = 5,
       .gap = 0.25,
       .is_best = true,
       .scheduling_efficiency = 0.6,
       .straggler_effect = 0.7,
       .steps_per_second = 8,
       .examples_per_second = 9,
       .confidence_interval = {.lower = 1, .upper = 2, .level = 0.95},
       .speedups = {
           {.over = TransferOrder::kRandom,
            .speedup = 1.5,
            .confidence_interval = Interval{.lower = 1.25, .upper = 1.75}},
           {.over = TransferOrder::kGraph, .speedup = 1, .confidence_interval = std::nullopt}}}};
  answer.answer.chosen = OrderMethod::kTac;
  answer.answer.upper_makespan_ns = 10;
  answer.answer.lower_makespan_ns = 11;
  answer.answer.speedup_bound = 12;
  answer.answer.order_lower_bound_ns = 16;
  answer.answer.operations = 17;
  answer.answer.unmeasured_transfers = {"u", "v"};
  answer.answer.baselines = {{.order = TransferOrder::kGraph,
                              .steps_per_second = 14,
                              .examples_per_second = 140,
                              .confidence_interval = {.upper = 141}},
                             {.order = TransferOrder::kRandom, .steps_per_second = 15}};
  answer.answer.warnings = {{.reason = Warning::Reason::kFiniteHorizon, .message = "TAC: short"}};
  const v1::OptimizeOrderResponse wire = ToWire(answer);
  ASSERT_EQ(wire.orders_size(), 1);
  ASSERT_EQ(wire.warnings_size(), 1);
  EXPECT_EQ(wire.warnings(0).reason(), v1::Warning::FINITE_HORIZON);
  EXPECT_EQ(wire.warnings(0).message(), "TAC: short");
  const v1::TransferOrderResult& order = wire.orders(0);
  EXPECT_EQ(order.method(), v1::TAC);
  EXPECT_EQ(order.transfers(0).name(), "t");
  EXPECT_EQ(order.transfers(0).rank(), 3);
  EXPECT_EQ(order.transfers(0).size_bytes(), 4);
  EXPECT_EQ(order.makespan_ns(), 5);
  EXPECT_EQ(order.scheduling_efficiency(), 0.6);
  EXPECT_EQ(order.straggler_effect(), 0.7);
  EXPECT_EQ(order.steps_per_second(), 8);
  EXPECT_EQ(order.examples_per_second(), 9);
  EXPECT_EQ(order.speedup_bound(), 12);
  EXPECT_EQ(order.confidence_interval().upper(), 2);
  EXPECT_EQ(wire.chosen(), v1::TAC);
  EXPECT_EQ(wire.upper_makespan_ns(), 10);
  EXPECT_EQ(wire.lower_makespan_ns(), 11);
  EXPECT_EQ(wire.speedup_bound(), 12);
  EXPECT_EQ(order.transfers(0).parameter_server(), 20);
  EXPECT_EQ(order.transfers(0).server_rank(), 21);
  EXPECT_EQ(order.gap(), 0.25);
  EXPECT_TRUE(order.best());
  ASSERT_EQ(order.speedups_size(), 2);
  EXPECT_EQ(order.speedups(0).over(), v1::ParameterServers::RANDOM);
  EXPECT_EQ(order.speedups(0).speedup(), 1.5);
  EXPECT_EQ(order.speedups(0).confidence_interval().lower(), 1.25);
  EXPECT_FALSE(order.speedups(1).has_confidence_interval());
  EXPECT_EQ(wire.order_lower_bound_ns(), 16);
  EXPECT_EQ(wire.operations(), 17);
  ASSERT_EQ(wire.baselines_size(), 2);
  EXPECT_EQ(wire.baselines(0).transfer_order(), v1::ParameterServers::GRAPH);
  EXPECT_EQ(wire.baselines(0).examples_per_second(), 140);
  EXPECT_EQ(wire.baselines(0).confidence_interval().upper(), 141);
  EXPECT_EQ(wire.transfers_without_measured_time(), 2);
  EXPECT_EQ(wire.unmeasured_transfers(1), "v");
  EXPECT_EQ(wire.graph_steps_per_second(), 14);
  EXPECT_EQ(wire.random_steps_per_second(), 15);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

TEST(AllocationConvertTest, AJobCarriesEverything) {
  v1::AllocateWorkersRequest wire;
  v1::AllocationJob& job = *wire.add_jobs();
  job.set_id("a");
  job.set_profile("profiles/p");
  job.mutable_scenario()->mutable_parameter_servers()->set_servers(2);
  job.set_weight(0.5);
  job.set_min_workers(0);
  job.set_max_workers(9);
  job.set_gang(3);
  job.set_max_parameter_servers(4);
  job.set_remaining_examples(1000);
  job.mutable_current()->set_workers(6);
  job.mutable_current()->set_rescale_seconds(7);
  job.mutable_current()->set_parameter_servers(3);
  wire.mutable_capacity()->set_workers(12);
  wire.mutable_capacity()->set_parameter_servers(5);
  wire.set_objective(v1::AllocateWorkersRequest::MIN_MAKESPAN);
  wire.mutable_options()->set_seed(8);
  const AllocateWorkersCall call = FromWire(wire);
  EXPECT_THAT(call.draft.job_ids, ElementsAre("a"));
  EXPECT_EQ(call.draft.capacity->workers, 12);
  EXPECT_EQ(call.draft.capacity->servers, 5);
  EXPECT_EQ(call.draft.objective, AllocationObjective::kMinMakespan);
  EXPECT_EQ(call.draft.options.seed, 8U);
  ASSERT_EQ(call.jobs.size(), 1U);
  EXPECT_EQ(std::get<std::string>(call.jobs[0].source.recorded), "profiles/p");
  const AllocationJobDraft& draft = call.jobs[0].draft;
  EXPECT_EQ(draft.scenario.servers().servers, 2);
  EXPECT_EQ(draft.weight, 0.5);
  EXPECT_EQ(draft.min_workers, 0);
  EXPECT_EQ(draft.max_workers, 9);
  EXPECT_EQ(draft.gang, 3);
  EXPECT_EQ(draft.max_parameter_servers, 4);
  EXPECT_EQ(draft.remaining_examples, 1000);
  EXPECT_EQ(draft.current->workers, 6);
  EXPECT_EQ(draft.current->rescale_seconds, 7);
  EXPECT_EQ(draft.current->servers, 3);
}

TEST(AllocationConvertTest, WhatIsUnsetStaysUnset) {
  v1::AllocateWorkersRequest wire;
  wire.add_jobs();
  const AllocateWorkersCall call = FromWire(wire);
  EXPECT_FALSE(call.draft.capacity.has_value());
  EXPECT_EQ(call.draft.objective, AllocationObjective::kTotalUtility);
  const AllocationJobDraft& draft = call.jobs[0].draft;
  EXPECT_FALSE(draft.weight || draft.min_workers || draft.max_workers || draft.gang ||
               draft.max_parameter_servers || draft.remaining_examples || draft.current);
}

TEST(AllocationConvertTest, AnUnknownNumberIsAFaultOfItsJobOnly) {
  v1::AllocateWorkersRequest wire;
  wire.add_jobs()->mutable_scenario()->mutable_parameter_servers()->set_synchronization(
      static_cast<v1::ParameterServers::Synchronization>(77));
  wire.add_jobs();
  const AllocateWorkersCall call = FromWire(wire);
  ASSERT_EQ(call.jobs[0].faults.size(), 1U);
  EXPECT_EQ(call.jobs[0].faults[0].field, "scenario.parameter_servers.synchronization");
  EXPECT_TRUE(call.jobs[1].faults.empty() && call.faults.empty());
}

// A Duration holds no more, and a message with more in it cannot be written as JSON.
TEST(AllocationConvertTest, TheLongestDurationIsTenThousandYears) {
  AllocateWorkersAnswer answer{.job_ids = {"a"}, .profile_digests = {"digest"}};
  answer.answer.jobs = {JobAllocation{.share = {.workers = 1, .duration_seconds = 2.6e13}}};
  EXPECT_EQ(ToWire(answer).allocations(0).duration().seconds(), 315'576'000'000);
}

TEST(AllocationConvertTest, AnAllocationCarriesEverything) {
  AllocateWorkersAnswer answer{.context = {.options = {.seed = 42}},
                               .job_ids = {"a", "b"},
                               .profile_digests = {"digest", ""}};
  JobAllocation served{.share = {.workers = 3,
                                 .servers = 2,
                                 .examples_per_second = 30,
                                 .interpolated = true,
                                 .speedup = 2.5,
                                 .utility = 5,
                                 .duration_seconds = 1.5},
                       .workers_edge = ChoiceEdge::kSmallestAsked};
  served.curve = {{.workers = 3,
                   .servers = 2,
                   .examples_per_second = 30,
                   .confidence_interval = {.lower = 29, .upper = 31, .level = 0.9}}};
  served.warnings = {{.reason = Warning::Reason::kNotSteady, .message = "3 workers: it drifts"}};
  const JobAllocation bad{
      .status = FaultsError("JOB_INVALID", {{.field = "weight", .description = "is -1"}})};
  answer.answer = {.jobs = {served, bad},
                   .total_utility = 5,
                   .objective_value = 6,
                   .workers = 3,
                   .servers = 2,
                   .one_more_worker = {.utility_gain = 0.5,
                                       .objective_gain = 0.25,
                                       .changes = {{.job = 1, .workers = 4, .servers = 1}}},
                   .infeasible_reason = "too small"};
  const v1::AllocateWorkersResponse wire = ToWire(answer);
  ASSERT_EQ(wire.allocations_size(), 2);
  const v1::JobAllocation& job = wire.allocations(0);
  EXPECT_EQ(job.id(), "a");
  EXPECT_FALSE(job.has_error());
  EXPECT_EQ(job.workers(), 3);
  EXPECT_EQ(job.parameter_servers(), 2);
  EXPECT_EQ(job.utility(), 5);
  EXPECT_EQ(job.speedup(), 2.5);
  EXPECT_EQ(job.examples_per_second(), 30);
  EXPECT_TRUE(job.interpolated());
  EXPECT_EQ(job.workers_edge(), v1::AT_SMALLEST_ASKED);
  EXPECT_EQ(job.duration().nanos(), 500'000'000);
  EXPECT_EQ(job.profile_digest(), "digest");
  ASSERT_EQ(job.curve_size(), 1);
  EXPECT_EQ(job.curve(0).workers(), 3);
  EXPECT_EQ(job.curve(0).parameter_servers(), 2);
  EXPECT_EQ(job.curve(0).confidence_interval().upper(), 31);
  ASSERT_EQ(job.warnings_size(), 1);
  EXPECT_EQ(job.warnings(0).reason(), v1::Warning::NOT_STEADY);
  EXPECT_EQ(job.warnings(0).message(), "3 workers: it drifts");
  EXPECT_EQ(wire.allocations(1).error().code(), 3);
  google::rpc::BadRequest bad_request;
  ASSERT_TRUE(wire.allocations(1).error().details(1).UnpackTo(&bad_request));
  EXPECT_EQ(bad_request.field_violations(0).field(), "weight");
  EXPECT_EQ(wire.total_utility(), 5);
  EXPECT_EQ(wire.objective_value(), 6);
  EXPECT_EQ(wire.workers(), 3);
  EXPECT_EQ(wire.parameter_servers(), 2);
  EXPECT_EQ(wire.one_more_worker().utility_gain(), 0.5);
  EXPECT_EQ(wire.one_more_worker().objective_gain(), 0.25);
  EXPECT_EQ(wire.one_more_worker().changes(0).id(), "b");
  EXPECT_EQ(wire.one_more_worker().changes(0).workers(), 4);
  EXPECT_EQ(wire.one_more_worker().changes(0).parameter_servers(), 1);
  EXPECT_EQ(wire.infeasible_reason(), "too small");
  EXPECT_EQ(wire.options().seed(), 42U);
}

}  // namespace
}  // namespace stepcast::server::search_convert_test
