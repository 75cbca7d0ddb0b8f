#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/importing/chakra/chakra_trace.h"
#include "tests/core/importing/chakra_writer.h"
#include "tests/core/importing/rank_traces.h"

namespace stepcast::chakra_ranks_test {
namespace {

using ::stepcast::testing::WriteChakraJson;
using ::stepcast::testing::WriteChakraWire;
using ::testing::HasSubstr;
using Type = ChakraNode::Type;

constexpr int64_t kUs = 1000;

// A step of a job on GPUs: every rank's nodes, ids and order its own, times on its clock, and when
// each collective ended in true time.
struct Job {
  std::vector<std::vector<ChakraNode>> ranks;
  std::vector<int64_t> offsets_ns;
  std::vector<int64_t> ends_ns;
};

Job RandomJob(uint64_t seed) {
  Random random({seed, 77});
  const auto count = static_cast<int32_t>(2 + random.Below(4));
  const auto layers = static_cast<int64_t>(1 + random.Below(5));
  Job job{.ranks = std::vector<std::vector<ChakraNode>>(static_cast<size_t>(count))};
  std::vector<int64_t> now(job.ranks.size(), 1'000'000 * kUs);
  for (size_t rank = 0; rank < job.ranks.size(); ++rank)
    job.offsets_ns.push_back(static_cast<int64_t>(random.Below(900'000)) * kUs);
  const auto add = [&](size_t rank, ChakraNode node) {
    std::vector<ChakraNode>& nodes = job.ranks[rank];
    node.id = static_cast<int64_t>(1000 * rank + 7 * nodes.size());
    node.start_ns -= job.offsets_ns[rank];
    nodes.push_back(std::move(node));
    return nodes.back().id;
  };
  std::vector<int64_t> last(job.ranks.size(), -1);
  const auto compute = [&](size_t rank, const char* name) {
    ChakraNode node{.name = name, .type = Type::kComputation, .start_ns = now[rank]};
    if (last[rank] >= 0) node.data_dependencies = {last[rank]};
    node.duration_ns = static_cast<int64_t>(1 + random.Below(5000)) * kUs;
    now[rank] += node.duration_ns;
    last[rank] = add(rank, std::move(node));
  };
  int64_t free = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    int64_t ready = free;
    for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
      compute(rank, "backward");
      ready = std::max(ready, now[rank]);
    }
    const int64_t end = ready + static_cast<int64_t>(1 + random.Below(3000)) * kUs;
    for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
      const int64_t begin = std::max(free, now[rank]);
      add(rank, {.name = "nccl",
                 .type = Type::kCollective,
                 .data_dependencies = {last[rank]},
                 .start_ns = begin,
                 .duration_ns = end - begin,
                 .collective_type = layer % 2 == 0 ? 0 : 7,
                 .size_bytes = 4096 + layer});
    }
    free = end;
    job.ends_ns.push_back(end);
  }
  return job;
}

absl::StatusOr<MultiRankRecording> Import(const std::vector<std::string>& texts,
                                          const std::vector<std::string>& names,
                                          const StepVariationDraft& variation = {}) {
  std::deque<TextSource> sources;
  std::vector<RankTrace> traces;
  for (size_t i = 0; i < texts.size(); ++i)
    traces.push_back({.recording = &sources.emplace_back(texts[i]), .name = names[i]});
  return ImportChakraRanks(traces,
                           {.recording = {.model = "m",
                                          .batch_size = 8,
                                          .platform = {.bandwidth_bytes_per_second = 1e9}},
                            .variation = variation},
                           {}, NeverStop);
}

Fault RefusalOf(const std::vector<std::string>& texts, const std::vector<std::string>& names,
                const StepVariationDraft& variation = {}) {
  const absl::StatusOr<MultiRankRecording> found = Import(texts, names, variation);
  EXPECT_FALSE(found.ok());
  const ErrorDetails details = DetailsOf(found.status());
  EXPECT_EQ(details.reason, "IMPORT_INVALID");
  return details.faults.empty() ? Fault{} : details.faults.front();
}

TEST(ChakraRanksTest, EachRanksTimesAreThoseOfItsNodesWhateverTheirIdsOrderAndForm) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Job job = RandomJob(seed);
    std::vector<std::string> texts;
    std::vector<std::string> names;
    for (size_t rank = job.ranks.size(); rank-- > 0;) {
      texts.push_back(rank % 2 == 0 ? WriteChakraJson(job.ranks[rank], seed % 2 == 0)
                                    : WriteChakraWire(job.ranks[rank]));
      names.push_back(absl::StrCat("job.", rank, ".et"));
    }
    const absl::StatusOr<MultiRankRecording> found = Import(texts, names);
    ASSERT_TRUE(found.ok()) << found.status() << " seed " << seed;
    EXPECT_EQ(found->worker_count(), static_cast<int32_t>(job.ranks.size()));
    EXPECT_EQ(found->step_count(), 1);
    ASSERT_EQ(found->collectives.size(), job.ends_ns.size());
    for (int32_t rank = 0; rank < found->worker_count(); ++rank) {
      const std::vector<ChakraNode>& nodes = job.ranks[Index(rank)];
      EXPECT_EQ(found->step_begins_ns[Index(rank)].front(), nodes.front().start_ns);
      EXPECT_EQ(found->step_ends_ns[Index(rank)].front() + job.offsets_ns[Index(rank)],
                job.ends_ns.back());
      for (size_t i = 0; i < job.ends_ns.size(); ++i)
        EXPECT_EQ(found->run(0, i, rank).end_ns + job.offsets_ns[Index(rank)], job.ends_ns[i]);
      // Computations are as long as this rank's were, in the order of the program.
      const RecordedStep& step = found->profile.steps_of(rank).front();
      ASSERT_EQ(step.end_ns.size(), nodes.size());
      for (size_t op = 0; op < nodes.size(); ++op) {
        const bool computes = nodes[op].type == Type::kComputation;
        EXPECT_EQ(step.end_ns[op] - step.start_ns[op], computes ? nodes[op].duration_ns : 0)
            << "seed " << seed;
      }
    }
  }
}

