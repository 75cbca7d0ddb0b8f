#include "core/advise/communication_tuning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "core/advise/gradient_chain.h"
#include "core/base/error.h"
#include "tests/core/advise/naive_backward.h"

namespace stepcast::communication_tuning_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// At a thousand million bytes a second: forward of 1 us, and then a backward part a gradient, which
// is ready when that has ended; the last operation waits for all of them. `lengths`: of the parts,
// ns, one list a recorded step.
Profile Training(const std::vector<int64_t>& bytes,
                 const std::vector<std::vector<int64_t>>& lengths) {
  ProfileDraft draft{.batch_size = 10, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "forward", .resource = Resource::kWorker}};
  int32_t before = 0;
  std::vector<int32_t> gradients;
  for (size_t i = 0; i < bytes.size(); ++i) {
    draft.operations.push_back({.name = absl::StrCat("backward/", i),
                                .resource = Resource::kWorker,
                                .waiting_for = {before}});
    before = static_cast<int32_t>(draft.operations.size()) - 1;
    draft.operations.push_back({.name = absl::StrCat("gradient/", i),
                                .resource = Resource::kCollective,
                                .size_bytes = bytes[i],
                                .waiting_for = {before},
                                .collective = Collective::kAllReduce});
    gradients.push_back(before + 1);
  }
  draft.operations.push_back(
      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = gradients});
  for (const std::vector<int64_t>& step : lengths) {
    RecordedStep recorded{.start_ns = {0}, .end_ns = {1000}};
    for (const int64_t length : step) {
      const int64_t begin = recorded.end_ns.back();
      recorded.start_ns.insert(recorded.start_ns.end(), {begin, begin + length});
      recorded.end_ns.insert(recorded.end_ns.end(), {begin + length, begin + length});
    }
    recorded.start_ns.push_back(recorded.end_ns.back());
    recorded.end_ns.push_back(recorded.end_ns.back() + 100);
    draft.steps.push_back(std::move(recorded));
  }
  return Profile::Create(std::move(draft)).value();
}

ScenarioDraft Asked(int32_t workers, double latency_seconds = 1e-6) {
  return {.workers = workers, .communication = AllReduceDraft{.latency_seconds = latency_seconds}};
}

TuningAnswer Tuned(const Profile& profile, TuningDraft draft) {
  if (!draft.options.steps_per_worker) draft.options.steps_per_worker = 60;
  const absl::StatusOr<TuningQuery> query = ResolveTuning(profile, draft);
  EXPECT_TRUE(query.ok()) << query.status();
  absl::StatusOr<TuningAnswer> answer = OptimizeCommunication(profile, *query, NeverStop);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *std::move(answer) : TuningAnswer{};
}

const TunedStrategy& StrategyOf(const Tuning& tuning, TuningMethod method) {
  return *std::find_if(
      tuning.strategies.begin(), tuning.strategies.end(),
      [method](const TunedStrategy& strategy) { return strategy.method == method; });
}

std::vector<int64_t> BytesOf(const TunedStrategy& strategy) {
  std::vector<int64_t> bytes;
  for (const TunedGroup& group : strategy.groups) bytes.push_back(group.size_bytes);
  return bytes;
}

// Two workers: a collective of n bytes takes n ns and 2 us.
TEST(OptimizeCommunicationTest, TheAdviceOfThreeGradientsFollowsByHand) {
  const Profile profile = Training({1000, 1000, 1000}, {{500, 500, 500}});
  const TuningAnswer answer = Tuned(profile, {.scenario = Asked(2)});
  ASSERT_EQ(answer.tunings.size(), 1U);
  const Tuning& tuning = answer.tunings.front();
  EXPECT_EQ(tuning.workers, 2);
  // As recorded: from 1.5 us on three of 3 us, and 0.1 us of optimizer. All at once: from 2.5 us on
  // 5 us.
  const TunedStrategy& recorded = StrategyOf(tuning, TuningMethod::kAsRecorded);
  EXPECT_NEAR(recorded.prediction.step_time.mean, 10.6e-6, 1e-11);
  EXPECT_THAT(BytesOf(recorded), ElementsAre(1000, 1000, 1000));
  EXPECT_NEAR(recorded.prediction.collectives->exposed_seconds, 8e-6, 1e-11);
  const TunedStrategy& searched = StrategyOf(tuning, TuningMethod::kSearch);
  EXPECT_NEAR(searched.prediction.step_time.mean, 7.6e-6, 1e-11);
  EXPECT_THAT(BytesOf(searched), ElementsAre(3000));
  EXPECT_THAT(searched.groups.front().operations,
              ElementsAre("gradient/0", "gradient/1", "gradient/2"));
  EXPECT_NEAR(searched.gain.mean, 10.6 / 7.6 - 1, 1e-6);
  EXPECT_FALSE(searched.gain.is_none);
  // The last collective ends at 7.5 us at best.
  EXPECT_NEAR(tuning.lower_bound_seconds, 7.5e-6, 1e-11);
  EXPECT_NEAR(searched.gap, 7.6 / 7.5 - 1, 1e-6);
  // Every cap makes one bucket: the one nearest to PyTorch's own is said.
  const TunedStrategy& buckets = StrategyOf(tuning, TuningMethod::kDdpBuckets);
  EXPECT_EQ(buckets.setting, "bucket_cap_mb=25");
  EXPECT_EQ(searched.setting, "bucket_cap_mb=25") << "some cap makes the groups that were found";
  EXPECT_EQ(tuning.strategies[tuning.chosen].method, TuningMethod::kDdpBuckets)
      << "the simplest that is as fast";
  EXPECT_THAT(tuning.reason, AllOf(HasSubstr("bucket_cap_mb=25"), HasSubstr("+39.5 %")));
}

