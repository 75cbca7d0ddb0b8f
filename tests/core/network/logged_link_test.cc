#include "core/network/logged_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/base/time.h"
#include "core/network/equal_share_link.h"
#include "core/network/first_come_network.h"
#include "core/network/logged_first_come_link.h"
#include "core/network/network.h"
#include "core/network/turns_link.h"

namespace stepcast::logged_link_test {
namespace {

constexpr uint64_t kSeeds = 20;
constexpr size_t kFlows = 3000;  // so many that one may rest while the log is trimmed twice
constexpr int kInstants =
    20'000;  // the log is trimmed after a thousand anchors, and again and again

// Sends the same flows over both links: chunk by chunk over the plain one, each as a whole over the
// one that keeps a log.
template <typename Plain, RememberingLink Logged>
class Twins {
 public:
  Twins(uint64_t seed, Plain plain, Logged logged)
      : random_({seed, 5}), plain_(std::move(plain)), logged_(std::move(logged)), flows_(kFlows) {}

  void Run() {
    for (int i = 0; i < kInstants; ++i) {
      now_ = std::min({next_start_, plain_next_, logged_next_});
      TakeEnded();
      const bool started = now_ == next_start_;
      if (started) StartSome();
      plain_next_ = plain_.Settle(now_);
      // The ends of its chunks are no instants of the other.
      if (now_ == logged_next_ || started) logged_next_ = logged_.Settle(now_);
      if (i % 16 == 0) CompareUnfinished();
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
    std::vector<int32_t> finished;
    if (plain_next_ == now_) plain_.TakeEnded(now_, ended);
    for (const int32_t flow : ended) {
      FlowState& state = flows_[static_cast<size_t>(flow)];
      state.ends.push_back(now_);
      if (state.ends.size() < state.chunks.size()) {
        plain_.Start(flow, state.chunks[state.ends.size()]);
      } else {
        finished.push_back(flow);
      }
    }
    ended.clear();
    if (logged_next_ == now_) logged_.TakeEnded(now_, ended);
    ASSERT_THAT(ended, ::testing::UnorderedElementsAreArray(finished));
    for (const int32_t flow : ended) Compare(flow);
  }

  void Compare(int32_t flow) {
    const FlowState& state = flows_[static_cast<size_t>(flow)];
    ASSERT_EQ(state.ends.size(), state.chunks.size());
    auto reader = logged_.Read(flow);
    for (size_t i = 0; i < state.chunks.size(); ++i)
      ASSERT_EQ(reader.After(state.chunks[i]), state.ends[i]) << "chunk " << i;
    ++flows_compared_;
  }

  // Half-way to the next event every flow has carried what ended chunks say, or is within the next.
  void CompareUnfinished() {
    const Instant next = std::min({next_start_, plain_next_, logged_next_});
    const Instant middle = now_ + Span{(next - now_).ticks / 2};
    logged_.CatchUp(middle);
    for (size_t flow = 0; flow < flows_.size(); ++flow) {
      const FlowState& state = flows_[flow];
      const bool is_active = state.ends.size() < state.chunks.size();
      ASSERT_EQ(logged_.IsActive(static_cast<int32_t>(flow)), is_active);
      if (!is_active) continue;
      int64_t ended = 0;
      for (size_t i = 0; i < state.ends.size(); ++i) ended += state.chunks[i].ticks;
      const int64_t carried = logged_.CarriedOf(static_cast<int32_t>(flow), middle).ticks;
      ASSERT_GE(carried, ended);
      ASSERT_LT(carried, ended + state.chunks[state.ends.size()].ticks);
    }
    ASSERT_EQ(logged_.CarriedBy(middle), plain_.CarriedBy(middle, 0));
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
      if constexpr (requires { logged_.Start(flow, sum); }) {
        logged_.Start(flow, sum);
      } else {
        auto& chunks = logged_.Start(flow);
        for (const Span chunk : state.chunks) chunks.Add(chunk);
      }
    }
    next_start_ = now_ + Span{static_cast<int64_t>(1 + random_.Below(40'000))};
  }

  Random random_;
  Plain plain_;
  Logged logged_;
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
    Twins(seed, EqualShareLink(kFlows), LoggedLink(kFlows)).Run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(LoggedFirstComeLinkTest, TellsWhenEachChunkWouldHaveEnded) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Twins(seed, FirstComeNetwork(1, kFlows, EqualShareLink(kFlows)), LoggedFirstComeLink(kFlows))
        .Run();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(LoggedTurnsLinkTest, TellsWhenEachChunkWouldHaveEndedHoweverLongTheTurns) {
  // Chunks are up to 5,000 long.
  for (const int64_t turn : {1, 7, 100, 1'000, 2'500, 20'000}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(::testing::Message() << "turns of " << turn << ", seed " << seed);
      Twins(seed, TurnsLink(kFlows, Span{turn}), LoggedTurnsLink(kFlows, Span{turn})).Run();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace stepcast::logged_link_test