TEST(ChakraRanksTest, TheRankIsThatOfTheName) {
  EXPECT_EQ(RankOfChakraName("run/rank_3.json"), 3);
  EXPECT_EQ(RankOfChakraName("resnet.12.et"), 12);
  EXPECT_EQ(RankOfChakraName("resnet.12.et.gz"), 12);
  EXPECT_EQ(RankOfChakraName("trace7.json"), 7);
  EXPECT_EQ(RankOfChakraName("trace.json"), -1);
  EXPECT_EQ(RankOfChakraName("trace"), -1);
  EXPECT_EQ(RankOfChakraName(".gz"), -1);
  EXPECT_EQ(RankOfChakraName(""), -1);
}

TEST(ChakraRanksTest, RanksThatDoNotFitAreRefusedWithTheFirstDifference) {
  const Job job = RandomJob(1);
  const std::string first = WriteChakraJson(job.ranks[0]);
  const std::vector<std::string> names = {"et.0.et", "et.1.et"};
  const auto refusal = [&](const std::vector<ChakraNode>& second) {
    return RefusalOf({first, WriteChakraWire(second)}, names);
  };
  const auto at_second = [](const char* text) {
    return ::testing::AllOf(::testing::Field(&Fault::field, "recordings[1]"),
                            ::testing::Field(&Fault::description, HasSubstr(text)));
  };
  std::vector<ChakraNode> nodes = job.ranks[1];
  for (ChakraNode& node : nodes) node.start_ns = 0;
  EXPECT_THAT(refusal(nodes), at_second("no node in it has a start_time_micros"));
  nodes = job.ranks[1];
  nodes[1].duration_ns = 0;
  EXPECT_THAT(refusal(nodes), at_second("has no duration_micros"));
  nodes = job.ranks[1];
  nodes[1].size_bytes = 4;
  EXPECT_THAT(refusal(nodes), at_second("collective 0 is an all_reduce of 4 bytes in rank 1's step "
                                        "and an all_reduce of 4096 bytes in rank 0's step"));
  nodes = job.ranks[1];
  nodes[1].collective_type = 7;
  EXPECT_THAT(refusal(nodes), at_second("is a reduce_scatter of 4096 bytes"));
  nodes = job.ranks[1];
  nodes[1].data_dependencies.clear();
  EXPECT_THAT(refusal(nodes), at_second("depends on no computation (data_deps)"));
  nodes = job.ranks[1];
  nodes[1].type = Type::kSend;
  EXPECT_THAT(refusal(nodes), at_second("sends to or receives from one worker"));
  EXPECT_THAT(RefusalOf({first, WriteChakraWire(job.ranks[1])}, {"et.0.et", "et.0.et"}),
              at_second("rank 0 is in recordings[0], too"));
  EXPECT_THAT(RefusalOf({first, WriteChakraWire(job.ranks[1])}, {"et.0.et", "et.2.et"}),
              at_second("it is of rank 2, and 2 traces were given: those of ranks 0 to 1"));
  EXPECT_THAT(RefusalOf({WriteChakraWire(job.ranks[1]), first}, {"et.1.et", "et"}).field,
              "recordings[1]");
  EXPECT_EQ(RefusalOf({first}, {"et.0.et"}).field, "recordings");
  EXPECT_EQ(RefusalOf({first, first}, names, {.own = 0.1}).field, "step_time_variation");
  EXPECT_EQ(RefusalOf({first, first}, names, {.steps = 3}).field, "steps");
}

TEST(ChakraRanksTest, SurvivesThreeThousandMutations) {
  int refused = 0;
  int imported = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 94});
    const Job job = RandomJob(seed % 20);
    std::vector<std::string> texts;
    std::vector<std::string> names;
    for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
      texts.push_back(seed % 2 == 0 ? WriteChakraJson(job.ranks[rank])
                                    : WriteChakraWire(job.ranks[rank]));
      names.push_back(absl::StrCat("et.", rank, ".et"));
    }
    testing::MutateOneOf(texts, random);
    const absl::StatusOr<MultiRankRecording> found = Import(texts, names);
    (found.ok() ? imported : refused) += 1;
    if (found.ok()) continue;
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument) << found.status();
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(imported, 100);
}

}  // namespace
}  // namespace stepcast::chakra_ranks_test
