// The engine against the naive simulation in exact rationals, over random jobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/random.h"
#include "core/base/stop_check.h"
#include "core/base/time.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "tests/core/engine/job_builder.h"
#include "tests/core/engine/naive_simulation.h"
#include "tests/core/engine/random_case.h"
#include "tests/support/repetitions.h"

namespace stepcast::testing::naive_comparison_test {
namespace {

// Shards of seeds. Under a sanitizer two show how the code goes through memory; eight take an hour.
constexpr uint64_t kShards = kSanitized ? 2 : 8;
constexpr uint64_t kCasesPerShard = 125;

// The engine rounds each share at most once an event, by a tick of 0.0004 ns, and n workers stretch
// that n-fold.
constexpr double kNanosecondsPerEvent = 0.01;
constexpr double kRateTolerance = 1e-9;
// The estimator alone, on the engine's own ends.
constexpr double kEstimatorTolerance = 1e-12;

// The model itself amplifies small changes (a flow that ends later by some time makes the others on
// its link end later by less or more, and so on from step to step). Where the engine is further off
// than its rounding alone, a change of a tick in each chunk of the exact run must spread about as
// far.
constexpr int kDisturbedRuns = 5;
constexpr double kFarthestOverDisturbed = 10;
// A tick may also turn the order of what ends at one instant, which moves things by far more; the
// engine's rounding has done it in one of these cases.
constexpr double kFarthestAmplifiedNs = 100;
constexpr int kMaxAmplified = 3;
constexpr int kMaxTurned = 1;

// Of one service: worker, step, operation, which one.
using ChunkKey = std::tuple<size_t, size_t, size_t, int>;
using ChunkTimes = std::map<ChunkKey, std::pair<Exact, Exact>>;

double ToDouble(const Exact& value) { return value.convert_to<double>(); }

std::vector<std::vector<Exact>> ExactEnds(const RunResult& result) {
  std::vector<std::vector<Exact>> ends;
  for (const std::vector<Instant>& own : result.step_ends) {
    std::vector<Exact>& exact = ends.emplace_back();
    for (const Instant end : own) exact.push_back(Exact(end.ticks) / kTicksPerNanosecond);
  }
  return ends;
}

ChunkTimes TimesOf(const std::vector<ChunkRecord>& trace) {
  ChunkTimes times;
  for (const ChunkRecord& record : trace) {
    const ChunkKey key(static_cast<size_t>(record.worker), static_cast<size_t>(record.step),
                       static_cast<size_t>(record.op), record.service);
    times[key] = {Exact(record.start.ticks) / kTicksPerNanosecond,
                  Exact(record.end.ticks) / kTicksPerNanosecond};
  }
  return times;
}

ChunkTimes TimesOf(const std::vector<NaiveChunk>& chunks) {
  ChunkTimes times;
  for (const NaiveChunk& chunk : chunks)
    times[{chunk.worker, chunk.step, chunk.operation, chunk.service}] = {chunk.start_ns,
                                                                         chunk.end_ns};
  return times;
}

// The most by which the start or end of any service differs. What only one of the runs has was
// under way at its end.
double Difference(const ChunkTimes& a, const ChunkTimes& b) {
  double difference = 0;
  for (const auto& [key, times] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    difference = std::max(difference, std::abs(ToDouble(Exact(times.first - other->second.first))));
    difference =
        std::max(difference, std::abs(ToDouble(Exact(times.second - other->second.second))));
  }
  return difference;
}

// The distance by which the exact run's services move when every chunk changes by up to a tick.
double SpreadOfTicks(const RandomCase& random_case, const JobGraph& job, const RunOptions& options,
                     const NaiveResult& exact) {
  double spread = 0;
  for (uint64_t run = 0; run < kDisturbedRuns; ++run) {
    NaiveOptions disturbed = NaiveOptionsFor(random_case, job, options);
    const auto random = std::make_shared<Random>(Random({options.seed, run, 11}));
    disturbed.disturbance_ns = [random] {
      return (Exact(random->Below(2001)) / 1000 - 1) / kTicksPerNanosecond;
    };
    const NaiveResult result =
        SimulateNaively(random_case.profile, random_case.scenario, disturbed);
    spread = std::max(spread, Difference(TimesOf(result.chunks), TimesOf(exact.chunks)));
  }
  return spread;
}

// The definition applied to the engine's own step ends.
Exact RateOfOwnEnds(const RunResult& result, const RunOptions& options) {
  std::vector<std::vector<Exact>> completions = ExactEnds(result);
  for (size_t w = 0; w < completions.size(); ++w) {
    completions[w].insert(completions[w].begin(),
                          Exact(options.start_offsets[w].ticks) / kTicksPerNanosecond);
  }
  const std::optional<Exact> rate =
      NaiveStepsPerNanosecond(completions, static_cast<size_t>(options.warmup_steps),
                              static_cast<size_t>(options.steps_per_worker));
  return rate.has_value() ? Exact(*rate * 1'000'000'000) : Exact(0);
}

double Relative(double value, const Exact& exact) { return std::abs(value / ToDouble(exact) - 1); }

// The number of a shard's cases that had what is worth comparing.
struct Coverage {
  int training = 0, any_graph = 0, round = 0, several_servers = 0, placed_anew = 0, windows = 0,
      whole = 0, synchronous = 0, sampled = 0;
  int round_robin = 0, windows_with_quantum = 0, third_services = 0;
  int recorded = 0, random = 0, reverse = 0, by_rank = 0, groups = 0, slow_links = 0, offsets = 0,
      parsing = 0, measured = 0, no_warmup = 0;
  int stopped = 0, rejoined_behind = 0, overtakings = 0, zero_length = 0, ties = 0,
      ties_of_one_worker = 0, ready_together = 0, unequal_rates = 0;
  int released_together = 0, stopped_at_arrival = 0;
  int sums_awaited = 0;
  int uploads_while_downloading = 0, beyond_required = 0, other_roots = 0, downloads_that_wait = 0,
      forward_references = 0;
  int first_come = 0, waits_for_links = 0, arrivals_together = 0, first_come_on_two_links = 0;
  int turns = 0, turns_ended = 0, newcomers_first = 0, waits_at_second = 0;
  int amplified = 0, turned = 0;
};

void CountGraph(const RandomCase& random_case, Coverage& coverage) {
  bool other_root = false;
  bool waiting_download = false;
  bool forward = false;
  const std::vector<Operation>& operations = random_case.profile.operations();
  for (size_t i = 0; i < operations.size(); ++i) {
    const bool is_download = operations[i].resource == Resource::kDownlink;
    other_root = other_root || (!is_download && operations[i].waiting_for.empty());
    waiting_download = waiting_download || (is_download && !operations[i].waiting_for.empty());
    for (const int32_t earlier : operations[i].waiting_for)
      forward = forward || earlier > static_cast<int32_t>(i);
  }
  coverage.other_roots += other_root ? 1 : 0;
  coverage.downloads_that_wait += waiting_download ? 1 : 0;
  coverage.forward_references += forward ? 1 : 0;
}

void CountScenario(const RandomCase& random_case, Coverage& coverage) {
  const Scenario& scenario = random_case.scenario;
  coverage.training += random_case.training_shape ? 1 : 0;
  coverage.any_graph += random_case.training_shape ? 0 : 1;
  coverage.round += random_case.round_numbers ? 1 : 0;
  coverage.several_servers += scenario.servers().servers > 1 ? 1 : 0;
  coverage.placed_anew +=
      scenario.servers().servers != random_case.profile.parameter_servers() ? 1 : 0;
  const Multiplexing& multiplexing = scenario.servers().multiplexing;
  const auto* const window = std::get_if<Window>(&multiplexing);
  coverage.windows += window != nullptr ? 1 : 0;
  coverage.round_robin += std::holds_alternative<RoundRobin>(multiplexing) ? 1 : 0;
  coverage.windows_with_quantum += window != nullptr && window->quantum_bytes > 0 ? 1 : 0;
  const LinkSharing& sharing = scenario.servers().link_sharing;
  const bool first_come = std::holds_alternative<FirstCome>(sharing);
  coverage.first_come += first_come ? 1 : 0;
  coverage.first_come_on_two_links +=
      first_come && (scenario.servers().servers > 1 || !scenario.worker_groups.empty()) ? 1 : 0;
  const bool in_turns = std::holds_alternative<Turns>(sharing);
  coverage.turns += in_turns ? 1 : 0;
  coverage.whole += std::holds_alternative<WholeStream>(multiplexing) ? 1 : 0;
  coverage.synchronous +=
      scenario.servers().synchronization == Synchronization::kSynchronous && scenario.workers > 1
          ? 1
          : 0;
  coverage.sampled += random_case.profile.steps().size() > 1 ? 1 : 0;
  coverage.recorded += scenario.servers().transfer_order == TransferOrder::kRecorded &&
                               random_case.profile.steps().size() > 1
                           ? 1
                           : 0;
  coverage.random += scenario.servers().transfer_order == TransferOrder::kRandom ? 1 : 0;
  coverage.reverse += scenario.servers().transfer_order == TransferOrder::kReverse ? 1 : 0;
  coverage.by_rank += scenario.servers().transfer_order == TransferOrder::kExplicit ? 1 : 0;
  coverage.groups += scenario.worker_groups.size() > 1 ? 1 : 0;
  const bool slow = std::any_of(
      scenario.worker_groups.begin(), scenario.worker_groups.end(), [&](const WorkerGroup& group) {
        return *group.bandwidth_bytes_per_second < scenario.bandwidth_bytes_per_second;
      });
  coverage.slow_links += slow ? 1 : 0;
  coverage.offsets += scenario.start_offsets_ns.empty() ? 0 : 1;
  coverage.parsing += scenario.servers().parsing_overhead == ParsingOverhead{} ? 0 : 1;
  coverage.no_warmup += random_case.warmup_steps == 0 ? 1 : 0;
}

void CountEvents(const NaiveResult& result, Coverage& coverage) {
  const NaiveEvents& events = result.events;
  coverage.measured += result.steps_per_second.has_value() ? 1 : 0;
  coverage.stopped += events.stopped_streams > 0 ? 1 : 0;
  const bool third = std::any_of(result.chunks.begin(), result.chunks.end(),
                                 [](const NaiveChunk& chunk) { return chunk.service >= 2; });
  coverage.third_services += third ? 1 : 0;
  coverage.rejoined_behind += events.rejoined_behind > 0 ? 1 : 0;
  coverage.overtakings += events.overtakings > 0 ? 1 : 0;
  coverage.zero_length += events.zero_length > 0 ? 1 : 0;
  coverage.ties += events.ties > 0 ? 1 : 0;
  coverage.ties_of_one_worker += events.ties_of_one_worker > 0 ? 1 : 0;
  coverage.ready_together += events.ready_together > 0 ? 1 : 0;
  coverage.released_together += events.released_together > 0 ? 1 : 0;
  coverage.stopped_at_arrival += events.stopped_at_arrival > 0 ? 1 : 0;
  coverage.unequal_rates += events.unequal_rates > 0 ? 1 : 0;
  coverage.waits_for_links += events.waits_for_links > 0 ? 1 : 0;
  coverage.turns_ended += events.turns_ended > 0 ? 1 : 0;
  coverage.newcomers_first += events.newcomers_first > 0 ? 1 : 0;
  coverage.waits_at_second += events.waits_at_second > 0 ? 1 : 0;
  coverage.arrivals_together += events.arrivals_together > 0 ? 1 : 0;
  coverage.sums_awaited += events.sums_awaited > 0 ? 1 : 0;
  coverage.uploads_while_downloading += events.uploads_while_downloading > 0 ? 1 : 0;
  coverage.beyond_required += events.beyond_required > 0 ? 1 : 0;
}

// Every kind must occur in so many of a shard's cases, or the comparison says less than it claims.
void ExpectCovered(const Coverage& coverage) {
  EXPECT_GE(coverage.training, 40);
  EXPECT_GE(coverage.any_graph, 40);
  EXPECT_GE(coverage.round, 40);
  EXPECT_GE(coverage.several_servers, 45);
  EXPECT_GE(coverage.placed_anew, 10);
  EXPECT_GE(coverage.windows, 40);
  EXPECT_GE(coverage.round_robin, 10);
  EXPECT_GE(coverage.windows_with_quantum, 10);
  EXPECT_GE(coverage.third_services, 15);
  EXPECT_GE(coverage.whole, 30);
  EXPECT_GE(coverage.synchronous, 25);
  EXPECT_GE(coverage.sampled, 40);
  EXPECT_GE(coverage.recorded, 4);
  EXPECT_GE(coverage.random, 10);
  EXPECT_GE(coverage.reverse, 10);
  EXPECT_GE(coverage.by_rank, 6);
  EXPECT_GE(coverage.groups, 8);
  EXPECT_GE(coverage.slow_links, 10);
  EXPECT_GE(coverage.offsets, 50);
  EXPECT_GE(coverage.parsing, 20);
  EXPECT_GE(coverage.measured, 90);
  EXPECT_GE(coverage.no_warmup, 15);
  EXPECT_GE(coverage.stopped, 30);
  EXPECT_GE(coverage.rejoined_behind, 20);
  EXPECT_GE(coverage.overtakings, 30);
  EXPECT_GE(coverage.zero_length, 80);
  EXPECT_GE(coverage.ties, 50);
  EXPECT_GE(coverage.ties_of_one_worker, 30);
  EXPECT_GE(coverage.ready_together, 60);
  EXPECT_GE(coverage.released_together, 12);
  EXPECT_GE(coverage.stopped_at_arrival, 6);
  EXPECT_GE(coverage.unequal_rates, 5);
  EXPECT_GE(coverage.uploads_while_downloading, 40);
  EXPECT_GE(coverage.beyond_required, 3);
  EXPECT_GE(coverage.other_roots, 80);
  EXPECT_GE(coverage.downloads_that_wait, 30);
  EXPECT_GE(coverage.forward_references, 30);
  EXPECT_GE(coverage.first_come, 20);
  EXPECT_GE(coverage.first_come_on_two_links, 10);
  EXPECT_GE(coverage.waits_for_links, 15);
  EXPECT_GE(coverage.turns, 10);
  EXPECT_GE(coverage.turns_ended, 10);
  EXPECT_GE(coverage.newcomers_first, 4);
  EXPECT_GE(coverage.arrivals_together, 12);
  EXPECT_LE(coverage.amplified, kMaxAmplified);
  EXPECT_LE(coverage.turned, kMaxTurned);
}

void CompareCase(const RandomCase& random_case, uint64_t seed, Coverage& coverage) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  const JobGraph job = EngineJob(random_case);
  RunOptions options = EngineOptions(random_case, seed);
  KeptTrace trace;
  options.trace = &trace;
  const absl::StatusOr<RunResult> engine = Simulate(job, options, NeverStop);
  ASSERT_TRUE(engine.ok()) << engine.status();
  const NaiveResult naive = SimulateNaively(random_case.profile, random_case.scenario,
                                            NaiveOptionsFor(random_case, job, options));
  CountGraph(random_case, coverage);
  CountScenario(random_case, coverage);
  CountEvents(naive, coverage);

  const std::vector<std::vector<Exact>> ends = ExactEnds(*engine);
  double difference = Difference(TimesOf(trace.records), TimesOf(naive.chunks));
  for (size_t w = 0; w < ends.size(); ++w) {
    ASSERT_EQ(ends[w].size(), naive.step_ends_ns[w].size()) << "worker " << w;
    for (size_t n = 0; n < ends[w].size(); ++n)
      difference =
          std::max(difference, std::abs(ToDouble(Exact(ends[w][n] - naive.step_ends_ns[w][n]))));
  }
  ASSERT_EQ(engine->measured, naive.steps_per_second.has_value());
  const double limit_ns = kNanosecondsPerEvent * naive.events.instants;
  const double rate_off =
      engine->measured ? Relative(engine->steps_per_second, *naive.steps_per_second) : 0;
  if (difference > limit_ns || rate_off > kRateTolerance) {
    ++coverage.amplified;
    coverage.turned += difference > kFarthestAmplifiedNs ? 1 : 0;
    EXPECT_LE(difference, kFarthestOverDisturbed * SpreadOfTicks(random_case, job, options, naive));
  }
  if (engine->measured) {
    EXPECT_LE(Relative(engine->steps_per_second, RateOfOwnEnds(*engine, options)),
              kEstimatorTolerance);
  }
}

class NaiveComparisonTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(NaiveComparisonTest, EverythingBeginsAndEndsWhenTheDefinitionSays) {
  Coverage coverage;
  for (uint64_t i = 0; i < kCasesPerShard; ++i) {
    const uint64_t seed = 1 + GetParam() * kCasesPerShard + i;
    CompareCase(MakeRandomCase(seed), seed, coverage);
  }
  ExpectCovered(coverage);
}

// A thousand jobs of servers that sum.
TEST_P(NaiveComparisonTest, SumsAreSentWhenTheUploadsOfAllWorkersAreThere) {
  Coverage coverage;
  for (uint64_t i = 0; i < kCasesPerShard; ++i) {
    const uint64_t seed = 1 + GetParam() * kCasesPerShard + i;
    CompareCase(MakeSummedCase(seed), seed, coverage);
  }
  EXPECT_GE(coverage.sums_awaited, 60);
  EXPECT_GE(coverage.training, 40);
  EXPECT_GE(coverage.any_graph, 40);
  EXPECT_GE(coverage.several_servers, 45);
  EXPECT_GE(coverage.windows, 40);
  EXPECT_GE(coverage.first_come, 20);
  EXPECT_GE(coverage.turns, 8);
  EXPECT_GE(coverage.groups, 8);
  EXPECT_GE(coverage.random, 10);
  EXPECT_GE(coverage.by_rank, 6);
  EXPECT_LE(coverage.amplified, kMaxAmplified);
  EXPECT_LE(coverage.turned, kMaxTurned);
}

// A thousand jobs of links that are served in turns, most of which forward.
TEST_P(NaiveComparisonTest, TurnsGoOnAtTheNextLinkWithoutHoldingUpTheFirst) {
  Coverage coverage;
  for (uint64_t i = 0; i < kCasesPerShard; ++i) {
    const uint64_t seed = 1 + GetParam() * kCasesPerShard + i;
    CompareCase(MakeTurnsCase(seed), seed, coverage);
  }
  EXPECT_EQ(coverage.turns, static_cast<int>(kCasesPerShard));
  EXPECT_GE(coverage.turns_ended, 120);
  EXPECT_GE(coverage.newcomers_first, 40);
  EXPECT_GE(coverage.waits_at_second, 40);
  EXPECT_GE(coverage.several_servers, 45);
  EXPECT_GE(coverage.slow_links, 10);
  EXPECT_GE(coverage.sums_awaited, 10);
  EXPECT_GE(coverage.third_services, 15);
  EXPECT_LE(coverage.amplified, kMaxAmplified);
  EXPECT_LE(coverage.turned, kMaxTurned);
}

INSTANTIATE_TEST_SUITE_P(Seeds, NaiveComparisonTest, ::testing::Range(uint64_t{0}, kShards));

}  // namespace
}  // namespace stepcast::testing::naive_comparison_test
