#include "server/convert/scenario_convert.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/random.h"
#include "tests/server/support/random_profile.h"

namespace stepcast::server::scenario_convert_test {
namespace {

// Every third of each kind.
ParameterServers RandomServers(Random& random) {
  const auto bytes = [&] { return 1 + static_cast<int64_t>(random.Below(1 << 20)); };
  ParameterServers servers;
  servers.servers = 1 + static_cast<int32_t>(random.Below(10));
  servers.parsing_overhead = {.seconds_per_byte = random.Unit(), .seconds = random.Unit()};
  servers.synchronization = static_cast<Synchronization>(random.Below(3));
  servers.partition_bytes = random.Below(2) == 0 ? bytes() : 0;
  if (const uint64_t kind = random.Below(3); kind == 1) {
    servers.multiplexing =
        Window{.bytes = bytes(), .quantum_bytes = random.Below(2) == 0 ? bytes() : 0};
  } else if (kind == 2) {
    servers.multiplexing = RoundRobin{.window_bytes = bytes(), .quantum_bytes = bytes()};
  }
  if (const uint64_t kind = random.Below(3); kind == 1) {
    servers.link_sharing = FirstCome{};
  } else if (kind == 2) {
    servers.link_sharing = Turns{.bytes = bytes()};
  }
  servers.transfer_order = static_cast<TransferOrder>(random.Below(7));
  for (uint64_t i = random.Below(4); i > 0; --i)
    servers.transfer_priorities["t" + std::to_string(i)] = static_cast<int32_t>(random.Below(9));
  return servers;
}

Scenario RandomScenario(uint64_t seed) {
  Random random({seed});
  Scenario scenario;
  scenario.workers = 1 + static_cast<int32_t>(random.Below(100));
  scenario.bandwidth_bytes_per_second = 1 + random.Unit() * 1e9;
  scenario.communication = RandomServers(random);
  for (uint64_t i = random.Below(4); i > 0; --i)
    scenario.start_offsets_ns.push_back(static_cast<int64_t>(random.Below(1000)));
  if (random.Below(2) == 0)
    scenario.worker_groups = {{.count = 1, .compute_speed_factor = 2.0},
                              {.count = 2, .bandwidth_bytes_per_second = 5.0}};
  return scenario;
}

// Everything that the draft asks for, where it asks for everything.
Scenario Filled(const ScenarioDraft& draft) {
  const ParameterServersDraft& asked = draft.servers();
  ParameterServers servers{
      .servers = asked.servers.value_or(-1),
      .parsing_overhead = asked.parsing_overhead.value_or(ParsingOverhead{-1, -1}),
      .synchronization = asked.synchronization.value(),
      .transfer_order = asked.transfer_order.value(),
      .transfer_priorities = asked.transfer_priorities,
      .partition_bytes = asked.partition_bytes.value_or(0)};
  if (const auto* window = std::get_if<WindowDraft>(&asked.multiplexing.value()))
    servers.multiplexing =
        Window{.bytes = window->bytes.value(), .quantum_bytes = window->quantum_bytes.value_or(0)};
  if (const auto* robin = std::get_if<RoundRobinDraft>(&*asked.multiplexing))
    servers.multiplexing = RoundRobin{.window_bytes = robin->window_bytes.value(),
                                      .quantum_bytes = robin->quantum_bytes.value()};
  if (std::holds_alternative<FirstCome>(asked.link_sharing.value()))
    servers.link_sharing = FirstCome{};
  if (const auto* turns = std::get_if<TurnsDraft>(&*asked.link_sharing))
    servers.link_sharing = Turns{.bytes = turns->bytes.value()};
  return {.workers = draft.workers.value_or(-1),
          .bandwidth_bytes_per_second = draft.bandwidth_bytes_per_second.value_or(-1),
          .communication = servers,
          .start_offsets_ns = draft.start_offsets_ns,
          .worker_groups = draft.worker_groups};
}

TEST(ScenarioConvertTest, AResolvedScenarioComesBackAsItWas) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    FaultList faults;
    const Scenario scenario = RandomScenario(seed);
    EXPECT_TRUE(Filled(FromWire(ToWire(scenario), "scenario", faults)) == scenario)
        << "seed " << seed;
    EXPECT_TRUE(faults.empty()) << "seed " << seed;
  }
}

