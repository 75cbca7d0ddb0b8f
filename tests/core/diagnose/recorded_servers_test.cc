// Simulated recordings of several workers with parameter servers, written as TensorFlow records
// them: imported, their clocks put on one time, replayed, and asked about.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/diagnose/diagnosis.h"
#include "core/importing/tensorflow/tensorflow_profile.h"
#include "core/predict/throughput.h"
#include "core/replay/job_recording_report.h"
#include "tests/core/importing/random_training.h"
#include "tests/core/importing/rank_traces.h"
#include "tests/support/run_metadata_writer.h"

namespace stepcast::recorded_servers_test {
namespace {

using testing::RandomTraining;
using testing::WriteRunMetadata;

constexpr int64_t kEpochNs = 1'600'000'000'000'000'000;

RecordingOptions Options() {
  return {.model = "m", .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e8}};
}

// A job whose workers each have times of their own, begun within 50 ms, every step after the last.
Profile RandomJob(uint64_t seed, int32_t workers) {
  Random random({seed, 41});
  ProfileDraft draft =
      RandomTraining(seed, {.servers = 2, .variables = 5, .steps = 5, .tick_ns = 100}).content();
  draft.platform = Options().platform;
  while (draft.steps.size() < 5) draft.steps.push_back(draft.steps.front());
  JobRecording& recording = draft.recording.emplace();
  const std::vector<RecordedStep> own = draft.steps;
  for (int32_t worker = 0; worker < workers; ++worker) {
    WorkerRecording& part = recording.workers.emplace_back();
    part.name = absl::StrCat("rank ", worker);
    const auto slower = static_cast<int64_t>(4 + random.Below(4));
    const auto begin = static_cast<int64_t>(random.Below(50'000'000));
    for (size_t step = 0; step < own.size(); ++step) {
      RecordedStep recorded = own[(step + static_cast<size_t>(worker)) % own.size()];
      for (std::vector<int64_t>* times : {&recorded.start_ns, &recorded.end_ns}) {
        for (int64_t& time : *times) time = time / 4 * slower;
      }
      if (worker > 0) part.steps.push_back(std::move(recorded));
      part.step_begins_ns.push_back(kEpochNs + begin + static_cast<int64_t>(step));
      part.step_ends_ns.push_back(kEpochNs + begin + static_cast<int64_t>(step) + 1);
    }
  }
  return Profile::Create(std::move(draft)).value();
}

// What the workers record of the job as the engine runs it: one file each. A worker's clock reads
// the true time less its offset, and so do all servers' clocks less theirs, in microseconds.
struct SimulatedRecording {
  std::vector<std::string> files;
  // In true time, by worker and step.
  std::vector<std::vector<int64_t>> begins_ns;
  std::vector<std::vector<Span>> ends;  // from the first begin
  int64_t first_ns = 0;
};

class RecordingWriter : public TraceSink {
 public:
  RecordingWriter(const Profile& job, const Program& program)
      : job_(job), program_(program), steps_(static_cast<size_t>(job.recorded_workers())) {}

  void OnStep(std::span<const ChunkRecord> chunks) override {
    const size_t size = job_.operations().size();
    // Who has ended goes on until all have.
    if (static_cast<size_t>(chunks.front().step) >= job_.steps().size()) return;
    RecordedStep step{.start_ns = std::vector<int64_t>(size, INT64_MAX),
                      .end_ns = std::vector<int64_t>(size, 0)};
    for (const ChunkRecord& chunk : chunks) {
      const auto op = static_cast<size_t>(program_.source(chunk.op));
      step.start_ns[op] = std::min(step.start_ns[op], NsOf(chunk.start));
      step.end_ns[op] = std::max(step.end_ns[op], NsOf(chunk.end));
    }
    // Of what is recorded as it was the length is exact.
    const auto worker = static_cast<size_t>(chunks.front().worker);
    const RecordedStep& was =
        job_.steps_of(chunks.front().worker)[static_cast<size_t>(chunks.front().step)];
    for (size_t op = 0; op < size; ++op) {
      if (!IsTransfer(job_.operations()[op].resource))
        step.end_ns[op] = step.start_ns[op] + was.end_ns[op] - was.start_ns[op];
    }
    steps_[worker].push_back(std::move(step));
  }

