#include "server/convert/prediction_convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/convert/profile_convert.h"
#include "server/convert/scenario_convert.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::prediction_convert_test {
namespace {

using ::testing::ElementsAre;

TEST(PredictionConvertTest, TheProfileComesFromWhereTheRequestSays) {
  v1::PredictThroughputRequest wire;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(FromWire(wire).source.recorded));
  wire.set_profile("profiles/a");
  EXPECT_EQ(std::get<std::string>(FromWire(wire).source.recorded), "profiles/a");
  *wire.mutable_inline_profile() = ToWire(RandomProfile(1));
  EXPECT_TRUE(std::get<ProfileInput>(FromWire(wire).source.recorded).draft == RandomProfile(1));
}

TEST(PredictionConvertTest, PredictThroughputCarriesScenariosCountsAndOptions) {
  v1::PredictThroughputRequest wire;
  wire.add_scenarios()->set_workers(2);
  wire.add_scenarios()->set_workers(3);
  wire.add_worker_counts(4);
  wire.mutable_scenario()->set_workers(5);
  wire.mutable_options()->set_seed(6);
  const ThroughputDraft draft = FromWire(wire).draft;
  ASSERT_EQ(draft.scenarios.size(), 2U);
  EXPECT_EQ(draft.scenarios[1].workers, 3);
  EXPECT_EQ(draft.worker_counts, std::vector<int32_t>{4});
  EXPECT_EQ(draft.scenario->workers, 5);
  EXPECT_EQ(draft.options.seed, 6U);
  EXPECT_FALSE(FromWire(v1::PredictThroughputRequest()).draft.scenario.has_value());
}

TEST(PredictionConvertTest, FaultsHaveTheRequestsPaths) {
  v1::PredictThroughputRequest wire;
  wire.add_scenarios();
  wire.add_scenarios()->mutable_parameter_servers()->set_transfer_order(
      static_cast<v1::ParameterServers::TransferOrder>(50));
  wire.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(51));
  const std::vector<Fault> faults = FromWire(wire).faults;
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].field, "scenarios[1].parameter_servers.transfer_order");
  EXPECT_EQ(faults[1].field, "options.start");
}

Prediction SomePrediction() {
  return {.scenario = {.workers = 4},
          .examples_per_second = 1,
          .steps_per_second = 2,
          .confidence_interval = {.lower = 3, .upper = 4, .level = 0.9},
          .step_time = {.mean = 5, .p50 = 6, .p95 = 7, .p99 = 8},
          .speedup = 9,
          .scaling_efficiency = 10,
          .utilization = {{.resource = Resource::kUplink, .index = 1, .fraction = 0.5}},
          .most_used = {.resource = Resource::kParameterServer, .index = 3, .fraction = 0.7},
          .bottleneck = {.resource = Resource::kDownlink, .index = 2, .fraction = 0.6},
          .bottleneck_gain = ResourceGain{.change = WhatIf::kLinksTwiceAsFast, .gain = 0.37},
          .exposed_communication_fraction = 11,
          .steady_state = false,
          .warnings = {{.reason = Warning::Reason::kTwoRegimes, .message = "careful"},
                       {.reason = Warning::Reason::kOneReplication, .message = "one run"}},
          .replications = 12,
          .steps_per_worker = 13};
}

TEST(PredictionConvertTest, APredictionCarriesEverything) {
  const v1::Prediction wire = ToWire(SomePrediction());
  EXPECT_EQ(wire.scenario().workers(), 4);
  EXPECT_EQ(wire.examples_per_second(), 1);
  EXPECT_EQ(wire.steps_per_second(), 2);
  EXPECT_EQ(wire.confidence_interval().lower(), 3);
  EXPECT_EQ(wire.confidence_interval().upper(), 4);
  EXPECT_EQ(wire.confidence_interval().level(), 0.9);
  EXPECT_EQ(wire.step_time().mean().seconds(), 5);
  EXPECT_EQ(wire.step_time().p50().seconds(), 6);
  EXPECT_EQ(wire.step_time().p95().seconds(), 7);
  EXPECT_EQ(wire.step_time().p99().seconds(), 8);
  EXPECT_EQ(wire.speedup(), 9);
  EXPECT_EQ(wire.scaling_efficiency(), 10);
  ASSERT_EQ(wire.utilization_size(), 1);
  EXPECT_EQ(wire.utilization(0).resource(), v1::Operation::UPLINK);
  EXPECT_EQ(wire.utilization(0).index(), 1);
  EXPECT_EQ(wire.utilization(0).fraction(), 0.5);
  EXPECT_EQ(wire.bottleneck(), v1::Operation::DOWNLINK);
  EXPECT_EQ(wire.bottleneck_index(), 2);
  EXPECT_EQ(wire.most_used(), v1::Operation::PARAMETER_SERVER);
  EXPECT_EQ(wire.most_used_index(), 3);
  EXPECT_EQ(wire.bottleneck_gain(), 0.37);
  EXPECT_EQ(wire.bottleneck_change(), v1::Prediction::LINKS_TWICE_AS_FAST);
  EXPECT_EQ(wire.exposed_communication_fraction(), 11);
  EXPECT_FALSE(wire.steady_state());
  ASSERT_EQ(wire.warnings_size(), 2);
  EXPECT_EQ(wire.warnings(0).reason(), v1::Warning::TWO_REGIMES);
  EXPECT_EQ(wire.warnings(0).message(), "careful");
  EXPECT_EQ(wire.warnings(1).reason(), v1::Warning::ONE_REPLICATION);
  EXPECT_EQ(wire.replications(), 12);
  EXPECT_EQ(wire.steps_per_worker(), 13);
}

