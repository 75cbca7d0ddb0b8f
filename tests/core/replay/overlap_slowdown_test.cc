// The slow-down of computation beside collectives: of simulated jobs that have one, and against a
// finder that does not hurry.
#include "core/replay/overlap_slowdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/distributions.h"
#include "core/base/index.h"
#include "core/base/random.h"
#include "core/communication/job.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast::overlap_slowdown_test {
namespace {

constexpr int32_t kComputations = 40;

// Computations in a row of about a quarter of a millisecond each; after some of them a gradient
// that all workers send, for about three. Steps are slow or fast as a whole: who is slow comes
// last, and has a collective beside it where others were alone.
Profile NoisyProfile(uint64_t seed) {
  Random random({seed, 7});
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  for (int32_t i = 0; i < kComputations; ++i) {
    Operation compute{.name = absl::StrCat("compute ", i), .resource = Resource::kWorker};
    if (i > 0) compute.waiting_for = {i - 1};
    draft.operations.push_back(std::move(compute));
  }
  const std::vector<int32_t> sent_after = {13, 29};
  for (const int32_t after : sent_after) {
    draft.operations.push_back({.name = absl::StrCat("gradient ", after),
                                .resource = Resource::kCollective,
                                .size_bytes = 2'000'000,
                                .waiting_for = {after},
                                .collective = Collective::kAllReduce});
  }
  for (int step = 0; step < 500; ++step) {
    RecordedStep& recorded = draft.steps.emplace_back();
    const int64_t slow = 70 + static_cast<int64_t>(random.Below(60));
    int64_t at = 0;
    for (int32_t i = 0; i < kComputations; ++i) {
      recorded.start_ns.push_back(at);
      at += slow * (2'000 + static_cast<int64_t>(random.Below(1'000)));
      recorded.end_ns.push_back(at);
    }
    for (const int32_t after : sent_after) {
      recorded.start_ns.push_back(recorded.end_ns[Index(after)]);
      recorded.end_ns.push_back(recorded.end_ns[Index(after)]);
    }
  }
  return Profile::Create(std::move(draft)).value();
}

Execution Executed(const Profile& profile, double slowdown, uint64_t seed, int32_t steps = 25) {
  AllReduceDraft how{.latency_seconds = 0};
  if (slowdown > 1) how.overlap_slowdown = slowdown;
  const Scenario scenario = ResolveScenario(profile, {.workers = 4, .communication = how}).value();
  const JobProgram program = BuildJobProgram(profile, scenario, NeverStop).value();
  const JobGraph job = JobOf(program, nullptr, scenario);
  RunOptions options{.steps_per_worker = steps, .start_offsets = std::vector<Span>(4)};
  options.seed = seed;
  return Execute(job, options, NeverStop).value();
}

TEST(OverlapSlowdownTest, HoldsTheSlowdownThatWasSimulated) {
  constexpr int kJobs = 120;
  for (const double truth : {1.0, 1.3, 2.0}) {
    SCOPED_TRACE(truth);
    int covered = 0;
    double mean = 0;
    for (int seed = 0; seed < kJobs; ++seed) {
      const auto number = static_cast<uint64_t>(seed);
      const auto found =
          FindOverlapSlowdown(Executed(NoisyProfile(number), truth, number), NeverStop).value();
      ASSERT_TRUE(found.has_value()) << seed;
      EXPECT_EQ(found->interval.level, 0.95);
      EXPECT_GT(found->operations, 8);
      EXPECT_GT(found->runs_alone, 100);
      EXPECT_GT(found->runs_beside, 100);
      if (found->interval.lower <= truth && truth <= found->interval.upper) ++covered;
      mean += found->slowdown / kJobs;
    }
    std::cout << "slow-down " << truth << ": mean " << mean << ", " << covered << " of " << kJobs
              << " intervals hold it\n";
    EXPECT_NEAR(mean, truth, 0.01 * truth);
    EXPECT_GE(covered, 0.88 * kJobs);
  }
}

using Column = std::vector<double>;

