#include "server/handlers/shared_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/executor.h"
#include "core/base/stop_check.h"
#include "core/predict/run_memory.h"
#include "server/base/clock.h"
#include "tests/server/handlers/swift_clock.h"
#include "tests/server/store/shard_board.h"

namespace stepcast::server::shared_work_test {
namespace {

RunSummary RunOfPart(int64_t loop, size_t part) {
  RunSummary run;
  run.estimate.steps_per_second = static_cast<double>(loop * 1000) + static_cast<double>(part);
  run.simulated_operations = 1;
  return run;
}

// A computation of several loops, each of which has more parts the more the one before said.
class Computation {
 public:
  static constexpr int64_t kLoops = 5;

  explicit Computation(const Executor& executor, RunMemory* memory) : executor_(executor) {
    known_.memory = memory;
    known_.profile_digest = "d";
  }

  // Fails at the part of that number, in the loop of that.
  std::string Answer(int64_t bad_loop = -1, size_t bad_part = 0) {
    std::string answer;
    size_t parts = 20;
    for (int64_t loop = 0; loop < kLoops; ++loop) {
      std::vector<double> said(parts);
      std::vector<char> begun(parts, 0);
      executor_.ForEach(parts, [&](size_t i) {
        begun[i] = 1;
        if (loop == bad_loop && i >= bad_part && i % 2 == bad_part % 2) return false;
        const auto run =
            known_.Once(absl::StrCat(loop, " ", i), [&]() -> absl::StatusOr<RunSummary> {
              ++made;
              return RunOfPart(loop, i);
            });
        said[i] = (*run)->estimate.steps_per_second;
        return true;
      });
      if (loop == bad_loop) {
        for (size_t i = 0; i <= bad_part; ++i)
          if (begun[i] == 0) return absl::StrCat("part ", i, " was not begun");
        return "failed";
      }
      double sum = 0;
      for (const double value : said) sum += value;
      absl::StrAppend(&answer, sum, " ");
      parts = 20 + static_cast<size_t>(sum) % 30;
    }
    return answer;
  }

  std::atomic<int> made{0};

 private:
  const Executor& executor_;
  KnownRuns known_;
};

struct Participant {
  std::string answer;
  int made = 0;
  int64_t foreign = 0;
  bool is_over = false;
};

Participant TakePart(ShardBoard& board, bool helps, int64_t bad_loop = -1, size_t bad_part = 0) {
  const SwiftClock clock;
  const InOrder executor;
  SharedWork work({.store = board, .executor = executor, .clock = clock, .stop = NeverStop},
                  "operation", helps);
  Computation computation(work, &work);
  Participant participant{.answer = computation.Answer(bad_loop, bad_part)};
  participant.made = computation.made;
  participant.foreign = work.foreign_operations();
  participant.is_over = work.IsOver();
  return participant;
}

std::string Alone() {
  const InOrder executor;
  return Computation(executor, nullptr).Answer();
}

std::vector<Participant> Together(ShardBoard& board, size_t count) {
  std::vector<Participant> participants(count);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] { participants[i] = TakePart(board, i > 0); });
  for (std::thread& thread : threads) thread.join();
  return participants;
}

TEST(SharedWorkTest, HoweverManyTakePartTheAnswerIsTheSame) {
  for (const size_t count : {1, 2, 4, 8}) {
    ShardBoard board;
    for (const Participant& one : Together(board, count)) EXPECT_EQ(one.answer, Alone());
    EXPECT_EQ(board.loops(), static_cast<size_t>(Computation::kLoops));
  }
}

TEST(SharedWorkTest, WhoComesLaterFindsWhatWasMade) {
  ShardBoard board;
  const Participant first = TakePart(board, false);
  const Participant second = TakePart(board, false);
  EXPECT_EQ(second.answer, first.answer);
  EXPECT_EQ(first.foreign, 0);
  // But for the parts by which it sees how long one takes.
  EXPECT_LT(second.made, first.made / 3);
  EXPECT_EQ(second.foreign + second.made, first.made);
}

TEST(SharedWorkTest, AStoreThatFailsForgetsOrGarblesChangesNothing) {
  for (const int one_in : {1, 2, 5, 20}) {
    ShardBoard board;
    board.one_in_fails = one_in;
    for (const Participant& one : Together(board, 4)) EXPECT_EQ(one.answer, Alone());
  }
  ShardBoard board;
  board.garbles = true;
  for (const Participant& one : Together(board, 4)) EXPECT_EQ(one.answer, Alone());
}

TEST(SharedWorkTest, AHelperOfAnOperationThatIsOverKnowsIt) {
  ShardBoard board;
  board.is_over = true;
  EXPECT_TRUE(TakePart(board, true).is_over);
  const Participant owner = TakePart(board, false);
  EXPECT_FALSE(owner.is_over);
  EXPECT_EQ(owner.answer, Alone());
}

// As on one executor: the first part that fails is known, and all before it were begun.
TEST(SharedWorkTest, AllPartsBeforeTheFirstThatFailsAreBegun) {
  for (size_t part = 0; part < 20; ++part) {
    ShardBoard board;
    EXPECT_EQ(TakePart(board, false, 2, part).answer, "failed");
  }
}

TEST(SharedWorkTest, PartsThatKeepNothingAreMadeHere) {
  ShardBoard board;
  const SwiftClock clock;
  const InOrder executor;
  const SharedWork work({.store = board, .executor = executor, .clock = clock, .stop = NeverStop},
                        "operation", false);
  std::atomic<int> made = 0;
  for (int loop = 0; loop < 3; ++loop) {
    work.ForEachHere(30, [&](size_t) {
      ++made;
      return true;
    });
  }
  EXPECT_EQ(made, 90);
  EXPECT_EQ(board.loops(), 0u);
}

// Rows that nobody can have written: the loop is made here, as if nobody could be asked.
TEST(SharedWorkTest, PlansAndShardsThatCannotBeChangeNothing) {
  for (const ShardPlan& plan : {ShardPlan{.first = 2, .count = 20, .shards = -1},
                                {.first = 2, .count = 20, .shards = 0},
                                {.first = 2, .count = 20, .shards = int64_t{1} << 40},
                                {.first = -2, .count = 20, .shards = 2},
                                {.first = 20, .count = 20, .shards = 1},
                                {.first = 2, .count = 19, .shards = 3}}) {
    ShardBoard board;
    board.forced = plan;
    EXPECT_EQ(TakePart(board, false).answer, Alone());
  }
  for (const int64_t off : {-100, 100'000}) {
    ShardBoard board;
    board.off = off;
    EXPECT_EQ(TakePart(board, false).answer, Alone());
  }
}

// A shard that nobody has and nobody can take is waited for, but not for ever.
TEST(SharedWorkTest, AShardThatIsGoneIsMadeHere) {
  ShardBoard board;
  board.loses = true;
  EXPECT_EQ(TakePart(board, false).answer, Alone());
}

}  // namespace
}  // namespace stepcast::server::shared_work_test
