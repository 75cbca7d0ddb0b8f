// Profiles that hold the recording of several workers: what the engine runs of them, and what a
// diagnosis says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/communication/job.h"
#include "core/diagnose/diagnosis.h"
#include "core/engine/simulation.h"
#include "core/engine/step_sampler.h"
#include "core/model/multi_rank_recording.h"
#include "core/predict/throughput.h"
#include "core/replay/overlap_slowdown.h"
#include "core/replay/recorded_job.h"
#include "tests/core/importing/rank_traces.h"

namespace stepcast::recorded_prediction_test {
namespace {

using testing::ImportRankTraces;
using testing::RankTracesForm;
using testing::WriteRankTraces;

Profile Import(const RankTracesForm& form) {
  return ImportRankTraces(WriteRankTraces(form)).profile;
}

// Forward, one all-reduce of all, and an optimizer, each as long as drawn.
Profile RandomProfile(uint64_t seed, int workers, int steps) {
  Random random({seed, 97});
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = 1e9}};
  draft.operations = {{.name = "forward", .resource = Resource::kWorker},
                      {.name = "gradient",
                       .resource = Resource::kCollective,
                       .size_bytes = 4000,
                       .waiting_for = {0},
                       .collective = Collective::kAllReduce},
                      {.name = "optimizer", .resource = Resource::kWorker, .waiting_for = {1}}};
  JobRecording& recording = draft.recording.emplace();
  recording.collectives = {{.kind = Collective::kAllReduce, .size_bytes = 4000}};
  const auto collective = static_cast<int64_t>(1 + random.Below(1000));
  for (int worker = 0; worker < workers; ++worker) {
    WorkerRecording& part = recording.workers.emplace_back();
    part.name = absl::StrCat("rank ", worker);
    int64_t now = 0;
    for (int step = 0; step < steps; ++step) {
      const auto forward = static_cast<int64_t>(1 + random.Below(10'000));
      const auto optimizer = static_cast<int64_t>(1 + random.Below(1000));
      (worker == 0 ? draft.steps : part.steps)
          .push_back({.start_ns = {0, forward, forward},
                      .end_ns = {forward, forward, forward + optimizer}});
      part.step_begins_ns.push_back(now);
      part.runs.push_back({.start_ns = now, .end_ns = now + collective});
      part.step_ends_ns.push_back(now += 20'000);
    }
  }
  return Profile::Create(std::move(draft)).value();
}

// The obvious simulation: all workers draw the same step, the all-reduce begins when the last one
// is there, and each goes on from its end.
std::vector<Instant> StepEndsByHand(const Profile& profile, const Scenario& scenario,
                                    const JobGraph& job, const RunOptions& options, int worker) {
  StepSampler sampler(job, options, 0);
  const auto length = [&](int w, int step, size_t op) {
    const RecordedStep& recorded =
        profile.steps_of(w % profile.recorded_workers())[static_cast<size_t>(step)];
    return Nanoseconds(recorded.end_ns[op] - recorded.start_ns[op]);
  };
  std::vector<Instant> begins(static_cast<size_t>(scenario.workers));
  std::vector<Instant> ends;
  for (int step = 0; step < options.steps_per_worker; ++step) {
    const int drawn = sampler.Next(step);
    Instant last{};
    for (int w = 0; w < scenario.workers; ++w)
      last = std::max(last, begins[static_cast<size_t>(w)] + length(w, drawn, 0));
    last = last + job.joint.lengths.front();
    for (int w = 0; w < scenario.workers; ++w)
      begins[static_cast<size_t>(w)] = last + length(w, drawn, 2);
    ends.push_back(begins[static_cast<size_t>(worker)]);
  }
  return ends;
}

TEST(RecordedPredictionTest, EveryWorkerRepeatsItsOwnStepsAndAllTheSameOne) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 98});
    const Profile profile = RandomProfile(seed, 2 + static_cast<int>(random.Below(4)),
                                          1 + static_cast<int>(random.Below(6)));
    const Scenario scenario =
        ResolveScenario(profile, {.workers = 1 + static_cast<int32_t>(random.Below(9))}).value();
    const JobProgram program = BuildJobProgram(profile, scenario, NeverStop).value();
    const JobGraph job = JobOf(program, nullptr, scenario);
    EXPECT_EQ(job.drawing, StepDrawing::kJoint);
    RunOptions options{.steps_per_worker = 30, .seed = seed, .keep_step_ends = true};
    options.start_offsets.resize(static_cast<size_t>(scenario.workers));
    const RunResult result = Simulate(job, options, NeverStop).value();
    for (int worker = 0; worker < scenario.workers; ++worker) {
      const std::vector<Instant> expected = StepEndsByHand(profile, scenario, job, options, worker);
      for (size_t step = 0; step < expected.size(); ++step)
        ASSERT_EQ(result.step_ends[static_cast<size_t>(worker)][step], expected[step])
            << "worker " << worker << " step " << step;
    }
  }
}

