// The slow-down of collectives beside computation: of simulated jobs that have one, and against a
// finder that does not hurry.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/distributions.h"
#include "core/base/index.h"
#include "core/base/random.h"
#include "core/model/multi_rank_recording.h"
#include "core/model/profile.h"
#include "core/replay/overlap_slowdown.h"
#include "core/replay/recorded_job.h"

namespace stepcast::collective_slowdown_test {
namespace {

// Workers that compute a few operations one after the other, send a gradient after some of them,
// one at a time, and update when all were sent.
struct Truth {
  double collective_slowdown = 1;
  double overlap_slowdown = 1;
  double noise = 0.05;  // of a collective's time, as a share of it
  int32_t workers = 3;
  int32_t steps = 30;
  int32_t computations = 24;
  std::vector<int32_t> sent_after = {5, 11, 16, 19};
};

double Noise(Random& random, double share) { return std::exp(share * random.Normal()); }

// One step as it happens, in nanoseconds from any instant.
struct StepTimes {
  std::vector<std::vector<double>> start;  // by worker: computations, then the update
  std::vector<std::vector<double>> end;
  std::vector<std::vector<double>> run_start;  // by collective and worker
  std::vector<double> run_end;                 // by collective
};

// The obvious simulation of one step: everything goes on at its rate until something ends.
StepTimes Run(const Truth& truth, const std::vector<double>& begins,
              const std::vector<std::vector<double>>& computing,
              const std::vector<double>& sending) {
  const size_t workers = begins.size();
  const size_t ops = computing.front().size();
  StepTimes times{.start = computing, .end = computing};
  std::vector<size_t> op(workers, 0);
  std::vector<double> left(workers, -1);  // below 0: not begun
  size_t collective = 0;
  double collective_left = -1;
  double now = *std::min_element(begins.begin(), begins.end());
  while (true) {
    // All that can begin does.
    for (size_t w = 0; w < workers; ++w) {
      const bool waits = op[w] + 1 == ops && collective < sending.size();
      if (op[w] == ops || left[w] >= 0 || begins[w] > now || waits) continue;
      left[w] = computing[w][op[w]];
      times.start[w][op[w]] = now;
    }
    if (collective < sending.size() && collective_left < 0) {
      const auto after = Index(truth.sent_after[collective]);
      if (std::all_of(op.begin(), op.end(), [&](size_t at) { return at > after; })) {
        collective_left = sending[collective];
        std::vector<double>& starts = times.run_start.emplace_back();
        for (size_t w = 0; w < workers; ++w) {
          const double free = collective == 0 ? 0 : times.run_end.back();
          starts.push_back(std::max(free, times.end[w][after]));
        }
      }
    }
    const bool sends = collective_left >= 0;
    const bool computes = std::any_of(left.begin(), left.end(), [](double l) { return l >= 0; });
    const double compute_time = sends ? truth.overlap_slowdown : 1;
    const double send_time = computes ? truth.collective_slowdown : 1;
    double until = INFINITY;
    for (size_t w = 0; w < workers; ++w) {
      if (left[w] >= 0) until = std::min(until, now + left[w] * compute_time);
      if (begins[w] > now) until = std::min(until, begins[w]);
    }
    if (sends) until = std::min(until, now + collective_left * send_time);
    if (std::isinf(until)) return times;
    const double elapsed = until - now;
    constexpr double kDone = 1e-6;
    for (size_t w = 0; w < workers; ++w) {
      if (left[w] < 0) continue;
      left[w] -= elapsed / compute_time;
      if (left[w] > kDone) continue;
      left[w] = -1;
      times.end[w][op[w]++] = until;
    }
    if (sends) {
      collective_left -= elapsed / send_time;
      if (collective_left <= kDone) {
        collective_left = -1;
        times.run_end.push_back(until);
        ++collective;
      }
    }
    now = until;
  }
}

// Steps are slow or fast as a whole, collectives and all, and a worker is slow in some of them;
// what is computed at the end of a step, which nothing is sent of, takes now long and now hardly
// any time.
Profile Recorded(const Truth& truth, uint64_t seed) {
  Random random({seed, 8});
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  for (int32_t i = 0; i < truth.computations; ++i) {
    Operation compute{.name = absl::StrCat("compute ", i), .resource = Resource::kWorker};
    if (i > 0) compute.waiting_for = {i - 1};
    draft.operations.push_back(std::move(compute));
  }
  JobRecording& recording = draft.recording.emplace();
  Operation update{.name = "update", .resource = Resource::kWorker};
  update.waiting_for.push_back(truth.computations - 1);
  for (const int32_t after : truth.sent_after) {
    update.waiting_for.push_back(static_cast<int32_t>(draft.operations.size()));
    draft.operations.push_back({.name = absl::StrCat("gradient ", after),
                                .resource = Resource::kCollective,
                                .size_bytes = 2'000'000,
                                .waiting_for = {after},
                                .collective = Collective::kAllReduce});
    recording.collectives.push_back({.kind = Collective::kAllReduce, .size_bytes = 2'000'000});
  }
  draft.operations.push_back(update);
  recording.workers.resize(Index(truth.workers));
  std::vector<double> begins(Index(truth.workers), 1e9);
  const size_t computations = Index(truth.computations);
  for (int32_t step = 0; step < truth.steps; ++step) {
    const double slow = Noise(random, 0.15);
    const double tail = 1.2 * random.Unit();
    std::vector<std::vector<double>> computing(Index(truth.workers));
    for (std::vector<double>& of_worker : computing) {
      const double straggles = random.Below(3) == 0 ? 1 + random.Unit() : 1;
      for (size_t i = 0; i <= computations; ++i) {
        const bool at_the_end = i<computations&& static_cast<int32_t>(i)> truth.sent_after.back();
        of_worker.push_back(slow * straggles * (at_the_end ? tail : 1) * 250e3 *
                            Noise(random, 0.05));
      }
    }
    std::vector<double> sending;
    for (size_t i = 0; i < truth.sent_after.size(); ++i)
      sending.push_back(slow * 900e3 * (1 + 0.2 * static_cast<double>(i % 3)) *
                        Noise(random, truth.noise));
    const StepTimes times = Run(truth, begins, computing, sending);
    for (size_t w = 0; w < begins.size(); ++w) {
      WorkerRecording& worker = recording.workers[w];
      worker.name = absl::StrCat("rank ", w);
      const auto clock = static_cast<int64_t>(w) * 7'000'000'000;  // ahead of the first one's
      const auto begin_ns = std::llround(begins[w]);
      RecordedStep recorded;
      const auto add = [&](double start, double end) {
        recorded.start_ns.push_back(std::llround(start) - begin_ns);
        recorded.end_ns.push_back(std::llround(end) - begin_ns);
      };
      for (size_t i = 0; i < computations; ++i) add(times.start[w][i], times.end[w][i]);
      for (size_t i = 0; i < sending.size(); ++i) {
        add(times.run_start[i][w], times.run_end[i]);
        worker.runs.push_back({.start_ns = std::llround(times.run_start[i][w]) + clock,
                               .end_ns = std::llround(times.run_end[i]) + clock});
      }
      add(times.start[w][computations], times.end[w][computations]);
      (w == 0 ? draft.steps : worker.steps).push_back(recorded);
      worker.step_begins_ns.push_back(begin_ns + clock);
      begins[w] = times.end[w][computations];
      worker.step_ends_ns.push_back(std::llround(begins[w]) + clock);
    }
  }
  return Profile::Create(std::move(draft)).value();
}

std::vector<NodeClock> ClocksOf(const Profile& profile) {
  std::vector<NodeClock> clocks;
  for (int32_t w = 0; w < profile.recorded_workers(); ++w) {
    clocks.emplace_back();
    clocks.back().offset_ns = -int64_t{7'000'000'000} * w;
  }
  return clocks;
}

RecordedJob JobOfRecorded(const Profile& profile) {
  const MultiRankRecording recording = RecordingOf(profile, NeverStop).value();
  return RecordedJobOf(recording, ClocksOf(profile), NeverStop).value();
}

Execution ReplayOf(const RecordedJob& made) {
  return Execute(made.job, OptionsToFollow(made), NeverStop).value();
}

std::optional<CollectiveSlowdown> Found(const Profile& profile) {
  const RecordedJob made = JobOfRecorded(profile);
  return FindCollectiveSlowdown(profile, made.program.collectives, ReplayOf(made), NeverStop)
      .value();
}

std::vector<int64_t> Beside(const Profile& profile) {
  return ComputingBesideCollectives(profile, JobOfRecorded(profile).program.collectives, NeverStop)
      .value();
}

// A run with its expected share of computation beside it, by step and collective.
struct NaiveRun {
  double alone = 0;
  double beside = 0;
  double expected = 0;
};

// Nanosecond by nanosecond would take too long: between any two instants at which something begins
// or ends on some worker, all counted from the collective's end there.
std::vector<NaiveRun> NaiveRuns(const Profile& profile, const Execution& replay) {
  const JobRecording& recording = *profile.recording();
  const size_t collectives = recording.collectives.size();
  const auto computes = [&](size_t worker, int64_t at) {
    const std::vector<RecordedStep>& steps = profile.steps_of(static_cast<int32_t>(worker));
    for (size_t step = 0; step < steps.size(); ++step) {
      const int64_t in_step = at - recording.workers[worker].step_begins_ns[step];
      for (size_t i = 0; i < profile.operations().size(); ++i) {
        if (profile.operations()[i].resource == Resource::kWorker &&
            steps[step].start_ns[i] <= in_step && in_step < steps[step].end_ns[i])
          return true;
      }
    }
    return false;
  };
  std::map<OpIndex, size_t> place;  // of the joint operations
  for (const ExecutedOperation& each : replay.operations) {
    if (each.is_joint) place.try_emplace(each.op, 0);
  }
  size_t next = 0;
  for (auto& [op, at] : place) at = next++;
  std::vector<NaiveRun> runs(profile.steps().size() * collectives);
  for (size_t step = 0; step < profile.steps().size(); ++step) {
    for (size_t c = 0; c < collectives; ++c) {
      NaiveRun& run = runs[step * collectives + c];
      int64_t length = INT64_MAX;
      for (const WorkerRecording& worker : recording.workers) {
        const CollectiveRun& each = worker.runs[step * collectives + c];
        length = std::min(length, each.end_ns - each.start_ns);
      }
      std::vector<int64_t> changes = {-length, 0};
      for (size_t w = 0; w < recording.workers.size(); ++w) {
        const int64_t end = recording.run(step, c, w).end_ns;
        const std::vector<RecordedStep>& steps = profile.steps_of(static_cast<int32_t>(w));
        for (size_t s = 0; s < steps.size(); ++s) {
          const int64_t begin = recording.workers[w].step_begins_ns[s];
          for (size_t i = 0; i < profile.operations().size(); ++i) {
            for (const int64_t at : {begin + steps[s].start_ns[i], begin + steps[s].end_ns[i]}) {
              if (at - end > -length && at < end) changes.push_back(at - end);
            }
          }
        }
      }
      std::sort(changes.begin(), changes.end());
      for (size_t i = 1; i < changes.size(); ++i) {
        bool any = false;
        for (size_t w = 0; w < recording.workers.size(); ++w)
          any = any || computes(w, recording.run(step, c, w).end_ns + changes[i - 1]);
        (any ? run.beside : run.alone) += static_cast<double>(changes[i] - changes[i - 1]) * 1e-9;
      }
    }
  }
  for (const ExecutedOperation& each : replay.operations) {
    if (!each.is_joint || each.worker != 0) continue;
    std::vector<Instant> changes = {each.start, each.end};
    for (const ExecutedOperation& other : replay.operations) {
      if (other.is_joint || other.end <= each.start || other.start >= each.end) continue;
      changes.push_back(std::max(other.start, each.start));
      changes.push_back(std::min(other.end, each.end));
    }
    std::sort(changes.begin(), changes.end());
    double beside = 0;
    for (size_t i = 1; i < changes.size(); ++i) {
      const bool any = std::any_of(
          replay.operations.begin(), replay.operations.end(), [&](const ExecutedOperation& other) {
            return !other.is_joint && other.start <= changes[i - 1] && changes[i - 1] < other.end;
          });
      if (any) beside += ToSeconds(changes[i] - changes[i - 1]);
    }
    if (each.end > each.start)
      runs[Index(each.step) * collectives + place[each.op]].expected =
          beside / ToSeconds(each.end - each.start);
  }
  return runs;
}

// The rest of values by step and collective, with a weight each, when an effect of each
// collective and one of each step are taken away: by turns, until nothing changes.
std::vector<double> Unexplained(std::vector<double> values, const std::vector<double>& weights) {
  const size_t collectives = weights.size();
  for (int turn = 0; turn < 20; ++turn) {
    for (int of_steps = 0; of_steps < 2; ++of_steps) {
      std::vector<std::pair<double, double>> sums(values.size());
      const auto group = [&](size_t i) {
        return of_steps == 1 ? i / collectives : i % collectives;
      };
      for (size_t i = 0; i < values.size(); ++i) {
        sums[group(i)].first += weights[i % collectives] * values[i];
        sums[group(i)].second += weights[i % collectives];
      }
      for (size_t i = 0; i < values.size(); ++i)
        values[i] -= sums[group(i)].first / sums[group(i)].second;
    }
  }
  return values;
}

// Student's t of the steps' products at a slow-down, as the header says.
double StudentOf(const std::vector<NaiveRun>& runs, size_t collectives, double slowdown) {
  std::vector<double> weights(collectives);
  std::vector<double> expected;
  std::vector<double> works;
  for (size_t i = 0; i < runs.size(); ++i) {
    weights[i % collectives] += runs[i].alone + runs[i].beside;
    expected.push_back(runs[i].expected);
    works.push_back(std::log(runs[i].alone + runs[i].beside / slowdown));
  }
  expected = Unexplained(std::move(expected), weights);
  works = Unexplained(std::move(works), weights);
  std::vector<double> products(runs.size() / collectives);
  for (size_t i = 0; i < runs.size(); ++i)
    products[i / collectives] += weights[i % collectives] * expected[i] * works[i];
  double mean = 0;
  for (const double product : products) mean += product / static_cast<double>(products.size());
  double squares = 0;
  for (const double product : products) squares += (product - mean) * (product - mean);
  const auto n = static_cast<double>(products.size());
  return mean / std::sqrt(squares / n / (n - 1));
}

// With a collective's own share of computation as what is expected beside it.
double ByOwnShare(const Profile& profile) {
  const size_t collectives = profile.recording()->collectives.size();
  const std::vector<int64_t> beside = Beside(profile);
  std::vector<NaiveRun> runs;
  for (size_t i = 0; i < beside.size(); ++i) {
    const auto all =
        static_cast<double>(profile.recording()->ShortestNsOf(i / collectives, i % collectives));
    const auto part = static_cast<double>(beside[i]);
    runs.push_back({.alone = all - part, .beside = part, .expected = part / all});
  }
  double low = std::log(0.01);
  double high = std::log(100);
  for (int i = 0; i < 25; ++i) {
    const double middle = (low + high) / 2;
    (StudentOf(runs, collectives, std::exp(middle)) > 0 ? low : high) = middle;
  }
  return std::exp(low);
}

// Of the logarithms, for with much noise the mean of the slow-downs is above their middle.
void ExpectHeld(const Truth& truth, double most_off) {
  constexpr int kJobs = 200;
  constexpr int kByOwnShare = 40;
  int told = 0;
  int covered = 0;
  double mean = 0;
  double width = 0;
  double by_own_share = 0;
  for (uint64_t seed = 0; seed < kJobs; ++seed) {
    const Profile profile = Recorded(truth, seed);
    if (seed < kByOwnShare) by_own_share += std::log(ByOwnShare(profile)) / kByOwnShare;
    const std::optional<CollectiveSlowdown> found = Found(profile);
    if (!found.has_value()) continue;
    ++told;
    EXPECT_EQ(found->interval.level, 0.95);
    EXPECT_EQ(found->collectives, 4);
    EXPECT_EQ(found->runs, 4 * truth.steps);
    EXPECT_GT(found->computing_fraction, 0.5);
    EXPECT_LT(found->computing_fraction, 1);
    const double is = truth.collective_slowdown;
    if (found->interval.lower <= is && is <= found->interval.upper) ++covered;
    mean += std::log(found->slowdown);
    width += std::log(found->interval.upper / found->interval.lower) / 2;
  }
  mean = std::exp(mean / told);
  by_own_share = std::exp(by_own_share);
  std::cout << "noise " << truth.noise << ", overlap slow-down " << truth.overlap_slowdown
            << ", collectives' " << truth.collective_slowdown << ": mean " << mean
            << ", give or take " << width / told << ", " << covered << " of " << told
            << " intervals hold it; by their own share " << by_own_share << "\n";
  EXPECT_NEAR(std::log(mean), std::log(truth.collective_slowdown), most_off);
  EXPECT_GE(told, 0.97 * kJobs);
  EXPECT_GE(covered, 0.91 * told);
}

TEST(CollectiveSlowdownTest, HoldsTheSlowdownThatWasSimulated) {
  for (const double overlap : {1.0, 1.3}) {
    for (const double slowdown : {1.0, 1.3, 2.0}) {
      SCOPED_TRACE(slowdown);
      ExpectHeld({.collective_slowdown = slowdown, .overlap_slowdown = overlap}, 0.02);
    }
  }
}

// A collective that takes long for another reason has less of its time beside computation, which
// would look as if that made it faster.
TEST(CollectiveSlowdownTest, HoldsItWhereCollectivesTakeLongForOtherReasons) {
  for (const double slowdown : {1.0, 1.3, 2.0}) {
    SCOPED_TRACE(slowdown);
    ExpectHeld({.collective_slowdown = slowdown, .noise = 0.25, .steps = 80}, 0.03);
  }
}

TEST(CollectiveSlowdownTest, FindsWhatANaiveFinderFinds) {
  int told = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 9});
    Truth truth{.collective_slowdown = 1 + 2 * random.Unit(),
                .overlap_slowdown = 1 + random.Unit(),
                .noise = 0.3 * random.Unit(),
                .workers = 2 + static_cast<int32_t>(random.Below(3)),
                .steps = 2 + static_cast<int32_t>(random.Below(30)),
                .computations = 4,
                .sent_after = {}};
    for (int32_t i = 0; i < truth.computations; ++i) {
      if (random.Below(3) > 0 || i + 1 == truth.computations) truth.sent_after.push_back(i);
    }
    const size_t collectives = truth.sent_after.size();
    const Profile profile = Recorded(truth, seed);
    const RecordedJob made = JobOfRecorded(profile);
    const Execution replay = ReplayOf(made);
    const std::vector<NaiveRun> runs = NaiveRuns(profile, replay);
    const std::vector<int64_t> beside = Beside(profile);
    ASSERT_EQ(beside.size(), runs.size());
    for (size_t i = 0; i < runs.size(); ++i)
      ASSERT_NEAR(static_cast<double>(beside[i]) * 1e-9, runs[i].beside, 1e-12) << i;
    const auto found =
        FindCollectiveSlowdown(profile, made.program.collectives, replay, NeverStop).value();
    if (!found.has_value()) continue;
    ++told;
    // As many steps as if all that tell anything told as much.
    std::vector<double> weights(collectives);
    std::vector<double> expected;
    for (size_t i = 0; i < runs.size(); ++i) {
      weights[i % collectives] += runs[i].alone + runs[i].beside;
      expected.push_back(runs[i].expected);
    }
    expected = Unexplained(std::move(expected), weights);
    std::vector<double> tells(runs.size() / collectives);
    for (size_t i = 0; i < runs.size(); ++i)
      tells[i / collectives] += weights[i % collectives] * expected[i] * expected[i];
    double sum = 0;
    double squares = 0;
    for (const double each : tells) {
      sum += each;
      squares += each * each;
    }
    const int steps = static_cast<int>(sum * sum / squares + 1e-9);
    EXPECT_GE(steps, kMinContendingSteps);
    const double quantile = StudentTQuantile(steps - 1, 0.95);
    EXPECT_NEAR(StudentOf(runs, collectives, found->slowdown), 0, 1e-6);
    EXPECT_NEAR(StudentOf(runs, collectives, found->interval.lower), quantile, 1e-6 * quantile);
    EXPECT_NEAR(StudentOf(runs, collectives, found->interval.upper), -quantile, 1e-6 * quantile);
  }
  EXPECT_GT(told, 20);
  EXPECT_LT(told, 95);
}

