#include "core/trace/trace_events.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/random.h"

namespace stepcast::trace_events_test {
namespace {

constexpr size_t kFull = TextPieces::kPieceBytes;

TEST(TextPiecesTest, AllPiecesTogetherAreTheTextAndAllButTheLastAreFull) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random({seed});
    std::vector<std::string> pieces;
    std::string text;
    const auto take = [&pieces](std::string piece) {
      pieces.push_back(std::move(piece));
      return absl::OkStatus();
    };
    TextPieces cutter(take);
    for (uint64_t left = random.Below(40); left > 0; --left) {
      const std::string next(random.Below(random.Below(4) == 0 ? 3 * kFull : 2000),
                             static_cast<char>('a' + random.Below(26)));
      cutter.Append(next);
      text += next;
    }
    cutter.Finish();
    std::string together;
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_TRUE(i + 1 < pieces.size() ? pieces[i].size() == kFull
                                        : !pieces[i].empty() && pieces[i].size() <= kFull)
          << "seed " << seed;
      together += pieces[i];
    }
    EXPECT_TRUE(together == text) << "seed " << seed;
  }
}

TEST(TextPiecesTest, ASinkThatFailsIsNotAskedAgain) {
  int asked = 0;
  const auto refuse = [&asked](const std::string&) {
    return ++asked < 2 ? absl::OkStatus() : absl::CancelledError("enough");
  };
  TextPieces cutter(refuse);
  cutter.Append(std::string(5 * kFull, 'x'));
  cutter.Append("more");
  cutter.Finish();
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(cutter.status(), absl::CancelledError("enough"));
}

}  // namespace
}  // namespace stepcast::trace_events_test