TEST(OptimizeCommunicationTest, WhereNothingGainsItSaysNoDifference) {
  // Computation hides every collective but the last, whose gradient is small.
  const Profile profile = Training({1000, 1000, 10}, {{50'000, 50'000, 50'000}});
  const TuningAnswer answer = Tuned(profile, {.scenario = Asked(4)});
  const Tuning& tuning = answer.tunings.front();
  EXPECT_EQ(tuning.strategies[tuning.chosen].method, TuningMethod::kAsRecorded);
  EXPECT_TRUE(tuning.strategies[tuning.chosen].gain.is_none);
  EXPECT_THAT(tuning.reason, HasSubstr("no difference"));
}

std::string Percent(double share) { return absl::StrFormat("%+.1f %%", 100 * share); }

// The arrow and the sentence are one fact, with every choice of methods: where something is told to
// gain, what is chosen is, and its gain is said; else what there is stays, asked about or not.
TEST(OptimizeCommunicationTest, WhatIsChosenIsWhatTheReasonSays) {
  std::mt19937 random(11);
  int gains_little = 0;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    std::vector<int64_t> bytes;
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < 2 + random() % 5; ++i) {
      bytes.push_back(1'000'000 * static_cast<int64_t>(1 + random() % 3));
      lengths.push_back(1'000'000 * static_cast<int64_t>(1 + random() % 9));
    }
    TuningDraft draft{.scenario = Asked(4, 1e-6 * static_cast<double>(random() % 60))};
    if (round % 3 == 1) draft.methods = {TuningMethod::kDdpBuckets, TuningMethod::kMgWfbp};
    const TuningAnswer answer = Tuned(Training(bytes, {lengths}), draft);
    const Tuning& tuning = answer.tunings.front();
    const TunedStrategy& chosen = tuning.strategies[tuning.chosen];
    const bool told = std::any_of(
        tuning.strategies.begin(), tuning.strategies.end(),
        [](const TunedStrategy& each) { return !each.gain.is_none && each.gain.mean > 0; });
    EXPECT_EQ(!chosen.gain.is_none && chosen.gain.mean > 0, told) << tuning.reason;
    if (told) {
      EXPECT_THAT(tuning.reason, HasSubstr(" gains " + Percent(chosen.gain.mean)));
      EXPECT_THAT(tuning.reason, Not(HasSubstr("no difference")));
      gains_little += chosen.gain.mean < 0.02 ? 1 : 0;
    } else {
      EXPECT_EQ(chosen.method, TuningMethod::kAsRecorded);
      EXPECT_THAT(tuning.reason, HasSubstr("no difference"));
    }
  }
  EXPECT_GT(gains_little, 3) << "no job was near the edge";
}

TEST(OptimizeCommunicationTest, SmallJobsGetTheBestOfAllGroupingsBySimulation) {
  std::mt19937 random(7);
  int gained = 0;
  for (int round = 0; round < 25; ++round) {
    const size_t size = 2 + random() % 4;
    std::vector<int64_t> bytes;
    std::vector<std::vector<int64_t>> lengths(1 + random() % 3);
    for (size_t i = 0; i < size; ++i) bytes.push_back(100 + random() % 4000);
    for (std::vector<int64_t>& step : lengths) {
      for (size_t i = 0; i < size; ++i) step.push_back(100 + random() % 3000);
    }
    const Profile profile = Training(bytes, lengths);
    const TuningDraft draft{
        .scenario = Asked(static_cast<int32_t>(2 + random() % 3), 1e-7 * (random() % 20)),
        .options = {.steps_per_worker = 40, .replications = 2}};
    const Tuning tuning = Tuned(profile, draft).tunings.front();
    const TunedStrategy& searched = StrategyOf(tuning, TuningMethod::kSearch);
    // Every grouping, predicted by itself.
    const TuningQuery query = ResolveTuning(profile, draft).value();
    ThroughputQuery every{.scenarios = {}, .options = query.options};
    for (const std::vector<int32_t>& counts : AllGroupings(size)) {
      RecordedBuckets buckets;
      size_t next = 0;
      for (const int32_t count : counts) {
        buckets.sizes_bytes.push_back(0);
        for (int32_t i = 0; i < count; ++i) buckets.sizes_bytes.back() += bytes[next++];
      }
      every.scenarios.push_back(query.scenarios.front());
      std::get<AllReduce>(every.scenarios.back().communication).fusion = buckets;
    }
    const ThroughputAnswer predicted = PredictThroughput(profile, every, NeverStop).value();
    double best = 0;
    for (const Prediction& prediction : predicted.predictions)
      best = std::max(best, prediction.steps_per_second);
    EXPECT_GE(searched.prediction.steps_per_second, best * (1 - 1e-9)) << "round " << round;
    for (const TunedStrategy& strategy : tuning.strategies) {
      EXPECT_LE(strategy.prediction.steps_per_second,
                searched.prediction.steps_per_second * (1 + 1e-9))
          << "round " << round << " " << NameOf(strategy.method);
      EXPECT_GE(strategy.prediction.step_time.mean, tuning.lower_bound_seconds * (1 - 1e-9))
          << "round " << round << " " << NameOf(strategy.method);
    }
    gained += searched.gain.is_none ? 0 : 1;
  }
  EXPECT_GT(gained, 8) << "the cases are of no interest";
}

TEST(OptimizeCommunicationTest, TheSameRequestHasTheSameAnswer) {
  std::mt19937 random(3);
  std::vector<int64_t> bytes;
  std::vector<std::vector<int64_t>> lengths(3);
  for (size_t i = 0; i < 40; ++i) {
    bytes.push_back(100 + random() % 4000);
    for (std::vector<int64_t>& step : lengths) step.push_back(100 + random() % 2000);
  }
  const Profile profile = Training(bytes, lengths);
  const TuningDraft draft{.scenario = Asked(4, 5e-7)};
  const TuningAnswer first = Tuned(profile, draft);
  const TuningAnswer again = Tuned(profile, draft);
  const Tuning& tuning = first.tunings.front();
  ASSERT_EQ(tuning.strategies.size(), 6U);
  for (size_t i = 0; i < tuning.strategies.size(); ++i) {
    const TunedStrategy& other = again.tunings.front().strategies[i];
    EXPECT_EQ(BytesOf(tuning.strategies[i]), BytesOf(other));
    EXPECT_EQ(tuning.strategies[i].prediction.steps_per_second, other.prediction.steps_per_second);
  }
  const TunedStrategy& searched = StrategyOf(tuning, TuningMethod::kSearch);
  for (const TunedStrategy& strategy : tuning.strategies)
    EXPECT_LE(strategy.prediction.steps_per_second, searched.prediction.steps_per_second);
  EXPECT_FALSE(searched.gain.is_none);
  EXPECT_LT(searched.gain.confidence_interval.lower, searched.gain.mean);
}

TEST(OptimizeCommunicationTest, ForSeveralNumbersOfWorkersItSaysIfTheAdviceChanges) {
  // Of two workers a collective's latency is hidden; of many it is most of a step.
  const Profile profile =
      Training(std::vector<int64_t>(12, 100'000), {std::vector<int64_t>(12, 300'000)});
  const TuningAnswer answer =
      Tuned(profile, {.scenario = {.communication = AllReduceDraft{.latency_seconds = 2e-5}},
                      .worker_counts = {2, 64},
                      .methods = {TuningMethod::kAsRecorded, TuningMethod::kSearch}});
  ASSERT_EQ(answer.tunings.size(), 2U);
  EXPECT_TRUE(answer.has_counts);
  EXPECT_EQ(answer.tunings[1].workers, 64);
  EXPECT_EQ(answer.tunings[0].strategies[answer.tunings[0].chosen].method,
            TuningMethod::kAsRecorded);
  EXPECT_EQ(answer.tunings[1].strategies[answer.tunings[1].chosen].method, TuningMethod::kSearch);
  EXPECT_TRUE(answer.advice_changes);
  const TuningAnswer same =
      Tuned(profile, {.scenario = {.communication = AllReduceDraft{.latency_seconds = 2e-5}},
                      .worker_counts = {2, 3},
                      .methods = {TuningMethod::kAsRecorded, TuningMethod::kSearch}});
  EXPECT_FALSE(same.advice_changes);
}

