#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "tests/core/importing/pytorch_writer.h"
#include "tests/core/importing/rank_traces.h"

namespace stepcast::pytorch_ranks_test {
namespace {

using ::testing::HasSubstr;
using testing::RankTraces;
using testing::RankTracesForm;
using testing::WriteRankTraces;

PyTorchTraceOptions Options() {
  return {.recording = {
              .model = "toy", .batch_size = 8, .platform = {.bandwidth_bytes_per_second = 1e9}}};
}

absl::StatusOr<MultiRankRecording> Import(const std::vector<std::string>& texts,
                                          const std::vector<std::string>& names = {}) {
  std::deque<TextSource> sources;
  std::vector<RankTrace> traces;
  for (size_t i = 0; i < texts.size(); ++i) {
    traces.push_back({.recording = &sources.emplace_back(texts[i]),
                      .name = names.empty() ? absl::StrCat("t", i, ".json") : names[i]});
  }
  return ImportPyTorchRanks(traces, Options(), {}, NeverStop);
}

void ExpectRefused(const std::vector<std::string>& texts, const std::string& field,
                   const std::string& description) {
  const absl::StatusOr<MultiRankRecording> found = Import(texts);
  ASSERT_FALSE(found.ok());
  const ErrorDetails details = DetailsOf(found.status());
  EXPECT_EQ(details.reason, "IMPORT_INVALID");
  ASSERT_FALSE(details.faults.empty());
  EXPECT_EQ(details.faults.front().field, field);
  EXPECT_THAT(details.faults.front().description, HasSubstr(description));
}

TEST(PyTorchRanksTest, MatchesStepsAndCollectivesInWhateverOrderTracesCome) {
  const RankTracesForm form{.clock_offsets_ns = {0, 3'000'000'000, -7'000}};
  const RankTraces made = WriteRankTraces(form);
  const absl::StatusOr<MultiRankRecording> found =
      Import({made.texts[2], made.texts[0], made.texts[1]});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->workers, (std::vector<std::string>{"rank 0", "rank 1", "rank 2"}));
  EXPECT_EQ(found->step_numbers, (std::vector<int64_t>{7, 8, 9, 10}));
  EXPECT_EQ(found->collectives,
            (std::vector<MatchedCollective>{
                {.name = "broadcast/0", .kind = Collective::kBroadcast, .size_bytes = 256},
                {.name = "all_reduce/1", .size_bytes = 24'000},
                {.name = "all_reduce/2", .size_bytes = 1'480},
                {.name = "all_reduce/3", .size_bytes = 3'600}}));
  constexpr int64_t kBase = 1'767'189'312'000'000'000;
  for (int32_t rank = 0; rank < 3; ++rank) {
    const int64_t offset = kBase - form.clock_offsets_ns[Index(rank)];
    for (int32_t step = 0; step < 4; ++step) {
      EXPECT_EQ(found->step_begins_ns[Index(rank)][Index(step)],
                made.step_begins_ns[Index(rank)][Index(step) + 2] + offset);
      EXPECT_EQ(found->step_ends_ns[Index(rank)][Index(step)],
                made.step_ends_ns[Index(rank)][Index(step) + 2] + offset);
      // Collectives end on all ranks at once.
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(found->run(step, i, rank).end_ns - offset, found->run(step, i, 0).end_ns - kBase);
      }
    }
    EXPECT_EQ(found->profile.steps_of(rank).size(), 4U);
  }
}

TEST(PyTorchRanksTest, TakesTheRankOfTheName) {
  const RankTraces made = WriteRankTraces({.ranks = 2, .names_rank = false});
  const absl::StatusOr<MultiRankRecording> found =
      Import(made.texts, {"run/rank1.json.gz", "run/rank0.json.gz"});
  ASSERT_TRUE(found.ok()) << found.status();
  constexpr int64_t kBase = 1'767'189'312'000'000'000;
  EXPECT_EQ(found->step_begins_ns[1].front(), made.step_begins_ns[0][2] + kBase);
  ExpectRefused(made.texts, "recordings[0]", "neither it nor its name (rank3.json) says its rank");
}

// Ranks 0 and 2 of three, of which the last is slow: clocks and times are as with all of them.
TEST(PyTorchRanksTest, SomeOfTheRanksAreASample) {
  const RankTraces made =
      WriteRankTraces({.straggler = 1.5, .clock_offsets_ns = {0, 5'000, -7'000}});
  const absl::StatusOr<MultiRankRecording> all = Import(made.texts);
  const absl::StatusOr<MultiRankRecording> sample = Import({made.texts[0], made.texts[2]});
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(all->job_workers, 0);
  EXPECT_FALSE(all->profile.recording()->is_sample());
  EXPECT_EQ(sample->job_workers, 3);
  EXPECT_TRUE(sample->profile.recording()->is_sample());
  EXPECT_EQ(sample->profile.recording()->size(), 3);
  EXPECT_EQ(sample->workers, (std::vector<std::string>{"rank 0", "rank 2"}));
  EXPECT_THAT(sample->notes.back(), HasSubstr("A sample: 2 of the job's 3 ranks."));
  for (int32_t step = 0; step < sample->step_count(); ++step) {
    for (size_t i = 0; i < sample->collectives.size(); ++i)
      EXPECT_EQ(sample->run(step, i, 1), all->run(step, i, 2));
  }
  // The slowest is among them, so its collectives waited for nobody else: the points are the same,
  // and of as many workers as the job had.
  EXPECT_EQ(MeasuredCollectivesOf(*sample->profile.recording()),
            MeasuredCollectivesOf(*all->profile.recording()));
  EXPECT_EQ(MeasuredCollectivesOf(*sample->profile.recording()).front().workers, 3);
}

TEST(PyTorchRanksTest, NamesTheFirstDifference) {
  const RankTraces made = WriteRankTraces({});
  ExpectRefused({made.texts[0], made.texts[1], made.texts[1]}, "recordings[2]",
                "rank 1 is in recordings[1], too");
  const std::string of_four =
      absl::StrReplaceAll(made.texts[1], {{R"("world_size": 3)", R"("world_size": 4)"}});
  ExpectRefused({made.texts[0], of_four, made.texts[2]}, "recordings[1]",
                "rank 1 is one of 4 workers, and rank 0 one of 3");
  const std::string beyond = absl::StrReplaceAll(made.texts[1], {{R"("rank": 1)", R"("rank": 3)"}});
  ExpectRefused({made.texts[0], beyond}, "recordings[1]",
                "rank 3 is not below 3, the number of workers that its recording says");
  ExpectRefused({made.texts[0]}, "recordings", "1 traces are not from 2 to 128");
  const auto with = [&](const RankTracesForm& form) {
    return std::vector<std::string>{made.texts[0], made.texts[1], WriteRankTraces(form).texts[2]};
  };
  ExpectRefused(with({.elements = {1000, 5000, 300, 71, 900}}), "recordings[2]",
                "collective 2 is an all_reduce of 1484 bytes in rank 2's ProfilerStep#7 and an "
                "all_reduce of 1480 bytes in rank 0's ProfilerStep#7");
  ExpectRefused(with({.broadcasts = false}), "recordings[2]",
                "rank 2's ProfilerStep#7 has 3 collectives, rank 0's ProfilerStep#7 4");
  std::string later = made.texts[2];
  for (int step = 10; step >= 5; --step) {
    later = absl::StrReplaceAll(later, {{absl::StrCat("ProfilerStep#", step, "\""),
                                         absl::StrCat("ProfilerStep#", step + 90, "\"")}});
  }
  ExpectRefused({made.texts[0], made.texts[1], later}, "recordings[2]",
                "rank 2 has 4 steps from ProfilerStep#97, and rank 0 has none of them");
  ExpectRefused({made.texts[0], "{", made.texts[2]}, "recordings[1]", "");
}

// On a GPU a collective ran when its kernel did, which was launched long before.
TEST(PyTorchRanksTest, TakesTheTimesOfKernels) {
  const testing::PyTorchForm form{
      .gpu = true, .workers = 2, .collective_us = 700, .bucket_cap_bytes = 1'048'576};
  const std::string first = testing::WritePyTorchTrace(form).text;
  const std::string second = absl::StrReplaceAll(first, {{R"("rank": 0)", R"("rank": 1)"}});
  const absl::StatusOr<MultiRankRecording> found = Import({second, first});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->collectives.size(), 2U);
  EXPECT_EQ(found->step_count(), 3);
  for (int32_t step = 0; step < 3; ++step) {
    for (size_t i = 0; i < 2; ++i)
      EXPECT_EQ(found->run(step, i, 1).end_ns - found->run(step, i, 1).start_ns, 700'000);
  }
  // No kernel of a collective.
  const std::string fewer =
      absl::StrReplaceAll(second, {{"ncclKernel_AllReduce_RING_LL_Sum_float", "void other"}});
  ExpectRefused({first, fewer}, "recordings[1]",
                "ProfilerStep#7 launched 0 kernels for 2 collectives");
}

// Ranks that share only some steps are matched on those.
TEST(PyTorchRanksTest, KeepsTheStepsThatAllRanksHave) {
  const RankTraces made = WriteRankTraces({.steps = 8});
  std::string fewer = made.texts[1];
  fewer = absl::StrReplaceAll(fewer, {{"ProfilerStep#12", "ProfilerStep#99"}});
  const absl::StatusOr<MultiRankRecording> found = Import({made.texts[0], fewer, made.texts[2]});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->step_numbers, (std::vector<int64_t>{7, 8, 9, 10, 11}));
  EXPECT_EQ(found->profile.steps_of(1).size(), 5U);
}

// A piece that takes no time on one rank alone is there with none.
TEST(PyTorchRanksTest, ProgramsThatAreAlikeAreOne) {
  const RankTraces made = WriteRankTraces({.ranks = 2});
  const absl::StatusOr<MultiRankRecording> whole = Import(made.texts);
  ASSERT_TRUE(whole.ok()) << whole.status();
  // Without its annotation there is no optimizer on rank 1, only the rest of the step.
  const std::string without =
      absl::StrReplaceAll(made.texts[1], {{"Optimizer.step#SGD.step", "something else"}});
  const absl::StatusOr<MultiRankRecording> found = Import({made.texts[0], without});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->profile.operations().size(), whole->profile.operations().size());
  for (size_t i = 0; i < found->profile.operations().size(); ++i) {
    const std::string& name = found->profile.operations()[i].name;
    EXPECT_EQ(name, whole->profile.operations()[i].name);
    if (name != "optimizer") continue;
    EXPECT_EQ(found->profile.steps_of(1)[0].start_ns[i], found->profile.steps_of(1)[0].end_ns[i]);
    EXPECT_LT(found->profile.steps_of(0)[0].start_ns[i], found->profile.steps_of(0)[0].end_ns[i]);
  }
}

// Bytes changed, taken out and put in twice, in any of the ranks: refused or imported, never a
// crash.
TEST(PyTorchRanksTest, SurvivesThreeThousandMutations) {
  const RankTraces made =
      WriteRankTraces({.ranks = 2, .steps = 4, .elements = {100, 50}, .buckets = {1, 1}});
  int refused = 0;
  int imported = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 93});
    std::vector<std::string> texts = made.texts;
    testing::MutateOneOf(texts, random);
    const absl::StatusOr<MultiRankRecording> found = Import(texts);
    (found.ok() ? imported : refused) += 1;
    if (found.ok()) continue;
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument) << found.status();
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(imported, 300);
}

}  // namespace
}  // namespace stepcast::pytorch_ranks_test