TEST(ScenarioConvertTest, AClusterHasItsFigures) {
  v1::Scenario wire;
  v1::Cluster& cluster = *wire.mutable_cluster();
  cluster.set_bandwidth_bytes_per_second(7);
  FaultList faults;
  const ClusterDraft bare{.bandwidth_bytes_per_second = 7};
  EXPECT_TRUE(FromWire(wire, "scenario", faults).cluster == bare);
  cluster.set_workers_per_node(2);
  cluster.set_intra_node_bandwidth_bytes_per_second(3);
  cluster.set_latency_seconds(4);
  cluster.set_intra_node_latency_seconds(5);
  cluster.set_algorithm(v1::AllReduce::TREE);
  const ClusterDraft full{.bandwidth_bytes_per_second = 7,
                          .workers_per_node = 2,
                          .intra_node_bandwidth_bytes_per_second = 3,
                          .latency_seconds = 4,
                          .intra_node_latency_seconds = 5,
                          .algorithm = CollectiveAlgorithm::kTree};
  EXPECT_TRUE(FromWire(wire, "scenario", faults).cluster == full);
  EXPECT_TRUE(faults.empty());
  wire.clear_cluster();
  EXPECT_FALSE(FromWire(wire, "scenario", faults).cluster.has_value());
}

TEST(ScenarioConvertTest, AResolvedScenarioResolvesToItself) {
  const Profile profile = *Profile::Create(SmallProfile());
  const std::vector<ParameterServersDraft> drafts = {
      {.multiplexing = WholeStream{}},
      {.multiplexing = WindowDraft{.bytes = 9}},
      {.multiplexing = WindowDraft{.bytes = 9, .quantum_bytes = 5}},
      {.multiplexing = RoundRobinDraft{}},
      {.multiplexing = RoundRobinDraft{.window_bytes = 9, .quantum_bytes = 5}},
      {.link_sharing = EqualShares{}},
      {.link_sharing = FirstCome{}},
      {.link_sharing = TurnsDraft{}},
      {.link_sharing = TurnsDraft{.bytes = 9}}};
  for (const ParameterServersDraft& draft : drafts) {
    SCOPED_TRACE(&draft - drafts.data());
    const absl::StatusOr<Scenario> resolved =
        ResolveScenario(profile, {.workers = 3, .communication = draft});
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    FaultList faults;
    const absl::StatusOr<Scenario> again =
        ResolveScenario(profile, FromWire(ToWire(*resolved), "scenario", faults));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *resolved);
  }
}