// The rates of Fig. 1a's kind: more threads move bytes faster and slow computation.
Contention Contending() {
  return {.alpha2 = 1.3e-4,
          .overlapped = {.gamma1 = 1e9, .gamma2 = 1e9, .gamma3 = 0.02},
          .alone = {.gamma1 = 1.2e9, .gamma2 = 1e9, .gamma3 = 0.02}};
}

// With 2,048 threads computation stands still: nobody asked for so many.
TEST(ResolveTuningTest, ThreadsThatNobodyGaveAreThoseThatAreThere) {
  const Profile profile = Training({20'000, 30'000}, {{20'000, 30'000}});
  Contention contention = Contending();
  contention.alpha2 = 5e-4;
  const auto resolve = [&](std::vector<int32_t> threads) {
    return ResolveTuning(
        profile, {.scenario = Asked(4), .contention = contention, .threads = std::move(threads)});
  };
  const absl::StatusOr<TuningQuery> query = resolve({});
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->allocation.threads, (std::vector<int32_t>{128, 256, 512, 1024}));
  EXPECT_THAT(std::string(resolve({2048}).status().message()), HasSubstr("2048 threads"));
}

TEST(OptimizeCommunicationTest, LibraChoosesGroupsAndThreadsAndSaysHowNearToTheBest) {
  std::mt19937 random(11);
  int better = 0;
  int by_threads = 0;
  for (int round = 0; round < 10; ++round) {
    std::vector<int64_t> bytes;
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < 7; ++i) {
      bytes.push_back(10'000 + random() % 100'000);
      lengths.push_back(10'000 + random() % 60'000);
    }
    const Profile profile = Training(bytes, {lengths});
    const Tuning tuning = Tuned(profile, {.scenario = Asked(4),
                                          .options = {.replications = 1},
                                          .contention = Contending(),
                                          .threads = {128, 1024, 4096}})
                              .tunings.front();
    ASSERT_EQ(tuning.strategies.size(), 9U);
    const TunedStrategy& libra = StrategyOf(tuning, TuningMethod::kLibra);
    ASSERT_TRUE(libra.backward_seconds.has_value());
    ASSERT_TRUE(libra.guarantee.has_value()) << libra.why_no_guarantee;
    size_t gradients = 0;
    for (const TunedGroup& group : libra.groups) {
      EXPECT_THAT((std::vector<int32_t>{128, 1024, 4096}), Contains(group.threads));
      gradients += group.operations.size();
    }
    EXPECT_EQ(gradients, 7U);
    for (const TunedStrategy& strategy : tuning.strategies) {
      // NCCL's threads are none that it chose from, so they may be less than it.
      if (strategy.method >= TuningMethod::kLibraM || !strategy.backward_seconds) continue;
      better += *libra.backward_seconds < *strategy.backward_seconds ? 1 : 0;
    }
    const TunedStrategy& searched = StrategyOf(tuning, TuningMethod::kSearch);
    EXPECT_GE(searched.prediction.steps_per_second, libra.prediction.steps_per_second);
    // What the model says of the backward pass the simulation says of the step: forward before it,
    // the optimizer after it, of workers that are alike.
    EXPECT_NEAR(libra.prediction.step_time.mean, 1e-6 + *libra.backward_seconds + 0.1e-6,
                1e-6 * *libra.backward_seconds)
        << "round " << round;
    for (const TunedStrategy& strategy : tuning.strategies)
      EXPECT_GE(strategy.prediction.step_time.mean, tuning.lower_bound_seconds * (1 - 1e-9));
    // Others have the same groups, and what they gain is less.
    if (tuning.strategies[tuning.chosen].method != TuningMethod::kLibra) continue;
    by_threads += 1;
    EXPECT_THAT(tuning.reason, AllOf(HasSubstr("LIBRA, whose threads by collective no setting has"),
                                     Not(HasSubstr("bucket_cap"))));
  }
  EXPECT_GT(better, 15) << "of 40";
  EXPECT_GT(by_threads, 0);
}

