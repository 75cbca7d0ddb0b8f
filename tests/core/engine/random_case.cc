#include "tests/core/engine/random_case.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bandwidth.h"
#include "core/base/random.h"
#include "core/engine/step_ranks.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::testing {

namespace {

constexpr int64_t kRoundBandwidth = 125'000'000;
constexpr int64_t kRoundBytes = 125'000;  // a millisecond
constexpr int64_t kRoundNs = 1'000'000;

class CaseMaker {
 public:
  explicit CaseMaker(uint64_t seed, bool sums = false, bool turns = false)
      : random_({seed, 7}),
        turns_random_({seed, 8}),
        sharing_random_({seed, 9}),
        sums_(sums),
        turns_(turns),
        applies_sums_(sums && seed % 2 == 0) {}

  RandomCase Make() {
    round_ = Chance(50);
    crowded_ = round_ && Chance(60);
    training_ = Chance(50);
    draft_.batch_size = 1;
    draft_.parameter_servers = crowded_ ? 1 : Pick(1, 3);
    draft_.platform.bandwidth_bytes_per_second = kRoundBandwidth;
    if (training_) {
      AddTrainingStep();
    } else {
      AddAnyGraph();
    }
    AddRecordedSteps();
    absl::StatusOr<Profile> profile = Profile::Create(draft_);
    if (!profile.ok()) throw std::logic_error(profile.status().ToString());
    ScenarioDraft asked = MakeScenario();
    absl::StatusOr<Scenario> scenario = ResolveScenario(*profile, asked);
    if (!scenario.ok()) throw std::logic_error(scenario.status().ToString());
    const int steps = Pick(3, 6);
    return {.profile = *profile,
            .scenario = *scenario,
            .steps_per_worker = steps,
            .warmup_steps = Pick(0, steps - 2),
            .round_numbers = round_,
            .training_shape = training_};
  }

 private:
  bool Chance(uint64_t percent) { return random_.Below(100) < percent; }
  // From least to most.
  int Pick(int least, int most) {
    return least + static_cast<int>(random_.Below(static_cast<uint64_t>(most - least) + 1));
  }
  int64_t Bytes() {
    return round_ ? kRoundBytes * Pick(1, crowded_ ? 2 : 6)
                  : static_cast<int64_t>(1 + random_.Below(2'000'000));
  }
  int64_t DurationNs() {
    if (Chance(15)) return 0;
    return round_ ? kRoundNs * (crowded_ ? (Chance(80) ? 1 : 2) : Pick(1, 4))
                  : static_cast<int64_t>(random_.Below(12'000'000));
  }

  int32_t Add(Resource resource, int server, std::vector<int32_t> waiting_for,
              std::string parameter) {
    const auto index = static_cast<int32_t>(draft_.operations.size());
    draft_.operations.push_back({.name = "op" + std::to_string(index),
                                 .resource = resource,
                                 .parameter_server = resource == Resource::kWorker ? 0 : server,
                                 .size_bytes = IsTransfer(resource) ? Bytes() : 0,
                                 .waiting_for = std::move(waiting_for),
                                 .parameter = std::move(parameter)});
    return index;
  }

  // Downloads; forward with branches; backward; an upload and an update for each parameter. Some
  // uploads do not wait for the loss.
  void AddTrainingStep() {
    const int parameters = Pick(1, 6);
    std::vector<int32_t> downloads;
    std::vector<int> servers;
    for (int p = 0; p < parameters; ++p) {
      servers.push_back(Pick(0, draft_.parameter_servers - 1));
      downloads.push_back(applies_sums_
                              ? Add(Resource::kWorker, 0, {}, "")
                              : Add(Resource::kDownlink, servers.back(), {}, Parameter(p)));
    }
    int32_t last = Add(Resource::kWorker, 0, {}, "");  // the batch
    for (int p = 0; p < parameters; ++p) {
      const int32_t own = downloads[static_cast<size_t>(p)];
      const int32_t before = last;
      last = Add(Resource::kWorker, 0, {own, before}, "");
      if (Chance(40)) {
        const int32_t branch = Add(Resource::kWorker, 0, {own}, "");
        if (Chance(30)) AddUpload(servers[static_cast<size_t>(p)], branch, Parameter(p));
        last = Add(Resource::kWorker, 0, {last, branch}, "");
      }
    }
    for (int p = parameters - 1; p >= 0; --p) {
      const int32_t gradient = Add(Resource::kWorker, 0, {last}, "");
      AddUpload(servers[static_cast<size_t>(p)], gradient, Parameter(p));
      if (Chance(80)) last = gradient;
    }
  }