TEST(PredictionConvertTest, AGainThatIsNotKnownIsUnset) {
  Prediction prediction = SomePrediction();
  prediction.bottleneck_gain.reset();
  EXPECT_FALSE(ToWire(prediction).has_bottleneck_gain());
  EXPECT_EQ(ToWire(prediction).bottleneck_change(), v1::Prediction::CHANGE_UNSPECIFIED);
}

// The contract promises the names and numbers of WhatIf.Change.
TEST(PredictionConvertTest, ChangesOfOneResourceAreWhatIfs) {
  const google::protobuf::EnumDescriptor& changes = *v1::Prediction::Change_descriptor();
  const google::protobuf::EnumDescriptor& what_ifs = *v1::WhatIf::Change_descriptor();
  EXPECT_EQ(static_cast<size_t>(changes.value_count()), kChangesOfOneResource.size() + 1);
  for (int i = 0; i < changes.value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor* const same =
        what_ifs.FindValueByName(changes.value(i)->name());
    ASSERT_NE(same, nullptr) << changes.value(i)->name();
    EXPECT_EQ(same->number(), changes.value(i)->number());
  }
}

AnswerContext SomeContext() {
  return {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5};
}

TEST(PredictionConvertTest, AThroughputAnswerEchoesWhatItWasComputedWith) {
  PredictThroughputAnswer answer{.context = SomeContext()};
  answer.answer.predictions = {SomePrediction(), SomePrediction()};
  answer.answer.simulation = {.simulated_operations = 13, .engine_path = "plain, memoised"};
  const v1::PredictThroughputResponse wire = ToWire(answer);
  EXPECT_EQ(wire.predictions_size(), 2);
  EXPECT_EQ(wire.simulation().simulated_operations(), 13);
  EXPECT_EQ(wire.simulation().engine_seconds(), 1.5);
  EXPECT_EQ(wire.simulation().engine_path(), "plain, memoised");
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
  EXPECT_EQ(wire.engine_version(), kEngineVersion);
}

TEST(ComparisonConvertTest, CompareModelsCarriesEverything) {
  v1::CompareModelsRequest wire;
  wire.set_profile("profiles/p");
  wire.add_worker_counts(3);
  wire.add_worker_counts(1);
  wire.mutable_scenario()->mutable_parameter_servers()->set_servers(2);
  wire.mutable_options()->set_seed(5);
  const CompareModelsCall call = FromWire(wire);
  EXPECT_EQ(std::get<std::string>(call.source.recorded), "profiles/p");
  EXPECT_THAT(call.draft.worker_counts, ElementsAre(3, 1));
  EXPECT_EQ(call.draft.scenario.servers().servers, 2);
  EXPECT_EQ(call.draft.options.seed, 5U);
}