std::vector<std::string> NamesOf(const TunedStrategy& strategy) {
  std::vector<std::string> names;
  for (const TunedGroup& group : strategy.groups)
    names.push_back(absl::StrJoin(group.operations, "+"));
  return names;
}

TEST(OptimizeCommunicationTest, OneCollectiveOfAllGradientsBeginsWhenTheLastIsReady) {
  const Profile profile = Training({1000, 2000, 3000}, {{500, 500, 500}});
  // Two workers: forward and backward 2.5 us, 2 us of latency and a byte a ns, the optimizer.
  const Tuning plain = Tuned(profile, {.scenario = Asked(2)}).tunings.front();
  const TunedStrategy& together = StrategyOf(plain, TuningMethod::kSequential);
  EXPECT_THAT(BytesOf(together), ElementsAre(6000));
  EXPECT_EQ(together.groups.front().threads, 0);
  EXPECT_NEAR(together.prediction.step_time.mean, 2.5e-6 + 2e-6 + 6e-6 + 0.1e-6, 1e-11);
  // With contention nothing is computed beside it: it has the rate of those that are alone, by the
  // threads that NCCL gives to 6,000 bytes.
  const Tuning contending =
      Tuned(profile, {.scenario = Asked(2), .contention = Contending()}).tunings.front();
  const TunedStrategy& slowed = StrategyOf(contending, TuningMethod::kSequential);
  ASSERT_EQ(slowed.groups.size(), 1U);
  EXPECT_EQ(slowed.groups.front().threads, 96);
  const double rate = BytesPerSecond(Contending().alone, Contending().gamma4, 96);
  EXPECT_NEAR(slowed.prediction.step_time.mean, 2.5e-6 + 2e-6 + 6000 / rate + 0.1e-6, 1e-11);
}

