#include "tests/core/engine/phase_case.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/random.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::testing {

namespace {

constexpr int64_t kPhaseBytes = 125'000;  // a millisecond at 125 MB/s
constexpr int64_t kPhaseNs = 1'000'000;

class PhaseCaseMaker {
 public:
  explicit PhaseCaseMaker(uint64_t seed, int most_servers = 3)
      : seed_(seed), most_servers_(most_servers), random_({seed, 13}) {}

  PhaseCase Make() {
    round_ = Chance(60);
    has_cut_ = Chance(50);
    draft_.batch_size = 1;
    draft_.parameter_servers = Chance(25) ? std::min(Pick(2, 3), most_servers_) : 1;
    draft_.platform.bandwidth_bytes_per_second = 125'000'000;
    AddStep();
    AddRecordedSteps();
    absl::StatusOr<Profile> profile = Profile::Create(draft_);
    if (!profile.ok()) throw std::logic_error(profile.status().ToString());
    const Scenario scenario = MakeScenario(*profile);
    PhaseCase made{.profile = *profile,
                   .scenario = scenario,
                   .options = MakeOptions(scenario),
                   .job = JobFor(*profile, scenario),
                   .has_cut = has_cut_};
    if (replay_) made.job.drawing = StepDrawing::kReplay;
    return made;
  }

 private:
  bool Chance(uint64_t percent) { return random_.Below(100) < percent; }
  // From least to most.
  int Pick(int least, int most) {
    return least + static_cast<int>(random_.Below(static_cast<uint64_t>(most - least) + 1));
  }
  int32_t OneOf(const std::vector<int32_t>& values) { return values[random_.Below(values.size())]; }
  int64_t Bytes() {
    return round_ ? kPhaseBytes * Pick(1, 4) : static_cast<int64_t>(1 + random_.Below(2'000'000));
  }
  int64_t DurationNs() {
    if (Chance(25)) return 0;
    return round_ ? kPhaseNs * Pick(1, 3) : static_cast<int64_t>(random_.Below(5'000'000));
  }

  int32_t Add(Resource resource, std::vector<int32_t> waiting_for, int server = 0) {
    std::sort(waiting_for.begin(), waiting_for.end());
    waiting_for.erase(std::unique(waiting_for.begin(), waiting_for.end()), waiting_for.end());
    const auto index = static_cast<int32_t>(draft_.operations.size());
    draft_.operations.push_back({.name = "op" + std::to_string(index),
                                 .resource = resource,
                                 .parameter_server = server,
                                 .size_bytes = IsTransfer(resource) ? Bytes() : 0,
                                 .waiting_for = std::move(waiting_for),
                                 .parameter = "p" + std::to_string(index)});
    return index;
  }

  void AddStep() {
    std::vector<int32_t> open;  // what later computations may wait for
    for (int i = Pick(1, 8); i > 0; --i)
      open.push_back(Add(Resource::kDownlink, {}, Pick(0, draft_.parameter_servers - 1)));
    const std::vector<int32_t> downloads = open;
    for (int i = Pick(0, 2); i > 0; --i) open.push_back(Add(Resource::kWorker, {}));
    for (int i = Pick(0, 10); i > 0; --i) {
      std::vector<int32_t> waits;
      for (int k = Pick(1, 3); k > 0; --k) waits.push_back(OneOf(open));
      open.push_back(Add(Resource::kWorker, waits));
    }
    std::vector<int32_t> ready = {};
    if (has_cut_) {
      ready.push_back(Add(Resource::kWorker, open));
      for (int i = Pick(0, 6); i > 0; --i) {
        std::vector<int32_t> waits;
        for (int k = Pick(1, 2); k > 0; --k) waits.push_back(OneOf(ready));
        ready.push_back(Add(Resource::kWorker, waits));
      }
    }
    AddUploads(has_cut_ ? ready : open, has_cut_ ? std::vector<int32_t>{} : downloads);
    if (!has_cut_ && Chance(50)) Add(Resource::kWorker, {OneOf(open)});  // no upload waits for it
  }