TEST(ComparisonConvertTest, AComparisonCarriesEverything) {
  CompareModelsAnswer answer{
      .context = {.options = {.seed = 42}, .profile_digest = "digest", .engine_seconds = 1.5}};
  const ComparedPrediction rival{.model = ComparedModel::kCynthiaHalved,
                                 .examples_per_second = 1,
                                 .steps_per_second = 2,
                                 .relative_difference = -0.3,
                                 .within_interval = true,
                                 .unavailable_reason = "because"};
  answer.answer.comparisons = {{.prediction = {.scenario = {.workers = 4}}, .rivals = {rival}}};
  answer.answer.inputs = {
      .phases = {.downlink = 1, .worker = 2, .uplink = 3, .parameter_server = 4},
      .cynthia = {.computation_seconds = 6, .transfer_seconds = 2}};
  const v1::CompareModelsResponse wire = ToWire(answer);
  ASSERT_EQ(wire.comparisons_size(), 1);
  EXPECT_EQ(wire.comparisons(0).workers(), 4);
  EXPECT_EQ(wire.comparisons(0).prediction().scenario().workers(), 4);
  const v1::ModelPrediction& model = wire.comparisons(0).models(0);
  EXPECT_EQ(model.model(), v1::ModelPrediction::CYNTHIA_HALVED);
  EXPECT_EQ(model.examples_per_second(), 1);
  EXPECT_EQ(model.steps_per_second(), 2);
  EXPECT_EQ(model.relative_difference(), -0.3);
  EXPECT_TRUE(model.within_interval());
  EXPECT_EQ(model.unavailable_reason(), "because");
  EXPECT_EQ(wire.inputs().downlink_phase_seconds(), 1);
  EXPECT_EQ(wire.inputs().worker_phase_seconds(), 2);
  EXPECT_EQ(wire.inputs().uplink_phase_seconds(), 3);
  EXPECT_EQ(wire.inputs().parameter_server_phase_seconds(), 4);
  EXPECT_EQ(wire.inputs().computation_seconds(), 6);
  EXPECT_EQ(wire.inputs().transfer_seconds(), 2);
  EXPECT_DOUBLE_EQ(wire.inputs().network_utilization(), 0.4);
  EXPECT_DOUBLE_EQ(wire.inputs().halved_network_utilization(), 0.25);
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
}

TEST(DiagnosisConvertTest, DiagnoseJobCarriesEverything) {
  v1::DiagnoseJobRequest wire;
  wire.set_profile("profiles/p");
  wire.mutable_scenario()->set_workers(7);
  wire.mutable_options()->set_seed(5);
  const DiagnoseJobCall call = FromWire(wire);
  EXPECT_EQ(std::get<std::string>(call.source.recorded), "profiles/p");
  EXPECT_EQ(call.draft.scenario.workers, 7);
  EXPECT_EQ(call.draft.options.seed, 5U);
  EXPECT_TRUE(call.faults.empty());
  wire.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(51));
  EXPECT_EQ(FromWire(wire).faults.at(0).field, "options.start");
}

Diagnosis SomeDiagnosis() {
  return {.prediction = SomePrediction(),
          .path = {.steps = 20,
                   .seconds = 1.5,
                   .by_kind = {1, 0, 0.25, 0, 0.25},
                   .workers = {{.own = {0.5, 0.5, 0, 0.5, 0}},
                               {.own = {1.5}, .on_path_seconds = 1, .waited_for_seconds = 0.75}},
                   .straggler = 1,
                   .operations = {{.operations = {"a", "b"},
                                   .kind = PathKind::kCommunication,
                                   .seconds = 0.125}}},
          .what_ifs = {{.change = WhatIf::kOneWorkerFewer,
                        .prediction = {.scenario = {.workers = 3}},
                        .ratio = 1.25,
                        .ratio_interval = {.lower = 1, .upper = 1.5, .level = 0.9}},
                       {.change = WhatIf::kBestBuckets,
                        .ratio = 1.125,
                        .setting = "bucket_cap_mb=5",
                        .groups = {{.operations = {"a", "b"}, .size_bytes = 12}}}},
          .left_out = {{.change = WhatIf::kNoLatency, .reason = "none"}},
          .simulation = {.simulated_operations = 13, .engine_path = "plain"}};
}