TEST(OptimizeCommunicationTest, CollectivesOfAllButLibraHaveNcclsThreads) {
  const Profile profile = Training({2000, 30'000, 70'000, 200'000}, {{50'000, 50'000, 50'000, 10}});
  const auto tuned = [&](ScenarioDraft scenario, std::optional<int32_t> channels) {
    return Tuned(profile, {.scenario = std::move(scenario),
                           .contention = Contending(),
                           .threads = {300, 700},
                           .nccl_channels = channels})
        .tunings.front();
  };
  std::set<int32_t> seen;
  for (const int32_t channels : {1, 2, 5}) {
    for (const TunedStrategy& strategy : tuned(Asked(4), channels).strategies) {
      SCOPED_TRACE(absl::StrCat(NameOf(strategy.method), ", channels ", channels));
      const bool by_libra =
          strategy.method == TuningMethod::kLibra || strategy.method == TuningMethod::kLibraM;
      for (const TunedGroup& group : strategy.groups) {
        const int32_t nccls = NcclThreads(static_cast<double>(group.size_bytes), channels);
        if (by_libra) {
          EXPECT_THAT((std::vector<int32_t>{300, 700}), Contains(group.threads));
        } else if (strategy.method != TuningMethod::kSearch) {
          EXPECT_EQ(group.threads, nccls) << group.size_bytes;
          seen.insert(nccls);
        }
      }
    }
  }
  EXPECT_THAT(seen, AllOf(Contains(96), Contains(544), Contains(2 * 544), Contains(5 * 544)));
  // Two channels where none are given.
  EXPECT_EQ(StrategyOf(tuned(Asked(4), {}), TuningMethod::kSequential).groups.front().threads,
            2 * 544);
  // What the scenario says of all holds, and what it says of a group.
  ScenarioDraft fixed = Asked(4);
  std::get<AllReduceDraft>(fixed.communication).contention = Contending();
  std::get<AllReduceDraft>(fixed.communication).threads = 512;
  const auto threads_of = [](const TunedStrategy& strategy) {
    std::vector<int32_t> threads;
    for (const TunedGroup& group : strategy.groups) threads.push_back(group.threads);
    return threads;
  };
  EXPECT_THAT(threads_of(StrategyOf(Tuned(profile, {.scenario = fixed}).tunings.front(),
                                    TuningMethod::kAsRecorded)),
              ElementsAre(512, 512, 512, 512));
  std::get<AllReduceDraft>(fixed.communication).threads.reset();
  std::get<AllReduceDraft>(fixed.communication).fusion =
      GradientGroups{{{.operations = {"gradient/0"}, .threads = 77},
                      {.operations = {"gradient/1", "gradient/2"}, .threads = 88},
                      {.operations = {"gradient/3"}}}};
  const Tuning grouped = Tuned(profile, {.scenario = fixed}).tunings.front();
  EXPECT_THAT(threads_of(StrategyOf(grouped, TuningMethod::kAsRecorded)),
              ElementsAre(77, 88, 2 * 544));
  EXPECT_THAT(threads_of(StrategyOf(grouped, TuningMethod::kSequential)), ElementsAre(2 * 544));
}