TEST(RecordedPredictionTest, WithoutLinksCollectivesTakeTheirRecordedTimes) {
  const Profile profile = RandomProfile(3, 3, 4);
  const double recorded = CollectiveSecondsOf(*profile.recording(), NeverStop).value().front();
  const auto length = [&](const ScenarioDraft& draft) {
    const Scenario scenario = ResolveScenario(profile, draft).value();
    return ToSeconds(JobOf(BuildJobProgram(profile, scenario, NeverStop).value(), nullptr, scenario)
                         .joint.lengths.front());
  };
  EXPECT_NEAR(length({.workers = 3}), recorded, 1e-12);
  // A ring of two sends 4/3 less, a ring of six 5/4 more.
  EXPECT_NEAR(length({.workers = 2}), recorded * 3 / 4, 1e-12);
  EXPECT_NEAR(length({.workers = 6}), recorded * 5 / 4, 1e-12);
  // Four messages go round, each with a typical latency unless another one is given.
  EXPECT_NEAR(length({.workers = 3, .bandwidth_bytes_per_second = 1e9}),
              4e-6 * 4 / 3 + 4 * kTypicalLatencySeconds, 1e-12);
  EXPECT_NEAR(length({.workers = 3, .communication = AllReduceDraft{.latency_seconds = 0}}),
              4e-6 * 4 / 3, 1e-12);
}

// Two collectives at once, the first of which takes longest: a prediction from the recording has
// them so, too, and as many one after the other would take longer.
TEST(RecordedPredictionTest, AsManyCollectivesGoOnAtOnceAsWereRecorded) {
  const Profile profile = Import({.ranks = 3,
                                  .steps = 14,
                                  .elements = {40'000, 50'000, 60'000, 70'000},
                                  .buckets = {1, 1, 1, 1},
                                  .collective_ns = 900'000,
                                  .at_once = 2});
  EXPECT_EQ(CollectivesAtOnce(*profile.recording(), NeverStop).value(), 2);
  const Scenario as_recorded = ResolveScenario(profile, {.workers = 3}).value();
  EXPECT_EQ(as_recorded.all_reduce().concurrent_collectives, 2);
  const Scenario on_links =
      ResolveScenario(profile, {.workers = 3, .bandwidth_bytes_per_second = 1e9}).value();
  EXPECT_EQ(on_links.all_reduce().concurrent_collectives, 1);
  const DiagnosisQuery query =
      ResolveDiagnosis(profile, {.options = {.steps_per_worker = 200, .replications = 4}}).value();
  const Diagnosis diagnosis = DiagnoseJob(profile, query, NeverStop).value();
  const JobRecordingReport& report = diagnosis.recording->report;
  EXPECT_NEAR(report.gap(), 0, 1e-6);
  EXPECT_NEAR(diagnosis.prediction.step_time.mean / report.recorded_step_seconds, 1, 0.02);
  ProfileDraft one_by_one = profile.content();
  for (WorkerRecording& worker : one_by_one.recording->workers) {
    for (size_t i = 1; i < worker.runs.size(); ++i)
      worker.runs[i].start_ns = std::max(worker.runs[i].start_ns, worker.runs[i - 1].end_ns);
  }
  EXPECT_EQ(CollectivesAtOnce(*one_by_one.recording, NeverStop).value(), 1);
}