// What is left of a column when all that the others can explain is taken away: Gram and Schmidt.
Column Unexplained(Column column, const std::vector<Column>& others, const Column& weights) {
  const auto product = [&](const Column& a, const Column& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += weights[i] * a[i] * b[i];
    return sum;
  };
  const auto take_away = [&](const Column& part, Column& from) {
    const double share = product(part, from) / product(part, part);
    for (size_t i = 0; i < from.size(); ++i) from[i] -= share * part[i];
  };
  std::vector<Column> orthogonal;
  for (Column other : others) {
    const double before = product(other, other);
    for (int twice = 0; twice < 2; ++twice) {
      for (const Column& part : orthogonal) take_away(part, other);
    }
    if (product(other, other) > 1e-12 * before) orthogonal.push_back(std::move(other));
  }
  for (int twice = 0; twice < 2; ++twice) {
    for (const Column& part : orthogonal) take_away(part, column);
  }
  return column;
}

// Written down as the header says it: a column for each effect.
std::optional<OverlapSlowdown> Naive(const Execution& execution) {
  using Cell = std::pair<int32_t, OpIndex>;
  std::map<Cell, Span> longest;
  const auto counts = [&](const ExecutedOperation& each) {
    return !each.is_joint && each.kind == PathKind::kComputation && each.start < each.end &&
           each.step >= execution.warmup;
  };
  for (const ExecutedOperation& each : execution.operations) {
    if (!counts(each)) continue;
    Span& length = longest[{each.worker, each.op}];
    length = std::max(length, each.end - each.start);
  }
  std::vector<const ExecutedOperation*> runs;
  Column beside;
  Column logs;
  for (const ExecutedOperation& each : execution.operations) {
    if (!counts(each)) continue;
    const Instant end = each.start + longest[{each.worker, each.op}];
    // The instants from which something may differ.
    std::vector<Instant> at{each.start};
    for (const ExecutedOperation& other : execution.operations) {
      if (!other.is_joint || other.worker != each.worker || other.start >= other.end) continue;
      for (const Instant change : {other.start, other.end}) {
        if (change > each.start && change < end) at.push_back(change);
      }
    }
    const auto is_beside = [&](Instant now) {
      return std::any_of(execution.operations.begin(), execution.operations.end(),
                         [&](const ExecutedOperation& other) {
                           return other.is_joint && other.worker == each.worker &&
                                  other.start <= now && now < other.end;
                         });
    };
    const auto times = std::count_if(at.begin(), at.end(), is_beside);
    if (times != 0 && times != static_cast<int64_t>(at.size())) continue;
    runs.push_back(&each);
    beside.push_back(times == 0 ? 0 : 1);
    logs.push_back(std::log(ToSeconds(each.end - each.start)));
  }
  Column weights;
  std::vector<Column> effects;
  std::map<Cell, std::pair<double, double>> seconds;
  for (size_t i = 0; i < runs.size(); ++i) {
    auto& [sum, count] = seconds[{runs[i]->worker, runs[i]->op}];
    sum += std::exp(logs[i]);
    count += 1;
  }
  for (const ExecutedOperation* const run : runs) {
    const auto& [sum, count] = seconds[{run->worker, run->op}];
    weights.push_back(sum / count);
  }
  const auto add_effects = [&](auto key_of) {
    std::map<Cell, Column> columns;
    for (size_t i = 0; i < runs.size(); ++i)
      columns.try_emplace(key_of(*runs[i]), Column(runs.size())).first->second[i] = 1;
    for (const auto& entry : columns) effects.push_back(entry.second);
  };
  add_effects([](const ExecutedOperation& run) { return Cell{run.worker, run.op}; });
  add_effects([](const ExecutedOperation& run) { return Cell{run.worker, run.step}; });
  const Column x = Unexplained(beside, effects, weights);
  const Column y = Unexplained(logs, effects, weights);
  double all = 0;
  double squares = 0;
  double product = 0;
  std::map<int32_t, double> of_step;
  for (size_t i = 0; i < runs.size(); ++i) {
    all += weights[i];
    squares += weights[i] * x[i] * x[i];
    product += weights[i] * x[i] * y[i];
    of_step[runs[i]->step] += weights[i] * x[i] * x[i];
  }
  int steps = 0;
  for (const auto& entry : of_step) steps += entry.second > 1e-9 * all ? 1 : 0;
  if (squares <= 1e-9 * all || steps < kMinOverlapSteps) return std::nullopt;
  const double mean = product / squares;
  std::map<int32_t, double> scores;
  for (size_t i = 0; i < runs.size(); ++i)
    scores[runs[i]->step] += weights[i] * x[i] * (y[i] - mean * x[i]);
  double sum = 0;
  for (const auto& entry : scores) sum += entry.second * entry.second;
  const double error = std::sqrt(sum * steps / (steps - 1)) / squares;
  const double half = error * StudentTQuantile(steps - 1, 0.95);
  return OverlapSlowdown{
      .slowdown = std::exp(mean),
      .interval = {.lower = std::exp(mean - half), .upper = std::exp(mean + half)}};
}

