#include "core/network/logged_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/network/equal_share_link.h"

namespace stepcast::logged_link_test {
namespace {

constexpr uint64_t kSeeds = 20;
constexpr size_t kFlows = 3000;  // so many that one may rest while the log is trimmed twice
constexpr int kInstants =
    20'000;  // the log is trimmed after a thousand anchors, and again and again

// Sends the same flows over both links: chunk by chunk over the plain one, each as a whole over the
// one that keeps a log.
class Twins {
 public:
  explicit Twins(uint64_t seed)
      : random_({seed, 5}), plain_(kFlows), logged_(kFlows), flows_(kFlows) {}

  void Run() {
    for (int i = 0; i < kInstants; ++i) {
      now_ = std::min(next_start_, plain_next_);
      TakeEnded();
      if (now_ == next_start_) StartSome();
      plain_next_ = plain_.Settle(now_);
      logged_next_ = logged_.Settle(now_);
    }
    EXPECT_GT(flows_compared_, 1000);
  }

 private:
  struct FlowState {
    std::vector<Span> chunks;
    std::vector<Instant> ends;  // over the plain link; as many as chunks: the flow is idle
  };

  void TakeEnded() {
    std::vector<int32_t> ended;
    if (plain_next_ == now_) plain_.TakeEnded(now_, ended);
    for (const int32_t flow : ended) {
      FlowState& state = flows_[static_cast<size_t>(flow)];
      state.ends.push_back(now_);
      if (state.ends.size() < state.chunks.size())
        plain_.Start(flow, state.chunks[state.ends.size()]);
    }
    ended.clear();
    if (logged_next_ == now_) logged_.TakeEnded(now_, ended);
    for (const int32_t flow : ended) Compare(flow);
  }

  void Compare(int32_t flow) {
    const FlowState& state = flows_[static_cast<size_t>(flow)];
    ASSERT_EQ(state.ends.size(), state.chunks.size());
    LoggedLink::Reader reader = logged_.Read(flow);
    for (size_t i = 0; i < state.chunks.size(); ++i)
      ASSERT_EQ(reader.After(state.chunks[i]), state.ends[i]) << "chunk " << i;
    ++flows_compared_;
  }

  void StartSome() {
    for (uint64_t i = 0; i <= random_.Below(3); ++i) {
      const auto flow = static_cast<int32_t>(random_.Below(kFlows));
      FlowState& state = flows_[static_cast<size_t>(flow)];
      if (state.ends.size() < state.chunks.size()) continue;
      state = {};
      Span sum;
      for (uint64_t chunk = 0; chunk <= random_.Below(6); ++chunk) {
        state.chunks.push_back(Span{static_cast<int64_t>(1 + random_.Below(5'000))});
        sum += state.chunks.back();
      }
      plain_.Start(flow, state.chunks.front());
      logged_.Start(flow, sum);
    }
    next_start_ = now_ + Span{static_cast<int64_t>(1 + random_.Below(40'000))};
  }

  Random random_;
  EqualShareLink plain_;
  LoggedLink logged_;
  std::vector<FlowState> flows_;
  Instant now_;
  Instant next_start_;
  Instant plain_next_ = kEndOfTime;
  Instant logged_next_ = kEndOfTime;
  int flows_compared_ = 0;
};

TEST(LoggedLinkTest, TellsWhenEachChunkWouldHaveEndedHoweverOftenItForgets) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Twins(seed).Run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace stepcast::logged_link_test