// Every field of what collectives are asked for, in one draft or another.
std::vector<AllReduceDraft> DraftsOfCollectives() {
  const MeasuredCollective point{.workers = 2, .size_bytes = 7, .seconds = 0.5};
  const MeasuredCollective broadcast{
      .kind = Collective::kBroadcast, .workers = 3, .size_bytes = 8, .seconds = 0.25};
  std::vector<AllReduceDraft> drafts = {
      {},
      {.algorithm = CollectiveAlgorithm::kHierarchical,
       .latency_seconds = 1e-6,
       .workers_per_node = 2,
       .intra_node_bandwidth_bytes_per_second = 3e9,
       .intra_node_latency_seconds = 2e-6,
       .reduction_seconds_per_byte = 1e-9,
       .launch_seconds = 3e-6,
       .fusion = Buckets{.first_bytes = 5, .cap_bytes = 6},
       .partition_bytes = 9,
       .sharding = Sharding::kGradients,
       .overlap_slowdown = 1.25,
       .collective_slowdown = 1.75},
      {.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 2},
      {.measured = {point, broadcast}},
      {.algorithm = CollectiveAlgorithm::kNccl,
       .nccl = Nccl{.architecture = Nccl::Architecture::kHopper,
                    .intra_node_path = Nccl::Path::kPci,
                    .channels = 8,
                    .channel_bandwidth_bytes_per_second = 4e9,
                    .amd = true}},
      {.workers_per_node = 2,
       .intra_node_bandwidth_bytes_per_second = 3e9,
       .fidelity = Fidelity::kExpanded,
       .workers_per_rack = 2,
       .rack_bandwidth_bytes_per_second = 5e8},
      {.fusion = HorovodDraft{.fusion_bytes = 7, .cycle_seconds = 0.25}},
      {.fusion = ByteSchedulerDraft{.credit_bytes = 7}, .partition_bytes = 9},
      {.sharding = Sharding::kOptimizer},
      {.fusion = Unfused{}},
      {.fusion = GradientGroups{{{.operations = {"gradient"}}}}},
      {.fusion = GradientGroups{{{.operations = {"gradient"}, .threads = 512}}},
       .contention = Contention{.overlapped = {.gamma1 = 1e9}, .alone = {.gamma1 = 2e9}}},
      {.contention = Contention{.alpha1 = 0.9,
                                .alpha2 = 1e-4,
                                .overlapped = {.gamma1 = 5e9, .gamma2 = 1e9, .gamma3 = 0.5},
                                .alone = {.gamma1 = 6e9, .gamma2 = 2e9, .gamma3 = 0.25},
                                .gamma4 = 0.7},
       .threads = 256}};
  for (const auto algorithm : {CollectiveAlgorithm::kRing, CollectiveAlgorithm::kHalvingDoubling,
                               CollectiveAlgorithm::kTree, CollectiveAlgorithm::kNccl})
    drafts.push_back({.algorithm = algorithm});
  return drafts;
}

TEST(ScenarioConvertTest, AScenarioOfCollectivesResolvesToItselfAndLeavesOutNoField) {
  ProfileDraft recorded = SmallProfile();
  recorded.operations[0] = {.name = "gradient",
                            .resource = Resource::kCollective,
                            .size_bytes = 1000,
                            .collective = Collective::kAllReduce};
  const Profile profile = *Profile::Create(std::move(recorded));
  std::set<std::string> seen;
  for (const AllReduceDraft& draft : DraftsOfCollectives()) {
    const absl::StatusOr<Scenario> resolved =
        ResolveScenario(profile, {.workers = 4, .communication = draft});
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    const v1::Scenario wire = ToWire(*resolved);
    EXPECT_FALSE(wire.has_parameter_servers());
    FaultList faults;
    const absl::StatusOr<Scenario> again =
        ResolveScenario(profile, FromWire(wire, "scenario", faults));
    EXPECT_TRUE(faults.empty());
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *resolved) << wire.DebugString();
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    wire.all_reduce().GetReflection()->ListFields(wire.all_reduce(), &fields);
    for (const google::protobuf::FieldDescriptor* field : fields) seen.insert(field->name());
  }
  const google::protobuf::Descriptor& all = *v1::AllReduce::descriptor();
  for (int i = 0; i < all.field_count(); ++i) {
    EXPECT_EQ(seen.count(all.field(i)->name()), 1U) << all.field(i)->name();
  }
}