  static std::string Parameter(int p) { return "p" + std::to_string(p); }

  void AddUpload(int server, int32_t gradient, const std::string& parameter) {
    const int32_t upload = Add(Resource::kUplink, server, {gradient}, parameter);
    const int32_t sum = Add(Resource::kParameterServer, server, {upload}, parameter);
    if (!applies_sums_) return;
    const int32_t download = Add(Resource::kDownlink, server, {sum}, parameter);
    Add(Resource::kWorker, 0, {download}, "");
  }

  // Any operations that wait for any others without a cycle.
  void AddAnyGraph() {
    const int size = crowded_ ? Pick(12, 30) : Pick(5, 24);
    for (int i = 0; i < size; ++i) {
      constexpr Resource kResources[] = {
          Resource::kDownlink, Resource::kDownlink, Resource::kWorker,         Resource::kWorker,
          Resource::kUplink,   Resource::kUplink,   Resource::kParameterServer};
      std::vector<int32_t> waiting_for;
      const int wanted = Pick(0, crowded_ ? 2 : 3);
      for (int k = 0; k < wanted && i > 0; ++k) {
        const int32_t earlier = Pick(std::max(0, i - 8), i - 1);
        if (std::find(waiting_for.begin(), waiting_for.end(), earlier) == waiting_for.end())
          waiting_for.push_back(earlier);
      }
      Add(kResources[random_.Below(7)], Pick(0, draft_.parameter_servers - 1), waiting_for,
          Parameter(Pick(0, 4)));
    }
    draft_.operations.front().size_bytes =
        std::max<int64_t>(draft_.operations.front().size_bytes, kRoundBytes);
    draft_.operations.front().resource = Resource::kDownlink;  // so that no step takes no time
    Shuffle();
  }

  void Shuffle() {
    std::vector<int32_t> place(draft_.operations.size());
    std::iota(place.begin(), place.end(), 0);
    for (size_t i = place.size(); i > 1; --i) std::swap(place[i - 1], place[random_.Below(i)]);
    std::vector<Operation> shuffled(place.size());
    for (size_t i = 0; i < place.size(); ++i) {
      for (int32_t& earlier : draft_.operations[i].waiting_for)
        earlier = place[static_cast<size_t>(earlier)];
      shuffled[static_cast<size_t>(place[i])] = draft_.operations[i];
    }
    draft_.operations = std::move(shuffled);
  }

  void AddRecordedSteps() {
    const int steps = Chance(50) ? 1 : Pick(2, 4);
    for (int s = 0; s < steps; ++s) {
      RecordedStep& step = draft_.steps.emplace_back();
      for (size_t i = 0; i < draft_.operations.size(); ++i) {
        const int64_t start = kRoundNs * Pick(0, 5);
        step.start_ns.push_back(start);
        step.end_ns.push_back(start + DurationNs());
      }
    }
  }