  // A worker's file.
  std::string FileOf(size_t worker, int64_t first_ns, int64_t offset_us, int64_t server_offset_us) {
    ProfileDraft draft = job_.content();
    draft.recording.reset();
    std::string file;
    for (RecordedStep step : steps_[worker]) {
      const int64_t begin = *std::min_element(step.start_ns.begin(), step.start_ns.end());
      const int64_t epoch_us = (first_ns + begin) / 1000;
      for (std::vector<int64_t>* times : {&step.start_ns, &step.end_ns}) {
        for (int64_t& time : *times) time += first_ns - epoch_us * 1000;
      }
      draft.steps = {step};
      file += WriteRunMetadata(Profile::Create(draft).value(), 0,
                               {.epoch_us = epoch_us - offset_us,
                                .server_ahead_us = offset_us - server_offset_us,
                                .nanoseconds = true,
                                .worker = static_cast<int32_t>(worker)})
                  .value();
    }
    return file;
  }

 private:
  static int64_t NsOf(Instant at) { return std::llround(ToSeconds(at - Instant{}) * 1e9); }

  const Profile& job_;
  const Program& program_;
  std::vector<std::vector<RecordedStep>> steps_;  // by worker
};

SimulatedRecording Record(const Profile& job, const std::vector<int64_t>& offsets_us,
                          int64_t server_offset_us) {
  const MultiRankRecording recording = RecordingOf(job, NeverStop).value();
  const std::vector<NodeClock> right(recording.workers.size());
  const RecordedJob made = RecordedJobOf(recording, right, NeverStop).value();
  RecordingWriter writer(job, *made.program.program);
  RunOptions options = made.options;
  options.trace = &writer;
  const RunResult result = Simulate(made.job, options, NeverStop).value();
  SimulatedRecording simulated;
  simulated.first_ns = INT64_MAX;
  for (const std::vector<int64_t>& begins : recording.step_begins_ns)
    simulated.first_ns = std::min(simulated.first_ns, begins.front());
  for (size_t worker = 0; worker < recording.workers.size(); ++worker) {
    simulated.files.push_back(
        writer.FileOf(worker, simulated.first_ns, offsets_us[worker], server_offset_us));
    std::vector<int64_t>& begins = simulated.begins_ns.emplace_back();
    std::vector<Span>& ends = simulated.ends.emplace_back();
    Instant begin = Instant{} + options.start_offsets[worker];
    for (size_t step = 0; step < job.steps().size(); ++step) {
      const Instant end = result.step_ends[worker][step];
      begins.push_back(simulated.first_ns + std::llround(ToSeconds(begin - Instant{}) * 1e9));
      ends.push_back(end - Instant{});
      begin = end;
    }
  }
  return simulated;
}

absl::StatusOr<MultiRankRecording> Import(const std::vector<std::string>& files,
                                          const std::vector<std::string>& names = {}) {
  std::deque<TextSource> sources;
  std::vector<RankTrace> traces;
  for (size_t i = 0; i < files.size(); ++i) {
    traces.push_back({.recording = &sources.emplace_back(files[i]),
                      .name = names.empty() ? absl::StrCat("part", i) : names[i]});
  }
  return ImportRunMetadataOfWorkers(traces, nullptr, Options(), {}, NeverStop);
}

TEST(RecordedServersTest, EveryLengthAndBeginComesBackAndTheReplayIsTheSimulationToTheTick) {
  int64_t steps = 0;
  int64_t lengths = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto workers = static_cast<int32_t>(2 + seed % 4);
    const Profile job = RandomJob(seed, workers);
    const SimulatedRecording made =
        Record(job, std::vector<int64_t>(static_cast<size_t>(workers)), 0);
    // In whatever order files come.
    std::vector<std::string> files = made.files;
    std::rotate(files.begin(), files.begin() + 1, files.end());
    const absl::StatusOr<MultiRankRecording> imported = Import(files);
    ASSERT_TRUE(imported.ok()) << imported.status() << DetailsOf(imported.status()).faults.size();
    ASSERT_EQ(imported->worker_count(), workers);
    EXPECT_EQ(imported->profile.parameter_servers(), job.parameter_servers());
    std::map<std::string, size_t> place;
    for (size_t i = 0; i < imported->profile.operations().size(); ++i)
      place[imported->profile.operations()[i].name] = i;
    for (int32_t worker = 0; worker < workers; ++worker) {
      for (size_t step = 0; step < job.steps().size(); ++step) {
        const RecordedStep& is = imported->profile.steps_of(worker)[step];
        const RecordedStep& was = job.steps_of(worker)[step];
        EXPECT_EQ(imported->step_begins_ns[Index(worker)][step],
                  made.begins_ns[Index(worker)][step]);
        for (size_t op = 0; op < was.end_ns.size(); ++op) {
          if (IsTransfer(job.operations()[op].resource)) continue;
          const size_t at = place.at(job.operations()[op].name);
          ASSERT_EQ(is.end_ns[at] - is.start_ns[at], was.end_ns[op] - was.start_ns[op]);
          ++lengths;
        }
      }
    }
    const RecordingReplay replay =
        ReplayRecording(*imported, std::vector<NodeClock>(Index(workers)), NeverStop).value();
    for (size_t worker = 0; worker < Index(workers); ++worker) {
      for (size_t step = 0; step < made.ends[worker].size(); ++step, ++steps)
        ASSERT_EQ(replay.replayed_ends[worker][step].ticks, made.ends[worker][step].ticks)
            << worker << " " << step;
    }
  }
  std::cout << lengths << " lengths, " << steps << " steps\n";
  EXPECT_GT(steps, 3000);
}