TEST(DiagnosisConvertTest, ADiagnosisCarriesEverything) {
  const v1::DiagnoseJobResponse wire =
      ToWire(DiagnoseJobAnswer{.answer = SomeDiagnosis(), .context = SomeContext()});
  EXPECT_EQ(wire.prediction().SerializeAsString(), ToWire(SomePrediction()).SerializeAsString());
  EXPECT_EQ(wire.path_steps(), 20);
  EXPECT_EQ(wire.path_seconds(), 1.5);
  ASSERT_EQ(wire.path_size(), 3) << "kinds of no time are left out";
  EXPECT_EQ(wire.path(0).kind(), v1::PathTime::COMPUTATION);
  EXPECT_EQ(wire.path(0).seconds(), 1);
  EXPECT_EQ(wire.path(1).kind(), v1::PathTime::COMMUNICATION);
  EXPECT_EQ(wire.path(2).kind(), v1::PathTime::GAP);
  ASSERT_EQ(wire.workers_size(), 2);
  ASSERT_EQ(wire.workers(0).own_size(), 3);
  EXPECT_EQ(wire.workers(0).own(1).kind(), v1::PathTime::SERVER);
  EXPECT_EQ(wire.workers(0).own(2).kind(), v1::PathTime::WAITING);
  EXPECT_EQ(wire.workers(1).own(0).seconds(), 1.5);
  EXPECT_EQ(wire.workers(1).on_path_seconds(), 1);
  EXPECT_EQ(wire.workers(1).waited_for_seconds(), 0.75);
  EXPECT_EQ(wire.straggler(), 1);
  ASSERT_EQ(wire.operations_size(), 1);
  EXPECT_THAT(wire.operations(0).operations(), ElementsAre("a", "b"));
  EXPECT_EQ(wire.operations(0).kind(), v1::PathTime::COMMUNICATION);
  EXPECT_EQ(wire.operations(0).seconds(), 0.125);
  ASSERT_EQ(wire.what_ifs_size(), 2);
  EXPECT_EQ(wire.what_ifs(1).change(), v1::WhatIf::BEST_BUCKETS);
  EXPECT_EQ(wire.what_ifs(1).setting(), "bucket_cap_mb=5");
  ASSERT_EQ(wire.what_ifs(1).groups_size(), 1);
  EXPECT_THAT(wire.what_ifs(1).groups(0).operations(), ElementsAre("a", "b"));
  EXPECT_EQ(wire.what_ifs(1).groups(0).size_bytes(), 12);
  EXPECT_EQ(wire.what_ifs(0).change(), v1::WhatIf::ONE_WORKER_FEWER);
  EXPECT_EQ(wire.what_ifs(0).prediction().scenario().workers(), 3);
  EXPECT_EQ(wire.what_ifs(0).ratio(), 1.25);
  EXPECT_EQ(wire.what_ifs(0).ratio_interval().lower(), 1);
  EXPECT_EQ(wire.what_ifs(0).ratio_interval().upper(), 1.5);
  EXPECT_EQ(wire.what_ifs(0).ratio_interval().level(), 0.9);
  ASSERT_EQ(wire.left_out_size(), 1);
  EXPECT_EQ(wire.left_out(0).change(), v1::WhatIf::NO_LATENCY);
  EXPECT_EQ(wire.left_out(0).reason(), "none");
  EXPECT_EQ(wire.simulation().simulated_operations(), 13);
  EXPECT_EQ(wire.simulation().engine_seconds(), 1.5);
  EXPECT_EQ(wire.options().seed(), 42U);
  EXPECT_EQ(wire.profile_digest(), "digest");
  EXPECT_EQ(wire.engine_version(), kEngineVersion);
}

TEST(DiagnosisConvertTest, WithoutAStragglerNoneIsNamed) {
  DiagnoseJobAnswer answer{.answer = SomeDiagnosis(), .context = {}};
  answer.answer.path.straggler = 0;
  EXPECT_TRUE(ToWire(answer).has_straggler()) << "the first worker is one, too";
  answer.answer.path.straggler = -1;
  EXPECT_FALSE(ToWire(answer).has_straggler());
}