// A clock of a worker that is wrong by more than a step moves what it computed, and when its
// collectives ended, alike.
TEST(CollectiveSlowdownTest, IsMeasuredOnEachWorkersOwnClock) {
  const Profile profile = Recorded({.collective_slowdown = 1.5}, 4);
  ProfileDraft draft = profile.content();
  WorkerRecording& last = draft.recording->workers.back();
  for (int64_t& at : last.step_begins_ns) at += 123'456'789;
  for (int64_t& at : last.step_ends_ns) at += 123'456'789;
  for (CollectiveRun& run : last.runs) {
    run.start_ns += 123'456'789;
    run.end_ns += 123'456'789;
  }
  const Profile moved = Profile::Create(std::move(draft)).value();
  EXPECT_EQ(Beside(moved), Beside(profile));
}

// As an importer stores steps: a worker's own, as if no collective took it any time.
TEST(CollectiveSlowdownTest, StepsMayBeWithoutTheirWaits) {
  const Profile profile = Recorded(
      {.collective_slowdown = 1.5, .overlap_slowdown = 1.2, .sent_after = {5, 11, 16, 23}}, 4);
  ProfileDraft draft = profile.content();
  const auto take_waits_out = [&](std::vector<RecordedStep>& steps) {
    for (RecordedStep& step : steps) {
      for (size_t i = 0; i < draft.operations.size(); ++i) {
        const int32_t after =
            draft.operations[i].waiting_for.empty() ? -1 : draft.operations[i].waiting_for.front();
        if (after < 0) continue;
        const int64_t begin = step.end_ns[Index(after)];
        if (draft.operations[i].resource == Resource::kCollective) {
          step.start_ns[i] = step.end_ns[i] = begin;
        } else {
          step.end_ns[i] += begin - step.start_ns[i];
          step.start_ns[i] = begin;
        }
      }
    }
  };
  take_waits_out(draft.steps);
  for (WorkerRecording& worker : draft.recording->workers) take_waits_out(worker.steps);
  const Profile without = Profile::Create(std::move(draft)).value();
  EXPECT_LT(without.steps()[0].end_ns.back(), profile.steps()[0].end_ns.back());
  const std::vector<int64_t> expected = Beside(profile);
  const std::vector<int64_t> beside = Beside(without);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(beside[i], expected[i], 50) << i;
}