  void AddUploads(const std::vector<int32_t>& from, const std::vector<int32_t>& all) {
    std::vector<std::vector<int32_t>> sent(static_cast<size_t>(draft_.parameter_servers));
    for (int i = Pick(0, 6); i > 0; --i) {
      const int server = Pick(0, draft_.parameter_servers - 1);
      std::vector<int32_t> waits = all;
      for (int k = Pick(1, 2); k > 0; --k) waits.push_back(OneOf(from));
      const int32_t upload = Add(Resource::kUplink, waits, server);
      std::vector<int32_t>& to_server = sent[static_cast<size_t>(server)];
      to_server.push_back(upload);
      for (int k = Pick(0, 2); k > 0; --k)
        to_server.push_back(Add(Resource::kParameterServer, {OneOf(to_server), upload}, server));
    }
  }

  void AddRecordedSteps() {
    for (int s = Chance(40) ? 1 : Pick(2, 4); s > 0; --s) {
      RecordedStep& step = draft_.steps.emplace_back();
      for (size_t i = 0; i < draft_.operations.size(); ++i) {
        step.start_ns.push_back(0);
        step.end_ns.push_back(DurationNs());
      }
    }
  }

  Scenario MakeScenario(const Profile& profile) {
    // Not the defaults, which are what the made profile may seem to know of its links.
    ScenarioDraft asked{.communication =
                            ParameterServersDraft{.link_sharing = EqualShares{},
                                                  .transfer_order = TransferOrder::kGraph}};
    const bool crowd = Chance(10);
    asked.workers = crowd ? Pick(20, 40) : Pick(1, 7);
    if (Chance(30)) asked.servers().synchronization = Synchronization::kSynchronous;
    if (Chance(50)) {
      const int64_t window =
          round_ ? kPhaseBytes * Pick(1, 2) : static_cast<int64_t>(1 + random_.Below(800'000));
      asked.servers().multiplexing = WindowDraft{.bytes = window};
    }
    if (Chance(20)) {
      asked.servers().parsing_overhead =
          round_ ? ParsingOverhead{.seconds = 0.001}
                 : ParsingOverhead{.seconds_per_byte = random_.Unit() * 1e-9,
                                   .seconds = random_.Unit() * 1e-4};
    }
    for (int w = 0; Chance(50) || w > 0; ++w) {
      if (w == *asked.workers) break;
      asked.start_offsets_ns.push_back(round_ ? kPhaseNs * Pick(0, 6)
                                              : static_cast<int64_t>(random_.Below(20'000'000)));
    }
    if (draft_.parameter_servers > 1 || Chance(30)) SetGroups(asked);
    absl::StatusOr<Scenario> scenario = ResolveScenario(profile, asked);
    if (!scenario.ok()) throw std::logic_error(scenario.status().ToString());
    auto* const window = std::get_if<Window>(&scenario->servers().multiplexing);
    if (window != nullptr && Chance(50))
      window->quantum_bytes = std::max<int64_t>(1, window->bytes / Pick(1, 3));
    return *std::move(scenario);
  }

  // Links wide enough for all servers at once, or wider.
  void SetGroups(ScenarioDraft& asked) {
    for (int left = *asked.workers; left > 0;) {
      const int count = Pick(1, left);
      asked.worker_groups.push_back(
          {.count = count,
           .compute_speed_factor = round_ ? 0.5 * (1 << Pick(0, 2)) : 0.3 + random_.Unit(),
           .bandwidth_bytes_per_second = 125e6 * (draft_.parameter_servers + Pick(0, 1))});
      left -= count;
    }
  }

  RunOptions MakeOptions(const Scenario& scenario) {
    const int steps = Pick(3, 12);
    RunOptions options{.steps_per_worker = steps,
                       .warmup_steps = Pick(0, steps - 2),
                       .seed = seed_,
                       .keep_step_ends = true};
    replay_ = Chance(10);
    if (Chance(15))
      options.until = Instant{} + Nanoseconds(static_cast<int64_t>(1 + random_.Below(200'000'000)));
    options.start_offsets.resize(static_cast<size_t>(scenario.workers));
    for (size_t w = 0; w < scenario.start_offsets_ns.size(); ++w)
      options.start_offsets[w] = Nanoseconds(scenario.start_offsets_ns[w]);
    return options;
  }

  const uint64_t seed_;
  const int most_servers_;
  Random random_;
  bool round_ = false;
  bool has_cut_ = false;
  bool replay_ = false;
  ProfileDraft draft_;
};

}  // namespace

PhaseCase MakePhaseCase(uint64_t seed) { return PhaseCaseMaker(seed).Make(); }

namespace {

// Orders the case's transfers.
void SetOrder(uint64_t seed, PhaseCase& made) {
  Random random({seed, 14});
  const Program& program = *made.job.programs.front();
  constexpr Ranking::Rule kRules[] = {Ranking::Rule::kFixed, Ranking::Rule::kRecorded,
                                      Ranking::Rule::kShuffled};
  Ranking ranking{.rule = kRules[random.Below(3)]};
  const uint64_t ranks = 1 + random.Below(12);         // few: ties
  const uint64_t unranked_percent = random.Below(60);  // of the transfers
  const bool ranks_uploads = random.Below(100) < 70;
  if (ranking.rule != Ranking::Rule::kShuffled) {
    const int32_t rows = ranking.rule == Ranking::Rule::kRecorded ? program.step_count() : 1;
    for (int32_t row = 0; row < rows; ++row) {
      for (OpIndex op = 0; op < program.size(); ++op) {
        const bool upload =
            program.lanes()[program.lane(op)].network == 1 && program.IsTransfer(op);
        const bool has_rank = program.IsTransfer(op) && (ranks_uploads || !upload) &&
                              random.Below(100) >= unranked_percent;
        ranking.ranks.push_back(has_rank ? static_cast<int32_t>(random.Below(ranks))
                                         : Ranking::kUnranked);
      }
    }
  }
  made.job.rankings = {std::make_shared<const Ranking>(std::move(ranking))};
}

}  // namespace

PhaseCase MakeOrderedPhaseCase(uint64_t seed) {
  PhaseCase made = MakePhaseCase(seed);
  SetOrder(seed, made);
  return made;
}

PhaseCase MakeFirstComePhaseCase(uint64_t seed) {
  PhaseCase made = MakePhaseCase(seed);
  if (seed % 2 == 0) SetOrder(seed, made);
  for (NetworkSpec& network : made.job.networks) network.sharing = NetworkSpec::Sharing::kFirstCome;
  return made;
}

PhaseCase MakeNarrowPhaseCase(uint64_t seed) {
  PhaseCase made = MakePhaseCase(seed);
  if (seed % 2 == 0) SetOrder(seed, made);
  Random random({seed, 16});
  constexpr int64_t kUnit = LinkLevel::kUnit;
  for (NetworkSpec& network : made.job.networks) {
    network.worker_capacities.clear();
    for (int32_t worker = 0; worker < made.job.workers(); ++worker) {
      const int64_t capacities[] = {kUnit, kUnit / 2, 3 * kUnit / 2, 4 * kUnit,
                                    1 + static_cast<int64_t>(random.Below(3 * kUnit))};
      network.worker_capacities.push_back(
          std::max(capacities[random.Below(std::size(capacities))], kUnit / 50));
    }
  }
  return made;
}

PhaseCase MakeTurnsPhaseCase(uint64_t seed) {
  PhaseCase made = PhaseCaseMaker(seed, 1).Make();
  if (seed % 2 == 0) SetOrder(seed, made);
  Random random({seed, 15});
  // A chunk takes some milliseconds; round turns are in step with round chunks.
  constexpr int64_t kRoundNs[] = {kPhaseNs / 4, kPhaseNs, 2 * kPhaseNs, 5 * kPhaseNs};
  const int64_t turn_ns =
      random.Below(2) == 0
          ? kRoundNs[random.Below(4)]
          : static_cast<int64_t>(1 + random.Below(uint64_t{1} << (8 + random.Below(16))));
  for (NetworkSpec& network : made.job.networks) {
    network.sharing = NetworkSpec::Sharing::kTurns;
    network.turn = Nanoseconds(turn_ns);
  }
  return made;
}

}  // namespace stepcast::testing