// Every choice of threads for MG_WFBP's groups, and the groups without contention, instant by
// instant.
TEST(OptimizeCommunicationTest,
     LibrasThreadsForMergedGroupsAreTheBestOfAllAndMgCfKnowsNoContention) {
  std::mt19937 random(5);
  const std::vector<int32_t> choices = {128, 512, 2048};
  int better = 0;
  int counted = 0;
  size_t most_groups = 0;
  for (int round = 0; round < 15; ++round) {
    std::vector<int64_t> bytes;
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < 5; ++i) {
      bytes.push_back(10'000 + random() % 100'000);
      lengths.push_back(10'000 + random() % 90'000);
    }
    const Profile profile = Training(bytes, {lengths});
    const Tuning tuning = Tuned(profile, {.scenario = Asked(4, 5e-6),
                                          .options = {.replications = 1},
                                          .contention = Contending(),
                                          .threads = choices,
                                          .chunks = 500})
                              .tunings.front();
    const TunedStrategy& merged = StrategyOf(tuning, TuningMethod::kMgWfbp);
    const TunedStrategy& libra_m = StrategyOf(tuning, TuningMethod::kLibraM);
    const TunedStrategy& free = StrategyOf(tuning, TuningMethod::kMgCf);
    EXPECT_EQ(NamesOf(libra_m), NamesOf(merged));
    EXPECT_EQ(NamesOf(free), NamesOf(merged));
    most_groups = std::max(most_groups, merged.groups.size());
    std::vector<BackwardLayer> layers;
    for (size_t i = 0; i < bytes.size(); ++i)
      layers.push_back({.seconds = 1e-9 * static_cast<double>(lengths[i]), .bytes = bytes[i]});
    OverlapSetting setting{.workers = 4, .latency_seconds = 5e-6, .contention = Contending()};
    std::vector<TensorGroup> groups;
    for (const TunedGroup& group : merged.groups) {
      const int32_t next = groups.empty() ? 0 : groups.back().first + groups.back().count;
      groups.push_back({.first = next,
                        .count = static_cast<int32_t>(group.operations.size()),
                        .threads = group.threads});
    }
    EXPECT_NEAR(*merged.backward_seconds, NaiveBackwardSeconds(layers, groups, setting), 1e-12);
    size_t combinations = 1;
    for (size_t i = 0; i < groups.size(); ++i) combinations *= choices.size();
    double least = HUGE_VAL;
    for (size_t combination = 0; combination < combinations; ++combination) {
      std::vector<TensorGroup> chosen = groups;
      size_t rest = combination;
      for (TensorGroup& group : chosen) {
        group.threads = choices[rest % choices.size()];
        rest /= choices.size();
      }
      least = std::min(least, NaiveBackwardSeconds(layers, chosen, setting));
    }
    EXPECT_GE(*libra_m.backward_seconds, least * (1 - 1e-9));
    // The chunks of its dynamic programming are 1/500 of the computation.
    EXPECT_LE(*libra_m.backward_seconds, least * 1.01) << "round " << round;
    better += *libra_m.backward_seconds < *merged.backward_seconds ? 1 : 0;
    setting.contention.alpha2 = 0;
    setting.contention.overlapped = setting.contention.alone;
    EXPECT_NEAR(*free.backward_seconds, NaiveBackwardSeconds(layers, groups, setting), 1e-12);
    EXPECT_NEAR(free.prediction.step_time.mean, 1.1e-6 + *free.backward_seconds, 1e-9);
    // It gains over the same groups and threads, and is not what is advised.
    EXPECT_GT(free.prediction.steps_per_second, merged.prediction.steps_per_second);
    EXPECT_NE(tuning.strategies[tuning.chosen].method, TuningMethod::kMgCf);
    EXPECT_EQ(free.setting, "");
    std::vector<Alternative> alternatives;
    size_t chosen = 0;
    for (size_t i = 0; i < tuning.strategies.size(); ++i) {
      const TunedStrategy& strategy = tuning.strategies[i];
      if (strategy.method == TuningMethod::kMgCf) continue;
      if (i == tuning.chosen) chosen = alternatives.size();
      alternatives.push_back(
          AlternativeOf(strategy.prediction, {strategy.prediction.steps_per_second}));
    }
    EXPECT_NEAR(tuning.settled.expected_loss, HowSettled(alternatives, chosen).expected_loss, 1e-9);
    alternatives.push_back(AlternativeOf(free.prediction, {free.prediction.steps_per_second}));
    counted +=
        HowSettled(alternatives, chosen).expected_loss > tuning.settled.expected_loss ? 1 : 0;
  }
  EXPECT_GT(better, 8);
  EXPECT_GT(counted, 0) << "it would have been the best of them";
  EXPECT_GT(most_groups, 2U);
}