TEST(DiagnosisConvertTest, ARecordingOfSeveralWorkersCarriesEverything) {
  EXPECT_FALSE(ToWire(DiagnoseJobAnswer{.answer = SomeDiagnosis()}).has_recording());
  DiagnoseJobAnswer answer{.answer = SomeDiagnosis()};
  answer.answer.recording =
      RecordingDiagnosis{.report = {.workers = {{.name = "rank 0"},
                                                {.name = "rank 1",
                                                 .clock = {.offset_ns = 7,
                                                           .drift = 1e-5,
                                                           .least_offset_ns = 5,
                                                           .most_offset_ns = kUnboundedOffset},
                                                 .recorded_step_seconds = 0.5,
                                                 .replayed_step_seconds = 0.25}},
                                    .steps = 9,
                                    .collectives = 4,
                                    .recorded_step_seconds = 2,
                                    .replayed_step_seconds = 1.75,
                                    .waiting_seconds = 0.5,
                                    .between_steps_seconds = 0.1,
                                    .unexplained_seconds = -0.05},
                         .path = answer.answer.path,
                         .overlap_slowdown = {{.slowdown = 1.25,
                                               .interval = {.lower = 1.125, .upper = 1.5},
                                               .operations = 3,
                                               .runs_alone = 40,
                                               .runs_beside = 50}},
                         .collective_slowdown = {{.slowdown = 1.75,
                                                  .interval = {.lower = 1.5, .upper = 2},
                                                  .collectives = 4,
                                                  .runs = 36,
                                                  .computing_fraction = 0.625}}};
  const v1::RecordedJobDiagnosis wire = ToWire(answer).recording();
  EXPECT_EQ(wire.overlap_slowdown().slowdown(), 1.25);
  EXPECT_EQ(wire.overlap_slowdown().interval().lower(), 1.125);
  EXPECT_EQ(wire.overlap_slowdown().interval().upper(), 1.5);
  EXPECT_EQ(wire.overlap_slowdown().interval().level(), 0.95);
  EXPECT_EQ(wire.overlap_slowdown().operations(), 3);
  EXPECT_EQ(wire.overlap_slowdown().runs_alone(), 40);
  EXPECT_EQ(wire.overlap_slowdown().runs_beside(), 50);
  EXPECT_EQ(wire.collective_slowdown().slowdown(), 1.75);
  EXPECT_EQ(wire.collective_slowdown().interval().lower(), 1.5);
  EXPECT_EQ(wire.collective_slowdown().interval().upper(), 2);
  EXPECT_EQ(wire.collective_slowdown().interval().level(), 0.95);
  EXPECT_EQ(wire.collective_slowdown().collectives(), 4);
  EXPECT_EQ(wire.collective_slowdown().runs(), 36);
  EXPECT_EQ(wire.collective_slowdown().computing_fraction(), 0.625);
  EXPECT_EQ(wire.path_steps(), 20);
  EXPECT_EQ(wire.path_seconds(), 1.5);
  EXPECT_EQ(wire.path_size(), 3);
  EXPECT_EQ(wire.workers_size(), 2);
  EXPECT_EQ(wire.straggler(), 1);
  EXPECT_EQ(wire.operations_size(), 1);
  const v1::RecordingReport& report = wire.report();
  ASSERT_EQ(report.workers_size(), 2);
  EXPECT_EQ(report.workers(0).name(), "rank 0");
  const v1::RecordedWorkerReport& second = report.workers(1);
  EXPECT_EQ(second.clock_offset_ns(), 7);
  EXPECT_EQ(second.clock_drift(), 1e-5);
  EXPECT_EQ(second.least_clock_offset_ns(), 5);
  EXPECT_FALSE(second.has_most_clock_offset_ns()) << "nothing bounds it";
  EXPECT_EQ(second.recorded_step_seconds(), 0.5);
  EXPECT_EQ(second.replayed_step_seconds(), 0.25);
  EXPECT_EQ(report.steps(), 9);
  EXPECT_EQ(report.collectives(), 4);
  EXPECT_EQ(report.recorded_step_seconds(), 2);
  EXPECT_EQ(report.replayed_step_seconds(), 1.75);
  EXPECT_FALSE(report.has_unaligned_step_seconds());
  EXPECT_EQ(report.waiting_seconds(), 0.5);
  EXPECT_EQ(report.between_steps_seconds(), 0.1);
  EXPECT_EQ(report.unexplained_seconds(), -0.05);
  answer.answer.recording->report.unaligned_step_seconds = 3;
  EXPECT_EQ(ToWire(answer).recording().report().unaligned_step_seconds(), 3);
  answer.answer.recording->overlap_slowdown.reset();
  EXPECT_FALSE(ToWire(answer).recording().has_overlap_slowdown());
  EXPECT_TRUE(ToWire(answer).recording().has_collective_slowdown());
  answer.answer.recording->collective_slowdown.reset();
  EXPECT_FALSE(ToWire(answer).recording().has_collective_slowdown());
}

TEST(CalibrationConvertTest, FitParsingOverheadCarriesEverything) {
  v1::FitParsingOverheadRequest wire;
  for (const double seconds : {0.5, 0.75}) {
    v1::ParsingMeasurement& measurement = *wire.add_measurements();
    measurement.set_size_bytes(static_cast<int64_t>(1000 * seconds));
    measurement.set_seconds(seconds);
  }
  EXPECT_THAT(FromWire(wire).draft.measurements,
              ElementsAre(ParsingMeasurement{500, 0.5}, ParsingMeasurement{750, 0.75}));
  EXPECT_EQ(FromWire(wire).draft.confidence_level, std::nullopt);
  wire.set_confidence_level(0);
  EXPECT_EQ(FromWire(wire).draft.confidence_level, 0);
}