TEST(RecordedPredictionTest, ADiagnosisOfARecordingIsOfTheWorkersThatWereRecorded) {
  const Profile profile = Import({.ranks = 4,
                                  .steps = 12,
                                  .straggler = 1.6,
                                  .clock_offsets_ns = {0, 2'000'000'000, -3'000'000'000, 5}});
  const DiagnosisQuery query =
      ResolveDiagnosis(profile, {.options = {.steps_per_worker = 200, .replications = 4}}).value();
  EXPECT_EQ(query.scenario.workers, 4);
  const Diagnosis diagnosis = DiagnoseJob(profile, query, NeverStop).value();
  ASSERT_TRUE(diagnosis.recording.has_value());
  const JobRecordingReport& report = diagnosis.recording->report;
  EXPECT_EQ(diagnosis.recording->path.straggler, 3);
  EXPECT_EQ(report.workers[3].name, "rank 3");
  EXPECT_NEAR(report.gap(), 0, 1e-3);
  EXPECT_GT(*report.unaligned_step_seconds, 10 * report.recorded_step_seconds);
  EXPECT_EQ(diagnosis.recording->path.steps, 10);
  EXPECT_EQ(diagnosis.path.straggler, 3);
  // The steps drawn are those recorded.
  EXPECT_NEAR(diagnosis.prediction.step_time.mean / report.recorded_step_seconds, 1, 0.02);
  double of_changes[kWhatIfCount] = {};
  for (const WhatIfAnswer& answer : diagnosis.what_ifs)
    of_changes[static_cast<size_t>(answer.change)] = answer.ratio;
  const auto ratio = [&](WhatIf change) { return of_changes[static_cast<size_t>(change)]; };
  EXPECT_GT(ratio(WhatIf::kNoStragglers), 1.2);
  EXPECT_LT(ratio(WhatIf::kNoStragglers), 1.6);
  EXPECT_GT(ratio(WhatIf::kLinksTwiceAsFast), 1.01);
  EXPECT_GT(ratio(WhatIf::kComputationTwiceAsFast), 1.3);
  // Three workers without the slow one, whose collectives are those of the four as a ring of three
  // has them.
  const auto predicted = [&](const Profile& of, int32_t workers) {
    const ThroughputDraft draft = {.scenario = ScenarioDraft{.workers = workers},
                                   .options = {.steps_per_worker = 200, .replications = 4}};
    return PredictThroughput(of, ResolveThroughput(profile, draft).value(), NeverStop)
        ->predictions.front()
        .steps_per_second;
  };
  EXPECT_EQ(diagnosis.prediction.steps_per_second, predicted(profile, 4));
  EXPECT_NEAR(ratio(WhatIf::kOneWorkerFewer),
              predicted(profile.OfWorkers({0, 1, 2}), 3) / predicted(profile, 4), 0.005);
  // Leaving out a fast one gains less.
  EXPECT_GT(ratio(WhatIf::kOneWorkerFewer),
            predicted(profile.OfWorkers({0, 1, 3}), 3) / predicted(profile, 4) + 0.1);
}