TEST(ScenarioConvertTest, UnknownNumbersOfCollectivesAreFaultsAtTheirPath) {
  v1::Scenario wire;
  v1::AllReduce& job = *wire.mutable_all_reduce();
  job.set_algorithm(static_cast<v1::AllReduce::Algorithm>(40));
  job.set_sharding(static_cast<v1::AllReduce::Sharding>(41));
  job.add_measured()->set_kind(static_cast<v1::Operation::Collective>(42));
  job.set_fidelity(static_cast<v1::AllReduce::Fidelity>(45));
  job.mutable_nccl()->set_architecture(static_cast<v1::AllReduce::Nccl::Architecture>(43));
  job.mutable_nccl()->set_intra_node_path(static_cast<v1::AllReduce::Nccl::Path>(44));
  job.mutable_horovod()->set_cycle_seconds(0.5);
  FaultList list;
  const ScenarioDraft draft = FromWire(wire, "scenarios[3]", list);
  std::set<std::string> paths;
  for (const Fault& fault : std::move(list).Take()) paths.insert(fault.field);
  EXPECT_EQ(paths,
            (std::set<std::string>{
                "scenarios[3].all_reduce.algorithm", "scenarios[3].all_reduce.fidelity",
                "scenarios[3].all_reduce.sharding", "scenarios[3].all_reduce.measured[0].kind",
                "scenarios[3].all_reduce.nccl.architecture",
                "scenarios[3].all_reduce.nccl.intra_node_path"}));
  const auto& asked = std::get<AllReduceDraft>(draft.communication);
  EXPECT_EQ(asked.fusion, FusionDraft(HorovodDraft{.cycle_seconds = 0.5}));
}

// Sets the field to something, which need make no sense.
void Touch(google::protobuf::Message& message, const google::protobuf::FieldDescriptor& field) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) {
    reflection.AddMessage(&message, &field);
    return;
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      reflection.MutableMessage(&message, &field);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      reflection.SetEnumValue(&message, &field, 1);
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      reflection.SetInt32(&message, &field, 1);
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      reflection.SetInt64(&message, &field, 1);
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      reflection.SetDouble(&message, &field, 1);
      return;
    default:
      ADD_FAILURE() << "a field of another type: " << field.full_name();
  }
}

// Fields at which the scenario is told to be of another kind than the profile.
std::vector<std::string> OtherKindAt(const Profile& profile, const v1::Scenario& wire) {
  FaultList none;
  const absl::Status status = ResolveScenario(profile, FromWire(wire, "scenario", none)).status();
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) {
    if (fault.description.find("belongs to ") == 0) fields.push_back(fault.field);
  }
  return fields;
}

Profile OfCollectives() {
  ProfileDraft draft = SmallProfile();
  draft.operations[0] = {.name = "gradient",
                         .resource = Resource::kCollective,
                         .size_bytes = 1000,
                         .parameter = "v",
                         .collective = Collective::kAllReduce};
  return *Profile::Create(std::move(draft));
}

TEST(ScenarioKindTest, NoFieldOfServersButTheirNumberMakesAJobOfThem) {
  const Profile servers = *Profile::Create(SmallProfile());
  const Profile collectives = OfCollectives();
  const google::protobuf::Descriptor& all = *v1::ParameterServers::descriptor();
  for (int i = 0; i < all.field_count(); ++i) {
    const std::string path = "parameter_servers." + std::string(all.field(i)->name());
    SCOPED_TRACE(path);
    v1::Scenario wire;
    Touch(*wire.mutable_parameter_servers(), *all.field(i));
    const bool asks = all.field(i)->name() == "servers";
    EXPECT_EQ(OtherKindAt(collectives, wire),
              asks ? std::vector<std::string>() : std::vector{path});
    wire.set_recorded_kind_only(true);
    EXPECT_EQ(OtherKindAt(collectives, wire), std::vector{path});
    EXPECT_EQ(OtherKindAt(servers, wire), std::vector<std::string>());
    wire.set_recorded_kind_only(false);
    wire.mutable_parameter_servers()->set_servers(1);
    EXPECT_EQ(OtherKindAt(collectives, wire), std::vector<std::string>());
  }
  v1::Scenario empty;
  empty.mutable_parameter_servers();
  EXPECT_EQ(OtherKindAt(collectives, empty), std::vector<std::string>{"parameter_servers"});
  EXPECT_EQ(OtherKindAt(servers, empty), std::vector<std::string>());
  // What is in a message of the fields is named, where something is.
  v1::Scenario window;
  window.mutable_parameter_servers()->mutable_window()->set_bytes(9);
  EXPECT_EQ(OtherKindAt(collectives, window),
            std::vector<std::string>{"parameter_servers.window.bytes"});
}