TEST(CalibrationConvertTest, AFitCarriesEverything) {
  FitParsingOverheadAnswer answer;
  answer.answer = {.fit = {.line = {.slope = 2, .offset = 10},
                           .half_width = {.slope = 3, .offset = 4},
                           .residual = 5,
                           .relative_residual = 6,
                           .outliers = 7},
                   .least_squares = {.slope = 8, .offset = -9},
                   .confidence_level = 0.9};
  const v1::FitParsingOverheadResponse wire = ToWire(answer);
  EXPECT_EQ(wire.seconds_per_byte(), 2);
  EXPECT_EQ(wire.seconds(), 10);
  EXPECT_EQ(wire.seconds_per_byte_interval().lower(), 0);
  EXPECT_EQ(wire.seconds_per_byte_interval().upper(), 5);
  EXPECT_EQ(wire.seconds_per_byte_interval().level(), 0.9);
  EXPECT_EQ(wire.seconds_interval().lower(), 6);
  EXPECT_EQ(wire.seconds_interval().upper(), 14);
  EXPECT_EQ(wire.residual_seconds(), 5);
  EXPECT_EQ(wire.relative_residual(), 6);
  EXPECT_EQ(wire.outliers(), 7);
  EXPECT_EQ(wire.least_squares().seconds_per_byte(), 8);
  EXPECT_EQ(wire.least_squares().seconds(), -9);
}

TEST(CalibrationConvertTest, FitCollectivesCarriesEverything) {
  v1::FitCollectivesRequest wire;
  v1::AllReduce::MeasuredCollective& measurement = *wire.add_measurements();
  measurement.set_kind(v1::Operation::ALL_GATHER);
  measurement.set_workers(4);
  measurement.set_size_bytes(1000);
  measurement.set_seconds(0.5);
  FitCollectivesCall call = FromWire(wire);
  EXPECT_THAT(call.draft.measurements,
              ElementsAre(MeasuredCollective{Collective::kAllGather, 4, 1000, 0.5}));
  EXPECT_EQ(call.draft.algorithm, std::nullopt);
  EXPECT_EQ(call.draft.confidence_level, std::nullopt);
  EXPECT_EQ(call.draft.workers_per_node, std::nullopt);
  wire.set_algorithm(v1::AllReduce::GLOO);
  wire.set_confidence_level(0);
  wire.set_workers_per_node(0);
  call = FromWire(wire);
  EXPECT_EQ(call.draft.algorithm, CollectiveAlgorithm::kGloo);
  EXPECT_EQ(call.draft.confidence_level, 0);
  EXPECT_EQ(call.draft.workers_per_node, 0);
  EXPECT_TRUE(call.faults.empty());
  wire.set_algorithm(static_cast<v1::AllReduce::Algorithm>(77));
  measurement.set_kind(static_cast<v1::Operation::Collective>(78));
  call = FromWire(wire);
  ASSERT_EQ(call.faults.size(), 2);
  EXPECT_EQ(call.faults[0].field, "measurements[0].kind");
  EXPECT_EQ(call.faults[1].field, "algorithm");
}

TEST(CalibrationConvertTest, FitContentionCarriesEverything) {
  v1::FitContentionRequest wire;
  v1::FitContentionRequest::Transfer& transfer = *wire.add_transfers();
  transfer.set_threads(128);
  transfer.set_size_bytes(1000);
  transfer.set_seconds(0.5);
  transfer.set_overlapped(true);
  v1::FitContentionRequest::Slowdown& slowdown = *wire.add_slowdowns();
  slowdown.set_threads(256);
  slowdown.set_slowdown(1.5);
  ContentionMeasurements measured = FromWire(wire).draft;
  EXPECT_THAT(measured.transfers, ElementsAre(MeasuredTransfer{128, 1000, 0.5, true}));
  EXPECT_THAT(measured.slowdowns, ElementsAre(MeasuredSlowdown{256, 1.5}));
  EXPECT_EQ(measured.workers, 2);
  EXPECT_EQ(measured.latency_seconds, 0);
  EXPECT_EQ(measured.gamma4, 0.6);
  EXPECT_EQ(measured.confidence_level, 0.95);
  wire.set_workers(0);
  wire.set_latency_seconds(3);
  wire.set_gamma4(0);
  wire.set_confidence_level(0);
  measured = FromWire(wire).draft;
  EXPECT_EQ(measured.workers, 0);
  EXPECT_EQ(measured.latency_seconds, 3);
  EXPECT_EQ(measured.gamma4, 0);
  EXPECT_EQ(measured.confidence_level, 0);
}

