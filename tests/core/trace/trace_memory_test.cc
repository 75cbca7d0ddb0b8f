// The memory that a trace takes while it is written: counted by the allocator, so this is a program
// of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>

#include "core/trace/trace.h"
#include "tests/core/engine/job_builder.h"
#include "tests/support/live_bytes.h"

namespace stepcast::trace_memory_test {
namespace {

using testing::live_bytes;
using testing::most_live_bytes;

struct Taken {
  int64_t most_live_bytes = 0;  // beyond what there was before
  int64_t text_bytes = 0;
  size_t largest_piece = 0;
};

Taken Trace(int32_t steps) {
  testing::JobBuilder job;
  int32_t last = job.Download(10'000);
  for (int i = 0; i < 50; ++i) last = job.Compute({700, 900}, {last, job.Download(5'000)});
  job.Upload(10'000, {last});
  const Profile profile = job.Build();
  const TraceQuery query =
      ResolveTrace(profile, {.scenario = {.workers = 3}, .options = {.steps_per_worker = steps}})
          .value();
  Taken taken;
  const int64_t before = live_bytes;
  most_live_bytes = before;
  const auto drop = [&taken](const std::string& piece) {
    taken.largest_piece = std::max(taken.largest_piece, piece.size());
    taken.text_bytes += static_cast<int64_t>(piece.size());
    return absl::OkStatus();
  };
  EXPECT_TRUE(WriteTrace(profile, query, drop, NeverStop).ok());
  taken.most_live_bytes = most_live_bytes - before;
  return taken;
}

TEST(TraceMemoryTest, DoesNotGrowWithTheNumberOfSteps) {
  const Taken few = Trace(20);
  const Taken many = Trace(2000);
  EXPECT_GT(many.text_bytes, 50 * few.text_bytes);
  EXPECT_EQ(many.largest_piece, TextPieces::kPieceBytes);
  // The notes of the engine itself on a run (its histogram of step times) may differ by some
  // kilobytes.
  EXPECT_LT(many.most_live_bytes, few.most_live_bytes + 64'000) << few.most_live_bytes;
  std::cout << "20 steps: " << few.text_bytes << " bytes of text, " << few.most_live_bytes
            << " live; 2000 steps: " << many.text_bytes << ", " << many.most_live_bytes << "\n";
}

}  // namespace
}  // namespace stepcast::trace_memory_test