TEST(RecordedServersTest, ClocksSecondsApartAreFoundWithinTheirIntervals) {
  constexpr int kJobs = 100;
  double gap = 0;
  double unaligned = 0;
  int bounded = 0;
  for (uint64_t seed = 1; seed <= kJobs; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 43});
    const auto workers = static_cast<int32_t>(2 + seed % 3);
    const Profile job = RandomJob(seed, workers);
    std::vector<int64_t> offsets{0};
    const auto pick = [&] { return static_cast<int64_t>(random.Below(8'000'000)) - 4'000'000; };
    for (int32_t worker = 1; worker < workers; ++worker) offsets.push_back(pick());
    const int64_t server_offset = pick();
    const absl::StatusOr<MultiRankRecording> imported =
        Import(Record(job, offsets, server_offset).files);
    ASSERT_TRUE(imported.ok()) << imported.status();
    const absl::StatusOr<JobRecordingReport> report = ReportOnRecording(*imported, NeverStop);
    ASSERT_TRUE(report.ok()) << report.status();
    ASSERT_LE(report->servers.size(), Index(job.parameter_servers()));
    ASSERT_GE(report->servers.size(), 1U);
    const auto expect_within = [&](const NodeClock& clock, int64_t offset_us) {
      // What is not bounded is the largest number there is.
      EXPECT_LE(clock.least_offset_ns, offset_us * 1000 + 1000);
      EXPECT_GE(clock.most_offset_ns, offset_us * 1000 - 1000);
      bounded +=
          clock.least_offset_ns != -kUnboundedOffset && clock.most_offset_ns != kUnboundedOffset;
    };
    for (size_t worker = 1; worker < offsets.size(); ++worker)
      expect_within(report->workers[worker].clock, offsets[worker]);
    for (const ServerReport& server : report->servers) expect_within(server.clock, server_offset);
    gap += std::abs(report->gap()) / kJobs;
    unaligned +=
        std::abs(*report->unaligned_step_seconds / report->recorded_step_seconds - 1) / kJobs;
    // What is stored says the same.
    const Profile again = Profile::Create(imported->profile.content()).value();
    EXPECT_EQ(
        ReportOnRecording(RecordingOf(again, NeverStop).value(), NeverStop)->replayed_step_seconds,
        report->replayed_step_seconds);
  }
  // Transfers take tens of milliseconds here, and leave offsets as open; so does what a server did
  // last where its clock is bounded on one side only.
  std::cout << "mean gap " << gap << ", with clocks as read " << unaligned << ", " << bounded
            << " clocks bounded on both sides\n";
  EXPECT_LT(gap, 0.1);
  EXPECT_GT(unaligned, 3 * gap);
  EXPECT_GT(bounded, 150);
}