FitContentionAnswer FittedContention() {
  const auto rate = [](double value) {
    return FittedRate{.gamma1 = {.value = value, .lower = 1, .upper = 2},
                      .gamma2 = {.value = value, .lower = 3, .upper = 4},
                      .gamma3 = {.value = value, .lower = 5, .upper = 6},
                      .is_told = true,
                      .outliers = 7,
                      .relative_residual = 8};
  };
  return {.answer = {.alpha1 = {.value = 1, .lower = 0.9, .upper = 1.1},
                     .alpha2 = {.value = 1e-4, .lower = 9e-5, .upper = 2e-4},
                     .overlapped = rate(10),
                     .alone = rate(20),
                     .slowdown_outliers = 9,
                     .contention = {.alpha1 = 1,
                                    .alpha2 = 1e-4,
                                    .overlapped = {10, 11, 12},
                                    .alone = {20, 21, 22},
                                    .gamma4 = 0.7}},
          .confidence_level = 0.9,
          .assumptions = {.transfer_not_faster = false, .why = "with 128 threads"},
          .unusable_because = {},
          .context = {}};
}

TEST(CalibrationConvertTest, FittedContentionCarriesEverything) {
  v1::FitContentionResponse wire = ToWire(FittedContention());
  EXPECT_EQ(FromWire(wire.contention()), FittedContention().answer.contention);
  EXPECT_EQ(wire.alpha1_interval().lower(), 0.9);
  EXPECT_EQ(wire.alpha1_interval().upper(), 1.1);
  EXPECT_EQ(wire.alpha1_interval().level(), 0.9);
  EXPECT_EQ(wire.alpha2_interval().upper(), 2e-4);
  EXPECT_EQ(wire.slowdown_outliers(), 9);
  EXPECT_EQ(wire.overlapped().gamma1_interval().lower(), 1);
  EXPECT_EQ(wire.overlapped().gamma2_interval().upper(), 4);
  EXPECT_EQ(wire.alone().gamma3_interval().lower(), 5);
  EXPECT_TRUE(wire.alone().is_told());
  EXPECT_EQ(wire.alone().outliers(), 7);
  EXPECT_EQ(wire.alone().relative_residual(), 8);
  EXPECT_TRUE(wire.assumptions().computation_not_faster());
  EXPECT_FALSE(wire.assumptions().transfer_not_faster());
  EXPECT_TRUE(wire.assumptions().overlap_not_longer());
  EXPECT_EQ(wire.assumptions().guarantee_void_because(), "with 128 threads");
  EXPECT_EQ(wire.unusable_because(), "");
  EXPECT_FALSE(wire.engine_version().empty());
  FitContentionAnswer unusable = FittedContention();
  unusable.unusable_because = "halts";
  wire = ToWire(unusable);
  EXPECT_FALSE(wire.has_assumptions());
  EXPECT_EQ(wire.unusable_because(), "halts");
}

FitCollectivesAnswer FittedLink() {
  return {.answer = {.algorithm = CollectiveAlgorithm::kGloo,
                     .workers_per_node = 1,
                     .bandwidth = {.is_told = true, .value = 2e8, .lower = 1e8, .upper = 3e8},
                     .latency = {.is_told = true, .value = 2e-5, .lower = 1e-5, .upper = 3e-5},
                     .reduction = {.is_told = true, .value = 2e-9, .lower = 0, .upper = 3e-9},
                     .relative_residual = 0.25,
                     .outliers = 7,
                     .by_workers = {{.workers = 8,
                                     .measurements = 9,
                                     .outliers = 3,
                                     .relative_residual = 0.5,
                                     .bias = -0.125}},
                     .warnings = {{FitWarning::Reason::kAlgorithmFails, "with 8 workers"}},
                     .confidence_level = 0.9},
          .context = {}};
}

