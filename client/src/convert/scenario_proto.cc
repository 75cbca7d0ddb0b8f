#include "client/src/convert/scenario_proto.h"

#include "client/src/convert/duration_proto.h"
#include "client/src/convert/profile_proto.h"
#include "client/src/convert/repeated.h"

namespace stepcast::client {

static_assert(static_cast<int>(Synchronization::kAsynchronous) == v1::Scenario::ASYNCHRONOUS);
static_assert(static_cast<int>(Synchronization::kSynchronous) == v1::Scenario::SYNCHRONOUS);
static_assert(static_cast<int>(Multiplexing::kWindow) == v1::Scenario::WINDOW);
static_assert(static_cast<int>(Multiplexing::kWholeStream) == v1::Scenario::WHOLE_STREAM);
static_assert(static_cast<int>(Multiplexing::kRoundRobin) == v1::Scenario::ROUND_ROBIN);
static_assert(static_cast<int>(LinkSharing::kEqual) == v1::Scenario::EQUAL);
static_assert(static_cast<int>(LinkSharing::kFirstCome) == v1::Scenario::FIRST_COME);
static_assert(static_cast<int>(LinkSharing::kTurns) == v1::Scenario::TURNS);
static_assert(static_cast<int>(TransferOrder::kGraph) == v1::Scenario::GRAPH);
static_assert(static_cast<int>(TransferOrder::kRecorded) == v1::Scenario::RECORDED);
static_assert(static_cast<int>(TransferOrder::kRandom) == v1::Scenario::RANDOM);
static_assert(static_cast<int>(TransferOrder::kReverse) == v1::Scenario::REVERSE);
static_assert(static_cast<int>(TransferOrder::kTic) == v1::Scenario::TIC);
static_assert(static_cast<int>(TransferOrder::kTac) == v1::Scenario::TAC);
static_assert(static_cast<int>(TransferOrder::kExplicit) == v1::Scenario::EXPLICIT);
static_assert(static_cast<int>(Start::kSimultaneous) == v1::SimulationOptions::SIMULTANEOUS);
static_assert(static_cast<int>(Start::kStaggered) == v1::SimulationOptions::STAGGERED);
static_assert(static_cast<int>(Horizon::kSteadyState) == v1::SimulationOptions::STEADY_STATE);
static_assert(static_cast<int>(Horizon::kFirstSteps) == v1::SimulationOptions::FIRST_STEPS);
static_assert(static_cast<int>(Horizon::kFirstSeconds) == v1::SimulationOptions::FIRST_SECONDS);

void ToProto(const WorkerGroup& from, v1::WorkerGroup& to) {
  to.set_count(from.count);
  if (from.compute_speed_factor) to.set_compute_speed_factor(*from.compute_speed_factor);
  if (from.bandwidth_bytes_per_second)
    to.set_bandwidth_bytes_per_second(*from.bandwidth_bytes_per_second);
}

void FromProto(const v1::WorkerGroup& from, WorkerGroup& to) {
  to.count = from.count();
  if (from.has_compute_speed_factor()) to.compute_speed_factor = from.compute_speed_factor();
  if (from.has_bandwidth_bytes_per_second())
    to.bandwidth_bytes_per_second = from.bandwidth_bytes_per_second();
}

void ToProto(const Scenario& from, v1::Scenario& to) {
  to.set_workers(from.workers);
  if (from.parameter_servers) to.set_parameter_servers(*from.parameter_servers);
  if (from.bandwidth_bytes_per_second)
    to.set_bandwidth_bytes_per_second(*from.bandwidth_bytes_per_second);
  if (from.parsing_overhead) ToProto(*from.parsing_overhead, *to.mutable_parsing_overhead());
  to.set_synchronization(static_cast<v1::Scenario::Synchronization>(from.synchronization));
  to.set_multiplexing(static_cast<v1::Scenario::Multiplexing>(from.multiplexing));
  if (from.window_bytes) to.set_window_bytes(*from.window_bytes);
  if (from.quantum_bytes) to.set_quantum_bytes(*from.quantum_bytes);
  to.set_link_sharing(static_cast<v1::Scenario::LinkSharing>(from.link_sharing));
  if (from.turn_bytes) to.set_turn_bytes(*from.turn_bytes);
  to.set_transfer_order(static_cast<v1::Scenario::TransferOrder>(from.transfer_order));
  ToProto(from.transfer_priorities, *to.mutable_transfer_priorities());
  ToProto(from.start_offsets_ns, *to.mutable_start_offsets_ns());
  ToProto(from.worker_groups, *to.mutable_worker_groups());
}

void FromProto(const v1::Scenario& from, Scenario& to) {
  to.workers = from.workers();
  if (from.has_parameter_servers()) to.parameter_servers = from.parameter_servers();
  if (from.has_bandwidth_bytes_per_second())
    to.bandwidth_bytes_per_second = from.bandwidth_bytes_per_second();
  if (from.has_parsing_overhead())
    FromProto(from.parsing_overhead(), to.parsing_overhead.emplace());
  to.synchronization = static_cast<Synchronization>(from.synchronization());
  to.multiplexing = static_cast<Multiplexing>(from.multiplexing());
  if (from.has_window_bytes()) to.window_bytes = from.window_bytes();
  if (from.has_quantum_bytes()) to.quantum_bytes = from.quantum_bytes();
  to.link_sharing = static_cast<LinkSharing>(from.link_sharing());
  if (from.has_turn_bytes()) to.turn_bytes = from.turn_bytes();
  to.transfer_order = static_cast<TransferOrder>(from.transfer_order());
  FromProto(from.transfer_priorities(), to.transfer_priorities);
  FromProto(from.start_offsets_ns(), to.start_offsets_ns);
  FromProto(from.worker_groups(), to.worker_groups);
}

void ToProto(const SimulationOptions& from, v1::SimulationOptions& to) {
  if (from.steps_per_worker) to.set_steps_per_worker(*from.steps_per_worker);
  if (from.warmup_steps) to.set_warmup_steps(*from.warmup_steps);
  if (from.seed) to.set_seed(*from.seed);
  if (from.replications) to.set_replications(*from.replications);
  if (from.relative_precision) to.set_relative_precision(*from.relative_precision);
  if (from.time_budget) ToProto(*from.time_budget, *to.mutable_time_budget());
  to.set_start(static_cast<v1::SimulationOptions::Start>(from.start));
  to.set_horizon(static_cast<v1::SimulationOptions::Horizon>(from.horizon));
  if (from.horizon_steps) to.set_horizon_steps(*from.horizon_steps);
  if (from.horizon_seconds) to.set_horizon_seconds(*from.horizon_seconds);
  if (from.confidence_level) to.set_confidence_level(*from.confidence_level);
}

void FromProto(const v1::SimulationOptions& from, SimulationOptions& to) {
  if (from.has_steps_per_worker()) to.steps_per_worker = from.steps_per_worker();
  if (from.has_warmup_steps()) to.warmup_steps = from.warmup_steps();
  if (from.has_seed()) to.seed = from.seed();
  if (from.has_replications()) to.replications = from.replications();
  if (from.has_relative_precision()) to.relative_precision = from.relative_precision();
  if (from.has_time_budget()) FromProto(from.time_budget(), to.time_budget.emplace());
  to.start = static_cast<Start>(from.start());
  to.horizon = static_cast<Horizon>(from.horizon());
  if (from.has_horizon_steps()) to.horizon_steps = from.horizon_steps();
  if (from.has_horizon_seconds()) to.horizon_seconds = from.horizon_seconds();
  if (from.has_confidence_level()) to.confidence_level = from.confidence_level();
}

}  // namespace stepcast::client