TEST(ScenarioKindTest, AnyFieldOfCollectivesAsksForThemUnlessTheRecordedKindAloneIsWanted) {
  const Profile servers = *Profile::Create(SmallProfile());
  const Profile collectives = OfCollectives();
  const google::protobuf::Descriptor& all = *v1::AllReduce::descriptor();
  for (int i = 0; i < all.field_count(); ++i) {
    const std::string path = "all_reduce." + std::string(all.field(i)->name());
    SCOPED_TRACE(path);
    v1::Scenario wire;
    Touch(*wire.mutable_all_reduce(), *all.field(i));
    EXPECT_EQ(OtherKindAt(servers, wire), std::vector<std::string>());
    EXPECT_EQ(OtherKindAt(collectives, wire), std::vector<std::string>());
    wire.set_recorded_kind_only(true);
    EXPECT_EQ(OtherKindAt(servers, wire), std::vector{path});
    EXPECT_EQ(OtherKindAt(collectives, wire), std::vector<std::string>());
  }
  v1::Scenario empty;
  empty.mutable_all_reduce();
  empty.set_recorded_kind_only(true);
  EXPECT_EQ(OtherKindAt(servers, empty), std::vector<std::string>{"all_reduce"});
}

// A oneof that is set to an empty message is asked for, with every default.
TEST(ScenarioConvertTest, AnEmptyVariantIsAskedForWithItsDefaults) {
  FaultList faults;
  v1::Scenario wire;
  wire.mutable_parameter_servers()->mutable_round_robin();
  wire.mutable_parameter_servers()->mutable_turns();
  const ScenarioDraft draft = FromWire(wire, "scenario", faults);
  const ScenarioDraft expected{
      .communication =
          ParameterServersDraft{.multiplexing = RoundRobinDraft{}, .link_sharing = TurnsDraft{}}};
  EXPECT_TRUE(draft == expected);
  EXPECT_TRUE(faults.empty());
}

TEST(ScenarioConvertTest, WhatIsUnsetStaysUnset) {
  FaultList faults;
  EXPECT_TRUE(FromWire(v1::Scenario(), "scenario", faults) == ScenarioDraft());
  // But for steps, which the service lets vary.
  EXPECT_TRUE(FromWire(v1::SimulationOptions(), "options", faults) ==
              SimulationOptionsDraft{.step_variation = StepSource::kModelled});
  EXPECT_TRUE(faults.empty());
}

TEST(ScenarioConvertTest, ZeroIsNotUnsetWhereTheContractTellsThemApart) {
  v1::SimulationOptions wire;
  wire.set_warmup_steps(0);
  wire.set_seed(0);
  FaultList faults;
  const SimulationOptionsDraft draft = FromWire(wire, "options", faults);
  EXPECT_EQ(draft.warmup_steps, 0);
  EXPECT_EQ(draft.seed, 0U);
  EXPECT_EQ(draft.replications, std::nullopt);
}