TEST(CalibrationConvertTest, AFittedLinkCarriesEverything) {
  const v1::FitCollectivesResponse wire = ToWire(FittedLink());
  EXPECT_EQ(wire.bandwidth_bytes_per_second(), 2e8);
  EXPECT_EQ(wire.bandwidth_interval().lower(), 1e8);
  EXPECT_EQ(wire.bandwidth_interval().upper(), 3e8);
  EXPECT_EQ(wire.bandwidth_interval().level(), 0.9);
  EXPECT_EQ(wire.latency_seconds(), 2e-5);
  EXPECT_EQ(wire.latency_interval().lower(), 1e-5);
  EXPECT_EQ(wire.latency_interval().upper(), 3e-5);
  EXPECT_EQ(wire.reduction_seconds_per_byte(), 2e-9);
  EXPECT_EQ(wire.reduction_interval().upper(), 3e-9);
  EXPECT_EQ(wire.relative_residual(), 0.25);
  EXPECT_EQ(wire.outliers(), 7);
  ASSERT_EQ(wire.by_workers_size(), 1);
  EXPECT_EQ(wire.by_workers(0).workers(), 8);
  EXPECT_EQ(wire.by_workers(0).measurements(), 9);
  EXPECT_EQ(wire.by_workers(0).outliers(), 3);
  EXPECT_EQ(wire.by_workers(0).relative_residual(), 0.5);
  EXPECT_EQ(wire.by_workers(0).bias(), -0.125);
  ASSERT_EQ(wire.warnings_size(), 1);
  EXPECT_EQ(wire.warnings(0).reason(), v1::FitCollectivesResponse::Warning::ALGORITHM_FAILS);
  EXPECT_EQ(wire.warnings(0).message(), "with 8 workers");
  EXPECT_EQ(wire.scenario().bandwidth_bytes_per_second(), 2e8);
  EXPECT_EQ(wire.scenario().all_reduce().algorithm(), v1::AllReduce::GLOO);
  EXPECT_EQ(wire.scenario().all_reduce().latency_seconds(), 2e-5);
  EXPECT_EQ(wire.scenario().all_reduce().reduction_seconds_per_byte(), 2e-9);
  EXPECT_FALSE(wire.scenario().all_reduce().has_workers_per_node());
  EXPECT_FALSE(wire.engine_version().empty());
}

TEST(CalibrationConvertTest, ALinkInsideANodeIsTheScenariosInside) {
  FitCollectivesAnswer answer = FittedLink();
  answer.answer.workers_per_node = 8;
  answer.answer.is_inside_node = true;
  const v1::Scenario wire = ToWire(answer).scenario();
  EXPECT_FALSE(wire.has_bandwidth_bytes_per_second());
  EXPECT_FALSE(wire.all_reduce().has_latency_seconds());
  EXPECT_EQ(wire.all_reduce().workers_per_node(), 8);
  EXPECT_EQ(wire.all_reduce().intra_node_bandwidth_bytes_per_second(), 2e8);
  EXPECT_EQ(wire.all_reduce().intra_node_latency_seconds(), 2e-5);
}

TEST(CalibrationConvertTest, WhatIsNotToldOrBeyondAScenarioIsLeftOut) {
  FitCollectivesAnswer answer = FittedLink();
  answer.answer.bandwidth = {.is_told = true, .value = 0, .lower = 5, .upper = 1e15};
  answer.answer.latency = {.is_told = true, .value = 11, .lower = 10, .upper = 12};
  answer.answer.reduction = {};
  const v1::FitCollectivesResponse wire = ToWire(answer);
  EXPECT_FALSE(wire.has_reduction_interval());
  EXPECT_EQ(wire.latency_seconds(), 11);
  EXPECT_FALSE(wire.scenario().has_bandwidth_bytes_per_second());
  EXPECT_FALSE(wire.scenario().all_reduce().has_latency_seconds());
  EXPECT_EQ(wire.scenario().all_reduce().reduction_seconds_per_byte(), 0);
}

TEST(TraceConvertTest, GenerateTraceTakesItsScenarioAndOptions) {
  v1::GenerateTraceRequest wire;
  wire.set_profile("profiles/a");
  wire.mutable_scenario()->set_workers(3);
  wire.mutable_options()->set_steps_per_worker(2);
  wire.mutable_options()->set_start(static_cast<v1::SimulationOptions::Start>(9));
  const GenerateTraceCall call = FromWire(wire);
  EXPECT_EQ(std::get<std::string>(call.source.recorded), "profiles/a");
  EXPECT_EQ(call.draft.scenario.workers, 3);
  EXPECT_EQ(call.draft.options.steps_per_worker, 2);
  ASSERT_EQ(call.faults.size(), 1U);
  EXPECT_EQ(call.faults[0].field, "options.start");
}

}  // namespace
}  // namespace stepcast::server::prediction_convert_test