// A recording whose computation took longer by `slowdown` beside collectives, made of one without:
// workers that have the truth as their times, run with it, and recorded as they ran.
struct SlowedRecording {
  Profile truth;
  Profile recorded;
};
SlowedRecording Slowed(uint64_t seed, double slowdown) {
  Random random({seed, 99});
  RankTracesForm form{.ranks = 2 + static_cast<int>(random.Below(3)),
                      .steps = 14,
                      .elements = {},
                      .buckets = {},
                      .collective_ns = 2 * static_cast<int64_t>(100'000 + random.Below(400'000)),
                      .at_once = 1 + random.Below(2),
                      .seed = seed};
  for (uint64_t bucket = 2 + random.Below(3); bucket > 0; --bucket) {
    form.buckets.push_back(1 + random.Below(3));
    for (size_t i = 0; i < form.buckets.back(); ++i)
      form.elements.push_back(static_cast<int64_t>(1 + random.Below(100'000)));
  }
  ProfileDraft draft = Import(form).content();
  draft.recording->overlap_slowdown = slowdown;
  const Profile truth = Profile::Create(draft).value();
  const MultiRankRecording recording = RecordingOf(truth, NeverStop).value();
  const RecordedJob made =
      RecordedJobOf(recording, std::vector<NodeClock>(recording.workers.size()), NeverStop).value();
  // What ran is written down, to the nanosecond.
  class Writer : public TraceSink {
   public:
    Writer(ProfileDraft& to, const Program& program) : to_(to), program_(program) {}
    void OnStep(std::span<const ChunkRecord> chunks) override {
      for (const ChunkRecord& chunk : chunks) {
        if (program_.lanes().IsJoint(program_.lane(chunk.op))) continue;
        const auto step = static_cast<size_t>(chunk.step);
        const auto op = static_cast<size_t>(program_.source(chunk.op));
        RecordedStep& recorded =
            chunk.worker == 0
                ? to_.steps[step]
                : to_.recording->workers[static_cast<size_t>(chunk.worker)].steps[step];
        recorded.end_ns[op] =
            recorded.start_ns[op] + std::llround(ToSeconds(chunk.end - chunk.start) * 1e9);
      }
    }

   private:
    ProfileDraft& to_;
    const Program& program_;
  } writer(draft, *made.program.program);
  RunOptions options = made.options;
  options.trace = &writer;
  EXPECT_TRUE(Simulate(made.job, options, NeverStop).ok());
  draft.recording->overlap_slowdown = 1;
  return {.truth = truth, .recorded = Profile::Create(std::move(draft)).value()};
}

TEST(RecordedPredictionTest, WhatCollectivesCostIsTakenOutOfTheTimesAndPutBackByPredictions) {
  double worst = 0;
  double worst_otherwise = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const SlowedRecording made = Slowed(seed, 1.5);
    const MultiRankRecording recording = RecordingOf(made.recorded, NeverStop).value();
    const std::vector<NodeClock> clocks(recording.workers.size());
    const Profile freed = FreeOfOverlap(recording, clocks, 1.5, {}, NeverStop).value();
    EXPECT_EQ(freed.recording()->overlap_slowdown, 1.5);
    int64_t computed = 0;
    for (int32_t worker = 0; worker < freed.recorded_workers(); ++worker) {
      for (size_t step = 0; step < freed.steps().size(); ++step) {
        const RecordedStep& is = freed.steps_of(worker)[step];
        const RecordedStep& was = made.truth.steps_of(worker)[step];
        for (size_t op = 0; op < is.end_ns.size(); ++op) {
          ASSERT_NEAR(is.end_ns[op] - is.start_ns[op], was.end_ns[op] - was.start_ns[op], 2)
              << worker << " " << step << " " << op;
          ++computed;
        }
      }
    }
    EXPECT_GT(computed, 100);
    // The replay is that of the recording, and predictions with faster links those of the truth.
    const RecordingReplay as_recorded = ReplayRecording(recording, clocks, NeverStop).value();
    const RecordingReplay of_freed =
        ReplayRecording(RecordingOf(freed, NeverStop).value(), clocks, NeverStop).value();
    EXPECT_NEAR(of_freed.replayed_step_seconds / as_recorded.replayed_step_seconds, 1, 1e-5);
    const auto seconds = [&](const Profile& profile) {
      const ThroughputDraft draft = {.scenario = ScenarioDraft{.workers = freed.recorded_workers(),
                                                               .bandwidth_bytes_per_second = 100e9},
                                     .options = {.steps_per_worker = 60, .replications = 2}};
      return PredictThroughput(profile, ResolveThroughput(profile, draft).value(), NeverStop)
          ->predictions.front()
          .step_time.mean;
    };
    const double truth = seconds(made.truth);
    worst = std::max(worst, std::abs(seconds(freed) / truth - 1));
    worst_otherwise = std::max(worst_otherwise, std::abs(seconds(made.recorded) / truth - 1));
  }
  std::cout << "links that are nearly free: " << worst << " off at most, " << worst_otherwise
            << " with times as recorded\n";
  EXPECT_LT(worst, 1e-5);
  EXPECT_GT(worst_otherwise, 0.05);
}

// A recording of workers whose collectives took longer by `collective`, and whose computation by
// `overlap`, while the other was beside: they have the truth as their times, ran with that, and
// were recorded as they ran, collectives too.
SlowedRecording Contended(uint64_t seed, double collective, double overlap) {
  Random random({seed, 101});
  RankTracesForm form{.ranks = 2 + static_cast<int>(random.Below(3)),
                      .steps = 14,
                      .elements = {},
                      .buckets = {},
                      .collective_ns = 2 * static_cast<int64_t>(100'000 + random.Below(400'000)),
                      .at_once = 1 + random.Below(2),
                      .straggler = 1 + random.Unit(),
                      .seed = seed};
  for (uint64_t bucket = 2 + random.Below(3); bucket > 0; --bucket) {
    form.buckets.push_back(1 + random.Below(3));
    for (size_t i = 0; i < form.buckets.back(); ++i)
      form.elements.push_back(static_cast<int64_t>(1 + random.Below(100'000)));
  }
  ProfileDraft draft = Import(form).content();
  const size_t collectives = draft.recording->collectives.size();
  draft.recording->overlap_slowdown = overlap;
  draft.recording->collective_slowdown = collective;
  draft.recording->computing_ns.assign(draft.steps.size() * collectives, 0);
  const Profile truth = Profile::Create(draft).value();
  const MultiRankRecording recording = RecordingOf(truth, NeverStop).value();
  const RecordedJob made =
      RecordedJobOf(recording, std::vector<NodeClock>(recording.workers.size()), NeverStop).value();
  // The operations that ran are written down, when they did, to the nanosecond.
  class Writer : public TraceSink {
   public:
    Writer(ProfileDraft& to, const RecordedJob& made) : to_(to), made_(made) {}
    void OnStep(std::span<const ChunkRecord> chunks) override {
      const Program& program = *made_.program.program;
      const auto ns = [](Instant at) {
        return static_cast<int64_t>(std::llround(ToSeconds(at - Instant{}) * 1e9));
      };
      const auto worker = static_cast<size_t>(chunks.front().worker);
      const auto step = static_cast<size_t>(chunks.front().step);
      WorkerRecording& part = to_.recording->workers[worker];
      RecordedStep& recorded = worker == 0 ? to_.steps[step] : part.steps[step];
      int64_t first = INT64_MAX;
      int64_t last = 0;
      for (const ChunkRecord& chunk : chunks) {
        const bool is_joint = program.lanes().IsJoint(program.lane(chunk.op));
        if (!is_joint) first = std::min(first, ns(chunk.start));
        last = std::max(last, ns(chunk.end));
      }
      part.step_begins_ns[step] = first;
      part.step_ends_ns[step] = last;
      const size_t count = to_.recording->collectives.size();
      for (const ChunkRecord& chunk : chunks) {
        const auto& planned = made_.program.collectives;
        const auto at = std::find_if(planned.begin(), planned.end(),
                                     [&](const auto& each) { return each.op == chunk.op; });
        if (at != planned.end()) {
          // All begin at the last one's arrival.
          const auto place = static_cast<size_t>(at - planned.begin());
          part.runs[step * count + place] = {.start_ns = ns(chunk.start), .end_ns = ns(chunk.end)};
          for (const int32_t member : at->members) {
            recorded.start_ns[static_cast<size_t>(member)] = ns(chunk.start) - first;
            recorded.end_ns[static_cast<size_t>(member)] = ns(chunk.end) - first;
          }
        } else {
          const auto op = static_cast<size_t>(program.source(chunk.op));
          recorded.start_ns[op] = ns(chunk.start) - first;
          recorded.end_ns[op] = ns(chunk.end) - first;
        }
      }
    }

   private:
    ProfileDraft& to_;
    const RecordedJob& made_;
  } writer(draft, made);
  RunOptions options = made.options;
  options.trace = &writer;
  EXPECT_TRUE(Simulate(made.job, options, NeverStop).ok());
  draft.recording->overlap_slowdown = 1;
  draft.recording->collective_slowdown = 1;
  draft.recording->computing_ns.clear();
  return {.truth = truth, .recorded = Profile::Create(std::move(draft)).value()};
}

TEST(RecordedPredictionTest, WhatComputationCostsCollectivesIsTakenOutAndPutBackByPredictions) {
  double worst = 0;
  double worst_otherwise = 0;
  int64_t beside = 0;
  int at_once = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const double overlap = seed % 2 == 0 ? 1.0 : 1.25;
    const SlowedRecording made = Contended(seed, 1.5, overlap);
    const MultiRankRecording recording = RecordingOf(made.recorded, NeverStop).value();
    const std::vector<NodeClock> clocks(recording.workers.size());
    MultiRankRecording freed = recording;
    freed.profile = FreeOfContention(recording, clocks, 1.5, {}, NeverStop).value();
    if (overlap > 1) freed.profile = FreeOfOverlap(freed, clocks, overlap, {}, NeverStop).value();
    const JobRecording& is = *freed.profile.recording();
    EXPECT_EQ(is.collective_slowdown, 1.5);
    EXPECT_EQ(is.overlap_slowdown, overlap);
    const std::vector<double> was = CollectiveSecondsOf(*made.truth.recording(), NeverStop).value();
    for (size_t step = 0; step < freed.profile.steps().size(); ++step) {
      for (size_t i = 0; i < is.collectives.size(); ++i) {
        ASSERT_NEAR(is.AloneNsOf(step, i), was[i] * 1e9, 4) << step << " " << i;
        beside += is.computing_ns[step * is.collectives.size() + i] > 0 ? 1 : 0;
      }
    }
    for (int32_t worker = 0; worker < freed.profile.recorded_workers(); ++worker) {
      for (size_t step = 0; step < freed.profile.steps().size(); ++step) {
        const RecordedStep& now = freed.profile.steps_of(worker)[step];
        const RecordedStep& then = made.truth.steps_of(worker)[step];
        for (size_t op = 0; op < now.end_ns.size(); ++op) {
          if (freed.profile.operations()[op].resource != Resource::kWorker) continue;
          ASSERT_NEAR(now.end_ns[op] - now.start_ns[op], then.end_ns[op] - then.start_ns[op], 3)
              << worker << " " << step << " " << op;
        }
      }
    }
    at_once += CollectivesAtOnce(is, NeverStop).value() > 1 ? 1 : 0;
    // The replay is what was recorded, and predictions with faster links are those of the truth.
    const RecordingReplay of_freed =
        ReplayRecording(RecordingOf(freed.profile, NeverStop).value(), clocks, NeverStop).value();
    EXPECT_NEAR(of_freed.replayed_step_seconds / of_freed.recorded_step_seconds, 1, 1e-5);
    const auto seconds = [&](const Profile& profile) {
      const ThroughputDraft draft = {
          .scenario = ScenarioDraft{.workers = profile.recorded_workers(),
                                    .bandwidth_bytes_per_second = 1e9},
          .options = {.steps_per_worker = 60, .replications = 2}};
      return PredictThroughput(profile, ResolveThroughput(profile, draft).value(), NeverStop)
          ->predictions.front()
          .step_time.mean;
    };
    const double truth = seconds(made.truth);
    worst = std::max(worst, std::abs(seconds(freed.profile) / truth - 1));
    worst_otherwise = std::max(worst_otherwise, std::abs(seconds(made.recorded) / truth - 1));
  }
  std::cout << beside << " collectives beside computation, " << at_once
            << " recordings with several at once; other links: " << worst << " off at most, "
            << worst_otherwise << " with times as recorded\n";
  EXPECT_GT(beside, 1000);
  EXPECT_GT(at_once, 30);
  EXPECT_LT(worst, 1e-5);
  EXPECT_GT(worst_otherwise, 0.05);
}

TEST(RecordedPredictionTest, ARecordingSaysWhatItsCollectivesAreSlowedBy) {
  ProfileDraft draft = RandomProfile(3, 3, 4).content();
  draft.recording->collective_slowdown = 1.25;
  draft.recording->computing_ns = {1, 0, 1, 1};
  const Profile profile = Profile::Create(draft).value();
  const auto slowdown = [&](const AllReduceDraft& all_reduce) {
    return ResolveScenario(profile, {.workers = 5, .communication = all_reduce})
        ->all_reduce()
        .collective_slowdown;
  };
  EXPECT_EQ(ResolveScenario(profile, {.workers = 5})->all_reduce().collective_slowdown, 1.25);
  EXPECT_EQ(slowdown({}), 1.25);
  EXPECT_EQ(slowdown({.collective_slowdown = 1}), 1);
  EXPECT_EQ(slowdown({.collective_slowdown = 2}), 2);
  EXPECT_EQ(slowdown({.algorithm = CollectiveAlgorithm::kGloo, .concurrent_collectives = 2}), 1);
  EXPECT_EQ(
      slowdown({.contention = Contention{.overlapped = {.gamma1 = 1e9}, .alone = {.gamma1 = 1e9}},
                .threads = 1}),
      1);
  const auto fault = [&](double value, const std::vector<int64_t>& computing_ns) {
    ProfileDraft bad = draft;
    bad.recording->collective_slowdown = value;
    bad.recording->computing_ns = computing_ns;
    const std::vector<Fault> faults = DetailsOf(Profile::Create(bad).status()).faults;
    return absl::StrCat(faults.at(0).field, ": ", faults.at(0).description);
  };
  const std::vector<int64_t> sound = {0, 0, 0, 0};
  EXPECT_EQ(fault(0.5, sound), "recording.collective_slowdown: 0.5 is not from 1 to 100");
  EXPECT_EQ(fault(101, sound), "recording.collective_slowdown: 101 is not from 1 to 100");
  EXPECT_EQ(fault(std::nan(""), sound), "recording.collective_slowdown: nan is not from 1 to 100");
  EXPECT_EQ(fault(2, {}),
            "recording.collective_slowdown: 2, without the computing_ns that it is of");
  EXPECT_EQ(fault(2, {0, 0}),
            "recording.computing_ns: 2 where 4 belong to 4 steps and 1 collectives");
  const int64_t most = draft.recording->ShortestNsOf(2, 0);
  EXPECT_EQ(fault(2, {0, 0, -1, 0}),
            absl::StrCat("recording.computing_ns[2]: -1 is not from 0 to the ", most,
                         " that the collective took the worker that came last"));
  EXPECT_EQ(fault(1, {0, 0, most + 1, 0}),
            absl::StrCat("recording.computing_ns[2]: ", most + 1, " is not from 0 to the ", most,
                         " that the collective took the worker that came last"));
}

TEST(RecordedPredictionTest, ScenariosHaveTheRecordedSlowdownUnlessTheySayOtherwise) {
  ProfileDraft draft = RandomProfile(3, 3, 4).content();
  draft.recording->overlap_slowdown = 1.25;
  const Profile profile = Profile::Create(draft).value();
  const auto slowdown = [&](const AllReduceDraft& all_reduce) {
    return ResolveScenario(profile, {.workers = 5, .communication = all_reduce})
        ->all_reduce()
        .overlap_slowdown;
  };
  EXPECT_EQ(ResolveScenario(profile, {.workers = 5})->all_reduce().overlap_slowdown, 1.25);
  EXPECT_EQ(slowdown({}), 1.25);
  EXPECT_EQ(slowdown({.overlap_slowdown = 1}), 1);
  EXPECT_EQ(slowdown({.overlap_slowdown = 2}), 2);
  for (const double bad : {0.5, 101.0, std::nan("")}) {
    draft.recording->overlap_slowdown = bad;
    const absl::Status status = Profile::Create(draft).status();
    EXPECT_EQ(DetailsOf(status).faults.at(0).field, "recording.overlap_slowdown") << bad;
  }
}

TEST(RecordedPredictionTest, AContradictionOfClocksIsAtTheProfilesRecording) {
  ProfileDraft draft = Import({.ranks = 2, .steps = 8}).content();
  WorkerRecording& second = draft.recording->workers[1];
  const size_t collectives = draft.recording->collectives.size();
  for (size_t i = 3 * collectives; i < second.runs.size(); ++i) {
    second.runs[i].start_ns += 50'000'000;
    second.runs[i].end_ns += 50'000'000;
  }
  const Profile profile = Profile::Create(std::move(draft)).value();
  const DiagnosisQuery query = ResolveDiagnosis(profile, {}).value();
  const absl::StatusOr<Diagnosis> diagnosis = DiagnoseJob(profile, query, NeverStop);
  ASSERT_FALSE(diagnosis.ok());
  const ErrorDetails details = DetailsOf(diagnosis.status());
  EXPECT_EQ(details.reason, "CLOCKS_CONTRADICT");
  ASSERT_FALSE(details.faults.empty());
  EXPECT_EQ(details.faults.front().field, "profile.recording");
}

TEST(RecordedPredictionTest, WhatARecordingCannotBeAskedIsRefused) {
  const Profile profile = RandomProfile(1, 3, 2);
  const auto field = [&](const ScenarioDraft& draft) {
    return DetailsOf(ResolveScenario(profile, draft).status()).faults.at(0).field;
  };
  EXPECT_EQ(field({.communication = AllReduceDraft{.fidelity = Fidelity::kExpanded}}),
            "all_reduce.fidelity");
  EXPECT_EQ(field({.communication = ParameterServersDraft{}}), "parameter_servers");
}

}  // namespace
}  // namespace stepcast::recorded_prediction_test