TEST(ScenarioConvertTest, ResolvedOptionsComeBackAsTheyWere) {
  SimulationOptions options{.steps_per_worker = 7,
                            .warmup_steps = 2,
                            .seed = std::numeric_limits<uint64_t>::max(),
                            .replications = 3,
                            .relative_precision = 0.5,
                            .time_budget_seconds = 1.25,
                            .start = Start::kStaggered,
                            .confidence_level = 0.9};
  FaultList faults;
  const SimulationOptionsDraft draft = FromWire(ToWire(options), "options", faults);
  EXPECT_EQ(draft.steps_per_worker, 7);
  EXPECT_EQ(draft.warmup_steps, 2);
  EXPECT_EQ(draft.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(draft.replications, 3);
  EXPECT_EQ(draft.relative_precision, 0.5);
  EXPECT_EQ(draft.time_budget_seconds, 1.25);
  EXPECT_EQ(draft.start, Start::kStaggered);
  EXPECT_EQ(draft.horizon, Horizon::kSteadyState);
  EXPECT_EQ(draft.horizon_steps, std::nullopt);
  EXPECT_EQ(draft.horizon_seconds, std::nullopt);
  EXPECT_EQ(draft.confidence_level, 0.9);
}

TEST(ScenarioConvertTest, OptionsOfAReplyCanBeSentBack) {
  const SimulationOptionsDraft drafts[] = {
      {},
      {.steps_per_worker = 30},
      {.steps_per_worker = 30, .warmup_steps = 0, .relative_precision = 0.1},
      {.seed = 3, .horizon = Horizon::kFirstSteps, .horizon_steps = 9},
      {.start = Start::kStaggered, .horizon = Horizon::kFirstSeconds, .horizon_seconds = 2.5},
  };
  for (const SimulationOptionsDraft& draft : drafts) {
    const absl::StatusOr<SimulationOptions> options = ResolveOptions(draft);
    ASSERT_TRUE(options.ok()) << options.status();
    FaultList faults;
    const absl::StatusOr<SimulationOptions> again =
        ResolveOptions(FromWire(ToWire(*options), "options", faults));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(*again == *options)
        << ToWire(*again).ShortDebugString() << " is not " << ToWire(*options).ShortDebugString();
  }
}

TEST(ScenarioConvertTest, EveryUnknownEnumNumberIsAFaultAtItsPath) {
  v1::Scenario scenario;
  v1::ParameterServers& servers = *scenario.mutable_parameter_servers();
  servers.set_synchronization(static_cast<v1::ParameterServers::Synchronization>(90));
  servers.set_transfer_order(static_cast<v1::ParameterServers::TransferOrder>(-1));
  v1::SimulationOptions options;
  options.set_start(static_cast<v1::SimulationOptions::Start>(93));
  options.set_horizon(static_cast<v1::SimulationOptions::Horizon>(94));
  FaultList list;
  FromWire(scenario, "scenarios[2]", list);
  FromWire(options, "options", list);
  std::vector<std::string> fields;
  for (const Fault& fault : std::move(list).Take()) fields.push_back(fault.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"scenarios[2].parameter_servers.synchronization",
                                              "scenarios[2].parameter_servers.transfer_order",
                                              "options.start", "options.horizon"}));
}

TEST(DurationTest, SecondsComeBackToTheNanosecond) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Random random({seed});
    const double seconds = random.Unit() * (seed % 2 == 0 ? 1 : 100'000);
    FaultList faults;
    const std::optional<double> back = FromWire(DurationOf(seconds), "d", faults);
    ASSERT_TRUE(back.has_value()) << "seed " << seed;
    EXPECT_NEAR(*back, seconds, 0.6e-9) << "seed " << seed;
  }
}

TEST(DurationTest, RoundingCarriesIntoTheSeconds) {
  EXPECT_EQ(DurationOf(1.9999999999).seconds(), 2);
  EXPECT_EQ(DurationOf(1.9999999999).nanos(), 0);
}

TEST(DurationTest, WhatTheStandardForbidsIsAFault) {
  const auto is_fault = [](int64_t seconds, int32_t nanos) {
    google::protobuf::Duration wire;
    wire.set_seconds(seconds);
    wire.set_nanos(nanos);
    FaultList faults;
    return !FromWire(wire, "d", faults).has_value() && !faults.empty();
  };
  EXPECT_TRUE(is_fault(1, -1));
  EXPECT_TRUE(is_fault(-1, 1));
  EXPECT_TRUE(is_fault(0, 1'000'000'000));
  EXPECT_TRUE(is_fault(0, std::numeric_limits<int32_t>::min()));
  EXPECT_TRUE(is_fault(315'576'000'001, 0));
  EXPECT_TRUE(is_fault(std::numeric_limits<int64_t>::min(), 0));
  EXPECT_FALSE(is_fault(-1, -999'999'999));
  EXPECT_FALSE(is_fault(0, 1));
}

}  // namespace
}  // namespace stepcast::server::scenario_convert_test