  ScenarioDraft MakeScenario() {
    ScenarioDraft asked;
    asked.workers = crowded_ ? Pick(1, 2) : Pick(1, 6);
    asked.servers().servers = !crowded_ && Chance(30) ? Pick(1, 3) : draft_.parameter_servers;
    asked.bandwidth_bytes_per_second = Bandwidth();
    if (Chance(40)) asked.servers().synchronization = Synchronization::kSynchronous;
    if (sums_) asked.servers().synchronization = Synchronization::kSummed;
    if (Chance(60)) {
      SetWindow(asked, round_ ? kRoundBytes * Pick(1, crowded_ ? 1 : 3)
                              : static_cast<int64_t>(1 + random_.Below(800'000)));
    }
    SetOverhead(asked);
    SetOrder(asked);
    SetStarts(asked);
    if (!crowded_ && Chance(30)) SetGroups(asked);
    SetSharing(asked);
    return asked;
  }

  void SetSharing(ScenarioDraft& asked) {
    if (sharing_random_.Below(4) == 0 && !turns_) {
      asked.servers().link_sharing = FirstCome{};
    } else if (turns_ || (sharing_random_.Below(3) == 0 &&
                          asked.servers().servers.value_or(draft_.parameter_servers) == 1 &&
                          asked.worker_groups.empty())) {
      asked.servers().link_sharing = TurnsDraft{
          .bytes = round_ ? kRoundBytes >> sharing_random_.Below(3)
                          : static_cast<int64_t>(20'000 + sharing_random_.Below(300'000))};
    } else {
      asked.servers().link_sharing = EqualShares{};
    }
  }

  // Half of the windows have a quantum, too; half of those are called round-robin, which is the
  // same by another name.
  void SetWindow(ScenarioDraft& asked, int64_t window) {
    asked.servers().multiplexing = WindowDraft{.bytes = window};
    if (turns_random_.Below(2) == 0) return;
    const bool is_robin = turns_random_.Below(2) == 0;
    const int64_t quantum = round_ ? kRoundBytes * static_cast<int64_t>(1 + turns_random_.Below(2))
                                   : static_cast<int64_t>(60'000 + turns_random_.Below(500'000));
    if (is_robin) {
      asked.servers().multiplexing =
          RoundRobinDraft{.window_bytes = window, .quantum_bytes = quantum};
    } else {
      asked.servers().multiplexing = WindowDraft{.bytes = window, .quantum_bytes = quantum};
    }
  }

  // A multiple of 1/1024, which the engine holds exactly.
  double Bandwidth() {
    if (round_) return static_cast<double>(kRoundBandwidth) * Pick(1, 2);
    return static_cast<double>(50'000'000 * int64_t{1024} +
                               static_cast<int64_t>(random_.Below(int64_t{100'000'000} * 1024))) /
           1024;
  }

  // Round ones are fractions of two, which a double holds exactly.
  void SetOverhead(ScenarioDraft& asked) {
    if (!Chance(round_ ? 20 : 40)) return;
    asked.servers().parsing_overhead =
        round_ ? ParsingOverhead{.seconds = Pick(1, 4) * 0x1p-10}
               : ParsingOverhead{.seconds_per_byte = random_.Unit() * 1e-9,
                                 .seconds = random_.Unit() * 1e-3};
  }

  void SetOrder(ScenarioDraft& asked) {
    constexpr TransferOrder kOrders[] = {TransferOrder::kGraph,    TransferOrder::kGraph,
                                         TransferOrder::kRecorded, TransferOrder::kReverse,
                                         TransferOrder::kExplicit, TransferOrder::kRandom};
    asked.servers().transfer_order = kOrders[random_.Below(6)];
    if (asked.servers().transfer_order != TransferOrder::kExplicit) return;
    for (const Operation& operation : draft_.operations) {
      if (IsTransfer(operation.resource) && Chance(70))
        asked.servers().transfer_priorities[operation.name] = Pick(0, 3);
    }
    if (asked.servers().transfer_priorities.empty())
      asked.servers().transfer_order = TransferOrder::kGraph;
  }

  void SetStarts(ScenarioDraft& asked) {
    if (Chance(40)) return;
    for (int w = 0; w < *asked.workers; ++w) {
      asked.start_offsets_ns.push_back(round_ ? kRoundNs * Pick(0, 10)
                                              : static_cast<int64_t>(random_.Below(20'000'000)));
    }
  }

  void SetGroups(ScenarioDraft& asked) {
    for (int left = *asked.workers; left > 0;) {
      const int count = Pick(1, left);
      const double share = round_ ? 1.0 / (1 << Pick(0, 2)) : 0.2 + random_.Unit();
      // A multiple of 1/1024 again.
      const double bandwidth = static_cast<double>(static_cast<int64_t>(
                                   *asked.bandwidth_bytes_per_second * share * 1024)) /
                               1024;
      asked.worker_groups.push_back(
          {.count = count,
           .compute_speed_factor = round_ ? 0.5 * (1 << Pick(0, 2)) : 0.3 + random_.Unit(),
           .bandwidth_bytes_per_second = bandwidth});
      left -= count;
    }
  }

  Random random_;
  Random turns_random_;
  Random sharing_random_;
  const bool sums_;
  const bool turns_;
  const bool applies_sums_;  // where it is shaped as training
  bool round_ = false;
  bool crowded_ = false;  // round, small, few workers: nearly every instant has several ends
  bool training_ = false;
  ProfileDraft draft_;
};

}  // namespace

RandomCase MakeRandomCase(uint64_t seed) { return CaseMaker(seed).Make(); }
RandomCase MakeSummedCase(uint64_t seed) { return CaseMaker(seed, /*sums=*/true).Make(); }
RandomCase MakeTurnsCase(uint64_t seed) {
  return CaseMaker(seed, /*sums=*/seed % 4 == 0, /*turns=*/true).Make();
}

JobGraph EngineJob(const RandomCase& random_case) {
  const Scenario& scenario = random_case.scenario;
  if (scenario.servers().transfer_order != TransferOrder::kReverse &&
      scenario.servers().transfer_order != TransferOrder::kExplicit)
    return JobFor(random_case.profile, scenario);
  const Program program = BuildProgram(random_case.profile, scenario);
  std::vector<int32_t> ranks(Index(program.size()), Ranking::kUnranked);
  for (OpIndex op = 0; op < program.size(); ++op) {
    if (!program.IsTransfer(op)) continue;
    if (scenario.servers().transfer_order == TransferOrder::kReverse)
      ranks[Index(op)] = program.size() - op;
    const auto named = scenario.servers().transfer_priorities.find(
        random_case.profile.operations()[Index(program.source(op))].name);
    if (named != scenario.servers().transfer_priorities.end()) ranks[Index(op)] = named->second;
  }
  return JobFor(random_case.profile, scenario, std::move(ranks));
}

RunOptions EngineOptions(const RandomCase& random_case, uint64_t seed) {
  RunOptions options = OptionsFor(random_case.scenario, random_case.steps_per_worker);
  options.warmup_steps = random_case.warmup_steps;
  options.seed = seed;
  options.replication = seed % 3;
  return options;
}

NaiveOptions NaiveOptionsFor(const RandomCase& random_case, const JobGraph& job,
                             const RunOptions& engine_options) {
  const auto workers = static_cast<size_t>(random_case.scenario.workers);
  const auto recorded = std::make_shared<std::vector<Random>>();
  for (uint64_t w = 0; w < workers; ++w)
    recorded->push_back(Random({engine_options.seed, engine_options.replication, w, 1}));
  const auto orders = std::make_shared<StepRanks>(job, engine_options);
  const size_t step_count = random_case.profile.steps().size();
  return {.steps_per_worker = random_case.steps_per_worker,
          .warmup_steps = random_case.warmup_steps,
          // Both are asked once for each step, in its worker's order.
          .sample =
              [recorded, step_count](size_t w, size_t) {
                return step_count == 1 ? 0 : static_cast<size_t>((*recorded)[w].Below(step_count));
              },
          .ranks =
              [orders, &graph = *job.programs.front()](size_t w, size_t) {
                orders->BeginStep(static_cast<int32_t>(w), 0);
                std::map<size_t, int64_t> ranks;
                for (OpIndex op = 0; op < graph.size(); ++op) {
                  if (graph.IsTransfer(op))
                    ranks[static_cast<size_t>(op)] = orders->RankOf(static_cast<int32_t>(w), op);
                }
                return ranks;
              }};
}

}  // namespace stepcast::testing