// Each recorded worker's steps are its own, drawn by itself; recommended and predicted as any job.
TEST(RecordedServersTest, PredictionsHaveEachWorkersOwnSteps) {
  const Profile job = RandomJob(7, 3);
  const auto steps_per_second = [&](const Profile& profile, int32_t workers) {
    const ThroughputDraft draft = {
        .scenario = ScenarioDraft{.workers = workers, .bandwidth_bytes_per_second = 1e15},
        .options = {.steps_per_worker = 300, .replications = 2}};
    return PredictThroughput(profile, ResolveThroughput(profile, draft).value(), NeverStop)
        ->predictions.front()
        .steps_per_second;
  };
  // Links that are nearly free: what each does alone adds up.
  double alone = 0;
  for (const int32_t worker : {0, 1, 2, 0, 1}) alone += steps_per_second(job.OfWorker(worker), 1);
  EXPECT_NEAR(steps_per_second(job, 5) / alone, 1, 0.02);
  EXPECT_GT(std::abs(steps_per_second(job.OfWorker(0), 5) / alone - 1), 0.05);
  const DiagnosisQuery query =
      ResolveDiagnosis(job, {.options = {.steps_per_worker = 50, .replications = 2}}).value();
  EXPECT_EQ(query.scenario.workers, 3);
  EXPECT_TRUE(query.scenario.has_servers());
  const Profile imported = Import(Record(job, {0, 3'000'000, -1'000'000}, 500'000).files)->profile;
  const absl::StatusOr<Diagnosis> diagnosis = DiagnoseJob(imported, query, NeverStop);
  ASSERT_TRUE(diagnosis.ok()) << diagnosis.status();
  ASSERT_TRUE(diagnosis->recording.has_value());
  EXPECT_EQ(diagnosis->recording->report.workers.size(), 3U);
  EXPECT_FALSE(diagnosis->recording->overlap_slowdown.has_value());
  EXPECT_FALSE(diagnosis->what_ifs.empty());
}

TEST(RecordedServersTest, FilesThatDoNotFitTogetherAreRefusedAndNamed) {
  const std::vector<std::string> files = Record(RandomJob(7, 3), {0, 0, 0}, 0).files;
  const auto told = [&](const std::vector<std::string>& of,
                        const std::vector<std::string>& names = {}) {
    return testing::Told(Import(of, names).status());
  };
  EXPECT_EQ(told({files[0]}),
            "IMPORT_INVALID recordings: 1 traces are not from 2 to 128, one a rank");
  EXPECT_EQ(told({files[0], files[1], files[1]}),
            "IMPORT_INVALID recordings[2]: rank 1 is in recordings[1], too: one trace a rank");
  EXPECT_EQ(
      told({files[0], files[2]}),
      "IMPORT_INVALID recordings[1]: it is of rank 2, and 2 traces were given: those of ranks "
      "0 to 1 are needed, since nothing says how many there are");
  // A name goes before a task.
  EXPECT_EQ(told({files[0], files[2]}, {"rank0.pb", "rank1.pb"}), "");
  EXPECT_EQ(told({files[0], "no recording"}).substr(0, 29), "IMPORT_INVALID recordings[1]:");
  const std::string other = Record(RandomJob(8, 2), {0, 0}, 0).files[1];
  EXPECT_EQ(told({files[0], other}).substr(0, 29), "IMPORT_INVALID recordings[1]:");
}

TEST(RecordedServersTest, SurvivesThreeThousandMutations) {
  int refused = 0;
  int imported = 0;
  std::vector<std::vector<std::string>> sound;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto workers = static_cast<int32_t>(2 + seed % 2);
    sound.push_back(Record(RandomJob(seed, workers),
                           std::vector<int64_t>(static_cast<size_t>(workers), 1000), 0)
                        .files);
  }
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 96});
    std::vector<std::string> files = sound[seed % sound.size()];
    testing::MutateOneOf(files, random);
    const absl::StatusOr<MultiRankRecording> found = Import(files);
    (found.ok() ? imported : refused) += 1;
    if (!found.ok()) {
      EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument) << found.status();
      EXPECT_FALSE(DetailsOf(found.status()).faults.empty());
      continue;
    }
    // An import is reported on, or refused with its place.
    const absl::StatusOr<JobRecordingReport> report = ReportOnRecording(*found, NeverStop);
    if (report.ok()) {
      EXPECT_GT(report->replayed_step_seconds, 0);
      EXPECT_TRUE(std::isfinite(report->gap()));
    } else {
      EXPECT_FALSE(DetailsOf(report.status()).reason.empty()) << report.status();
    }
  }
  std::cout << imported << " imported, " << refused << " refused\n";
  EXPECT_GT(refused, 500);
  EXPECT_GT(imported, 100);
}

TEST(RecordedServersTest, WhatAStoredRecordingCannotBeIsRefused) {
  const ProfileDraft sound = RandomJob(7, 3).content();
  const auto field = [&](auto change) {
    ProfileDraft draft = sound;
    change(*draft.recording);
    const absl::Status status = Profile::Create(std::move(draft)).status();
    return status.ok() ? "" : DetailsOf(status).faults.front().field;
  };
  EXPECT_EQ(field([](JobRecording& /*recording*/) {}), "");
  EXPECT_EQ(field([](JobRecording& recording) {
              recording.collectives = {{.kind = Collective::kAllReduce, .size_bytes = 1}};
            }),
            "recording.collectives");
  EXPECT_EQ(field([](JobRecording& recording) { recording.overlap_slowdown = 2; }),
            "recording.overlap_slowdown");
  EXPECT_EQ(field([](JobRecording& recording) { recording.workers[1].server_shifts_ns = {1}; }),
            "recording.workers[1].server_shifts_ns");
  EXPECT_EQ(field([](JobRecording& recording) {
              recording.workers[1].runs = {{.start_ns = 1, .end_ns = 2}};
            }),
            "recording.workers[1].runs");
}

}  // namespace
}  // namespace stepcast::recorded_servers_test