// Groups in which less is beside computation, or slows it less, have gradients ready sooner, and
// collectives over sooner, than those by themselves.
TEST(OptimizeCommunicationTest, NoGroupingIsBelowTheBoundWhereBothSlowEachOtherDown) {
  std::mt19937_64 random(8);
  double nearest = 1e9;
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> bytes;
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < 6; ++i) {
      bytes.push_back(static_cast<int64_t>(1000 + random() % 100'000));
      lengths.push_back(static_cast<int64_t>(1000 + random() % 60'000));
    }
    AllReduceDraft how{.latency_seconds = 1e-6 * static_cast<double>(random() % 20),
                       .collective_slowdown = 1 + 0.25 * static_cast<double>(round % 8)};
    if (round % 2 == 0) how.overlap_slowdown = 1.5;
    const Tuning tuning =
        Tuned(Training(bytes, {lengths}),
              {.scenario = {.workers = 4, .communication = how}, .options = {.replications = 1}})
            .tunings.front();
    ASSERT_GE(tuning.strategies.size(), 6U);
    for (const TunedStrategy& strategy : tuning.strategies) {
      EXPECT_GE(strategy.prediction.step_time.mean, strategy.lower_bound_seconds * (1 - 1e-9))
          << "round " << round << " " << NameOf(strategy.method);
      EXPECT_TRUE(how.collective_slowdown == 1 || !strategy.backward_seconds.has_value());
      nearest = std::min(nearest, strategy.gap);
    }
  }
  EXPECT_LT(nearest, 0.1);
}

TEST(OptimizeCommunicationTest, LibrasTimeWithoutContentionIsThatOfTheSimulation) {
  const Profile profile = Training({1000, 1000, 1000}, {{500, 500, 500}});
  const TuningAnswer answer = Tuned(profile, {.scenario = Asked(2)});
  for (const TunedStrategy& strategy : answer.tunings.front().strategies) {
    EXPECT_EQ(strategy.backward_seconds.has_value(), strategy.method != TuningMethod::kHorovod);
    if (!strategy.backward_seconds) continue;
    EXPECT_NEAR(strategy.prediction.step_time.mean, 1e-6 + *strategy.backward_seconds + 0.1e-6,
                1e-11);
    EXPECT_FALSE(strategy.guarantee.has_value());
  }
}

TEST(OptimizeCommunicationTest, CollectivesThatStartFreeAreWarnedOf) {
  const Profile profile = Training({1000, 1000}, {{500, 500}});
  const auto reasons = [&](ScenarioDraft scenario) {
    std::vector<Warning::Reason> found;
    for (const Warning& warning : Tuned(profile, {.scenario = std::move(scenario)}).warnings)
      found.push_back(warning.reason);
    return found;
  };
  EXPECT_THAT(reasons(Asked(2, 0)), Contains(Warning::Reason::kCollectivesStartFree));
  EXPECT_THAT(reasons(Asked(2, 1e-6)), Not(Contains(Warning::Reason::kCollectivesStartFree)));
  EXPECT_THAT(reasons(Asked(1, 0)), Not(Contains(Warning::Reason::kCollectivesStartFree)))
      << "one worker has none";
}

TEST(OptimizeCommunicationTest, ASpentBudgetLeavesWhatWasReached) {
  const Profile profile = Training(std::vector<int64_t>(30, 1000), {std::vector<int64_t>(30, 500)});
  const absl::StatusOr<TuningQuery> query = ResolveTuning(profile, {.scenario = Asked(4)});
  ASSERT_TRUE(query.ok());
  int most = 0;
  for (const int64_t looks : {0, 20, 60, 200, 1000, 100'000}) {
    int64_t left = looks;
    const auto spent = [&left] { return left-- > 0 ? absl::OkStatus() : TimeBudgetSpent(); };
    const absl::StatusOr<TuningAnswer> answer = OptimizeCommunication(profile, *query, spent);
    if (!answer.ok()) {
      EXPECT_TRUE(IsTimeBudgetSpent(answer.status())) << answer.status();
      continue;
    }
    const Tuning& tuning = answer->tunings.front();
    const int reached = static_cast<int>(tuning.strategies.size());
    EXPECT_GE(reached, most);
    most = reached;
    EXPECT_LT(tuning.chosen, tuning.strategies.size());
  }
  EXPECT_EQ(most, 6);
}

TEST(OptimizeCommunicationTest, ASpentBudgetLeavesTheNumbersOfWorkersThatWereReached) {
  const Profile profile = Training(std::vector<int64_t>(30, 1000), {std::vector<int64_t>(30, 500)});
  ScenarioDraft scenario = Asked(2);
  scenario.workers.reset();
  // Long runs, so that they ask whether to stop.
  const absl::StatusOr<TuningQuery> query =
      ResolveTuning(profile, {.scenario = scenario,
                              .worker_counts = {2, 3, 4},
                              .options = {.steps_per_worker = 3000, .replications = 1},
                              .methods = {TuningMethod::kAsRecorded}});
  ASSERT_TRUE(query.ok()) << query.status();
  std::set<size_t> reached;
  for (int64_t looks = 1; looks < 100'000; ++looks) {
    int64_t left = looks;
    const auto spent = [&left] { return left-- > 0 ? absl::OkStatus() : TimeBudgetSpent(); };
    const absl::StatusOr<TuningAnswer> answer = OptimizeCommunication(profile, *query, spent);
    ASSERT_TRUE(answer.ok() || IsTimeBudgetSpent(answer.status())) << answer.status();
    if (!answer.ok()) {
      EXPECT_TRUE(reached.empty()) << "more time leaves no less";
      continue;
    }
    reached.insert(answer->tunings.size());
    if (left > 0) break;
  }
  EXPECT_THAT(reached, ElementsAre(1, 2, 3));
}

TEST(OptimizeCommunicationTest, ACancelledCallFailsSo) {
  const Profile profile = Training({1000, 1000}, {{500, 500}});
  const absl::StatusOr<TuningQuery> query = ResolveTuning(profile, {.scenario = Asked(4)});
  EXPECT_EQ(OptimizeCommunication(profile, *query, [] { return absl::CancelledError("gone"); })
                .status()
                .code(),
            absl::StatusCode::kCancelled);
}

std::vector<std::string> FieldsOf(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const Fault& fault : DetailsOf(status).faults) fields.push_back(fault.field);
  return fields;
}

TEST(ResolveTuningTest, DefaultsAreEightWorkersAndAllThatTheScenarioAllows) {
  const Profile profile = Training({1000, 1000}, {{500, 500}});
  const absl::StatusOr<TuningQuery> query = ResolveTuning(profile, {});
  ASSERT_TRUE(query.ok()) << query.status();
  ASSERT_EQ(query->scenarios.size(), 1U);
  EXPECT_EQ(query->scenarios.front().workers, 8);
  EXPECT_EQ(query->methods.size(), 6U);
  EXPECT_EQ(query->bucket_caps_bytes.size(), 27U);
  EXPECT_EQ(query->bucket_caps_bytes.back(), 200 << 20);
  ScenarioDraft side_by_side;
  side_by_side.communication =
      AllReduceDraft{.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 2};
  EXPECT_THAT(ResolveTuning(profile, {.scenario = side_by_side})->methods,
              ElementsAre(TuningMethod::kAsRecorded, TuningMethod::kDdpBuckets,
                          TuningMethod::kMgWfbp, TuningMethod::kSearch, TuningMethod::kSequential));
  EXPECT_THAT(ResolveTuning(profile, {.contention = Contending()})->methods,
              IsSupersetOf({TuningMethod::kLibraM, TuningMethod::kLibra, TuningMethod::kMgCf}));
}

TEST(ResolveTuningTest, ThreadsAndMethodsOfContentionAreRefusedByName) {
  const Profile profile = Training({1000, 1000}, {{500, 500}});
  const auto fault = [&](const TuningDraft& draft) {
    const std::vector<Fault> faults = DetailsOf(ResolveTuning(profile, draft).status()).faults;
    return faults.size() == 1 ? absl::StrCat(faults[0].field, ": ", faults[0].description)
                              : absl::StrCat(faults.size(), " faults");
  };
  for (const int32_t channels : {0, -3, 65})
    EXPECT_EQ(fault({.contention = Contending(), .nccl_channels = channels}),
              absl::StrCat("nccl_channels: ", channels, " is not from 1 to 64"));
  EXPECT_THAT(fault({.nccl_channels = 2}), HasSubstr("nccl_channels: has no effect without"));
  ScenarioDraft fixed = Asked(2);
  std::get<AllReduceDraft>(fixed.communication).threads = 512;
  EXPECT_THAT(fault({.scenario = fixed, .contention = Contending(), .nccl_channels = 2}),
              HasSubstr("nccl_channels: 2 has no effect: scenario.all_reduce.threads is 512"));
  // 64 channels have 34,816 threads, beside which nothing is computed.
  EXPECT_THAT(fault({.contention = Contending(), .nccl_channels = 64}),
              HasSubstr("contention.alpha2"));
  for (const TuningMethod method : {TuningMethod::kLibraM, TuningMethod::kMgCf})
    EXPECT_THAT(fault({.methods = {TuningMethod::kAsRecorded, method}}),
                AllOf(HasSubstr("methods[1]: "), HasSubstr("contention")));
  EXPECT_THAT(fault({.methods = {TuningMethod::kMgCf}, .contention = Contending()}),
              HasSubstr("methods[0]: MG_CF alone"));
  ScenarioDraft cut = Asked(2);
  std::get<AllReduceDraft>(cut.communication).partition_bytes = 500;
  EXPECT_THAT(
      fault({.scenario = cut, .methods = {TuningMethod::kLibraM}, .contention = Contending()}),
      HasSubstr("methods[0]: LIBRA_M cuts no collective"));
}

TEST(ResolveTuningTest, EveryFaultIsNamed) {
  const Profile profile = Training({1000, 1000}, {{500, 500}});
  ScenarioDraft sharded = Asked(2);
  std::get<AllReduceDraft>(sharded.communication).sharding = Sharding::kGradients;
  EXPECT_THAT(
      FieldsOf(ResolveTuning(profile, {.scenario = sharded,
                                       .methods = {TuningMethod::kSearch, TuningMethod::kSearch},
                                       .bucket_caps_bytes = {5, 0, 5},
                                       .first_bucket_bytes = 0})
                   .status()),
      ElementsAre("methods[1]", "bucket_caps_bytes[2]", "bucket_caps_bytes[1]",
                  "first_bucket_bytes", "scenario.all_reduce.sharding"));
  ScenarioDraft expanded = Asked(2);
  std::get<AllReduceDraft>(expanded.communication).fidelity = Fidelity::kExpanded;
  EXPECT_THAT(FieldsOf(ResolveTuning(profile, {.scenario = expanded}).status()),
              Contains("scenario.all_reduce.fidelity"));
  EXPECT_THAT(
      FieldsOf(
          ResolveTuning(profile, {.scenario = Asked(2), .worker_counts = {2, 2, -1}}).status()),
      ElementsAre("worker_counts[1]", "scenario.workers", "worker_counts[2]"));
  ScenarioDraft side_by_side = Asked(2);
  std::get<AllReduceDraft>(side_by_side.communication).concurrent_collectives = 2;
  std::get<AllReduceDraft>(side_by_side.communication).algorithm = CollectiveAlgorithm::kGloo;
  EXPECT_THAT(FieldsOf(ResolveTuning(
                           profile, {.scenario = side_by_side, .methods = {TuningMethod::kHorovod}})
                           .status()),
              ElementsAre("methods[0]"));
  EXPECT_THAT(
      FieldsOf(ResolveTuning(profile, {.worker_counts = std::vector<int32_t>(65, 2)}).status()),
      ElementsAre("worker_counts"));
  EXPECT_THAT(
      FieldsOf(
          ResolveTuning(profile, {.bucket_caps_bytes = std::vector<int64_t>(257, 2)}).status()),
      Contains("bucket_caps_bytes"));
}

}  // namespace
}  // namespace stepcast::communication_tuning_test