// Operations wherever chance puts them, also several collectives at once.
Execution RandomExecution(uint64_t seed) {
  Random random({seed, 33});
  Execution execution{.workers = 1 + static_cast<int32_t>(random.Below(3)),
                      .steps = 1 + static_cast<int32_t>(random.Below(12)),
                      .warmup = 0};
  if (execution.steps > 8) execution.warmup = 2;
  const auto ops = static_cast<int32_t>(3 + random.Below(5));
  for (int32_t worker = 0; worker < execution.workers; ++worker) {
    for (int32_t step = 0; step < execution.steps; ++step) {
      for (OpIndex op = 0; op < ops; ++op) {
        const Instant start = Instant{} + Microseconds(int64_t{100} * step) +
                              Microseconds(static_cast<int64_t>(random.Below(100)));
        const bool is_joint = op < 2;
        const uint64_t most = is_joint ? 80 : 12;
        execution.operations.push_back(
            {.worker = worker,
             .op = op,
             .step = step,
             .kind = is_joint ? PathKind::kCommunication
                              : (op == 2 && random.Below(4) == 0 ? PathKind::kServer
                                                                 : PathKind::kComputation),
             .is_joint = is_joint,
             .start = start,
             .end = start + Microseconds(static_cast<int64_t>(random.Below(most)))});
      }
    }
  }
  return execution;
}

TEST(OverlapSlowdownTest, FindsWhatANaiveFinderFinds) {
  int told = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const Execution execution = RandomExecution(seed);
    const auto found = FindOverlapSlowdown(execution, NeverStop).value();
    const std::optional<OverlapSlowdown> naive = Naive(execution);
    ASSERT_EQ(found.has_value(), naive.has_value());
    if (!found.has_value()) continue;
    ++told;
    EXPECT_NEAR(std::log(found->slowdown), std::log(naive->slowdown), 1e-9);
    EXPECT_NEAR(std::log(found->interval.lower), std::log(naive->interval.lower), 1e-7);
    EXPECT_NEAR(std::log(found->interval.upper), std::log(naive->interval.upper), 1e-7);
  }
  EXPECT_GT(told, 100);
  EXPECT_LT(told, 490);
}

TEST(OverlapSlowdownTest, TellsNothingFromTooFewStepsOrOneWay) {
  const Profile profile = NoisyProfile(1);
  EXPECT_TRUE(FindOverlapSlowdown(Executed(profile, 1.5, 1, 5), NeverStop)->has_value());
  EXPECT_FALSE(FindOverlapSlowdown(Executed(profile, 1.5, 1, 4), NeverStop)->has_value());
  Execution alone = Executed(profile, 1.5, 1);
  std::erase_if(alone.operations, [](const ExecutedOperation& each) { return each.is_joint; });
  EXPECT_FALSE(FindOverlapSlowdown(alone, NeverStop)->has_value());
}

TEST(OverlapSlowdownTest, StopsWhenTold) {
  EXPECT_TRUE(absl::IsCancelled(FindOverlapSlowdown(Executed(NoisyProfile(1), 1, 1), [] {
                                  return absl::CancelledError("enough");
                                }).status()));
}

}  // namespace
}  // namespace stepcast::overlap_slowdown_test