TEST(CollectiveSlowdownTest, TellsNothingFromTooFewStepsOrOneCollectiveOrOneWay) {
  EXPECT_TRUE(Found(Recorded({.collective_slowdown = 1.5}, 1)).has_value());
  EXPECT_FALSE(Found(Recorded({.collective_slowdown = 1.5, .steps = 4}, 1)).has_value());
  EXPECT_FALSE(Found(Recorded({.collective_slowdown = 1.5, .steps = 1}, 1)).has_value());
  EXPECT_FALSE(Found(Recorded({.collective_slowdown = 1.5, .sent_after = {9}}, 1)).has_value());
  // Workers that are never slow have the same beside each collective in every step: the first ones
  // computation all along, the last one none.
  ProfileDraft draft = Recorded({.collective_slowdown = 1.5, .workers = 2}, 1).content();
  EXPECT_TRUE(Found(Profile::Create(draft).value()).has_value());
  const auto alike = [](std::vector<RecordedStep>& steps) {
    for (RecordedStep& step : steps) step = steps.front();
  };
  alike(draft.steps);
  alike(draft.recording->workers[1].steps);
  EXPECT_FALSE(Found(Profile::Create(draft).value()).has_value());
}

// A slow-down taken out of the times at import is told from the stored profile as from the
// recording.
TEST(CollectiveSlowdownTest, IsToldOfAProfileWhoseTimesWereFreedOfIt) {
  const Profile profile = Recorded({.collective_slowdown = 1.6, .overlap_slowdown = 1.3}, 5);
  const MultiRankRecording recording = RecordingOf(profile, NeverStop).value();
  MultiRankRecording freed = recording;
  freed.profile = FreeOfContention(recording, ClocksOf(profile), 1.6, {}, NeverStop).value();
  EXPECT_EQ(freed.profile.recording()->collective_slowdown, 1.6);
  freed.profile = FreeOfOverlap(freed, ClocksOf(profile), 1.3, {}, NeverStop).value();
  EXPECT_EQ(freed.profile.recording()->overlap_slowdown, 1.3);
  EXPECT_EQ(freed.profile.recording()->collective_slowdown, 1.6);
  const std::optional<CollectiveSlowdown> raw = Found(profile);
  const std::optional<CollectiveSlowdown> stored = Found(freed.profile);
  ASSERT_TRUE(raw.has_value() && stored.has_value());
  EXPECT_NEAR(stored->slowdown, raw->slowdown, 0.05);
  EXPECT_EQ(stored->computing_fraction, raw->computing_fraction);
  EXPECT_LT(stored->interval.lower, 1.6);
  EXPECT_GT(stored->interval.upper, 1.6);
  // As one freed of its overlap alone by an older version, which did not keep what ran beside.
  ProfileDraft older = freed.profile.content();
  older.recording->collective_slowdown = 1;
  EXPECT_TRUE(Found(Profile::Create(older).value()).has_value());
  older.recording->computing_ns.clear();
  EXPECT_FALSE(Found(Profile::Create(older).value()).has_value());
}

TEST(CollectiveSlowdownTest, StopsWhenTold) {
  const Profile profile = Recorded({}, 1);
  const RecordedJob made = JobOfRecorded(profile);
  const Execution replay = ReplayOf(made);
  const auto stop = [] { return absl::CancelledError("enough"); };
  const std::vector<PlannedCollective>& planned = made.program.collectives;
  EXPECT_TRUE(absl::IsCancelled(FindCollectiveSlowdown(profile, planned, replay, stop).status()));
  EXPECT_TRUE(absl::IsCancelled(
      ComputingBesideCollectives(Recorded({.steps = 200}, 1), planned, stop).status()));
}

}  // namespace
}  // namespace stepcast::collective_slowdown_test
