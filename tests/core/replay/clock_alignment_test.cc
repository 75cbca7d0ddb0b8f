// Clocks of simulated recordings, of which the truth is known, and bounds held against trying all
// vertices of what is possible.
#include "core/replay/clock_alignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/random.h"
#include "tests/core/replay/simulated_exchanges.h"

namespace stepcast {
namespace {

using testing::RandomJobOf;
using testing::SimulatedExchanges;
using testing::SimulatedJob;
using testing::SimulateExchanges;
using testing::TrueClock;

// Every order, as the definition has it: an instant of one node not after one of another.
struct RawOrder {
  int32_t early = 0;
  int64_t early_ns = 0;
  int32_t late = 0;
  int64_t late_ns = 0;
};

std::vector<RawOrder> RawOrdersOf(const RecordedExchanges& exchanges) {
  std::vector<RawOrder> orders;
  for (const RecordedMessage& message : exchanges.messages) {
    orders.push_back(
        {message.sender, message.send_end_ns, message.receiver, message.receive_end_ns});
  }
  for (const RecordedCollective& collective : exchanges.collectives) {
    for (const auto& a : collective.members) {
      for (const auto& b : collective.members) {
        if (a.node != b.node) orders.push_back({a.node, a.start_ns, b.node, b.end_ns});
      }
    }
  }
  return orders;
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

void FindClocksWithinTheirBounds(bool ends_together, double most_of_interval) {
  std::vector<double> errors;  // of the offset, as a share of its interval's half
  std::vector<double> error_ns;
  std::vector<double> centre_error_ns;
  std::vector<double> width_ns;
  int improved = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const SimulatedJob job = RandomJobOf(seed);
    SimulatedExchanges made = SimulateExchanges(seed, job);
    for (RecordedCollective& collective : made.exchanges.collectives)
      collective.ends_together = ends_together;
    AlignmentOptions options{.max_drift = job.max_drift == 0 && seed % 2 == 0 ? 0 : 2e-4};
    const absl::StatusOr<ClockAlignment> found = AlignClocks(made.exchanges, options, NeverStop);
    ASSERT_TRUE(found.ok()) << found.status();
    options.max_rounds = 0;
    const absl::StatusOr<ClockAlignment> centred = AlignClocks(made.exchanges, options, NeverStop);
    ASSERT_TRUE(centred.ok()) << centred.status();
    EXPECT_LE(found->spread_ns, found->centred_spread_ns * (1 + 1e-12));
    improved += found->spread_ns < 0.99 * found->centred_spread_ns ? 1 : 0;
    for (size_t node = 1; node < made.clocks.size(); ++node) {
      const NodeClock& clock = found->clocks[node];
      const TrueClock& truth = made.clocks[node];
      const double offset = truth.OffsetAt(clock.reference_ns);
      EXPECT_LE(static_cast<double>(clock.least_offset_ns), offset + 1);
      EXPECT_GE(static_cast<double>(clock.most_offset_ns), offset - 1);
      EXPECT_LE(clock.least_offset_ns, clock.offset_ns);
      EXPECT_GE(clock.most_offset_ns, clock.offset_ns);
      if (options.max_drift > 0) {
        EXPECT_LE(clock.least_drift, truth.drift + 1e-12);
        EXPECT_GE(clock.most_drift, truth.drift - 1e-12);
        EXPECT_LE(clock.least_drift, clock.drift + 1e-12);
        EXPECT_GE(clock.most_drift, clock.drift - 1e-12);
      }
      const auto width = static_cast<double>(clock.most_offset_ns - clock.least_offset_ns);
      const double error = std::abs(static_cast<double>(clock.offset_ns) - offset);
      EXPECT_LE(error, width);
      error_ns.push_back(error);
      centre_error_ns.push_back(
          std::abs(static_cast<double>(centred->clocks[node].offset_ns) - offset));
      width_ns.push_back(width);
      errors.push_back(error / (width / 2));
    }
    for (const RawOrder& order : RawOrdersOf(made.exchanges)) {
      ASSERT_LE(
          found->clocks[Index(order.early)].ToCommon(order.early_ns),
          found->clocks[Index(order.late)].ToCommon(order.late_ns) + options.tolerance_ns + 2);
    }
  }
  std::cout << "clocks " << errors.size() << ", median / 95 % error " << Quantile(error_ns, 0.5)
            << " / " << Quantile(error_ns, 0.95) << " ns, of the centre alone "
            << Quantile(centre_error_ns, 0.5) << " / " << Quantile(centre_error_ns, 0.95)
            << " ns, of half the interval " << Quantile(errors, 0.5) << " / "
            << Quantile(errors, 0.95) << ", median interval " << Quantile(width_ns, 0.5)
            << " ns, recordings made better by the durations " << improved << "\n";
  // Far better than its bound.
  EXPECT_LT(Quantile(errors, 0.5), most_of_interval);
}

TEST(ClockAlignmentTest, FindsTheClocksOf500SimulatedRecordingsWithinTheirBounds) {
  FindClocksWithinTheirBounds(false, 0.2);
}

TEST(ClockAlignmentTest, FindsThemBetterWhereCollectivesEndTogether) {
  FindClocksWithinTheirBounds(true, 0.01);
}

// A worker that is always the last says nothing of its clock but by the ends.
TEST(ClockAlignmentTest, DoesNotTakeAStragglerForAClockThatIsOff) {
  RecordedExchanges exchanges{.nodes = {"a", "b"}, .families = {"all_reduce"}};
  for (int32_t step = 0; step < 20; ++step) {
    const int64_t last = 10'000'000 * step + 1000 * (step % 3);
    exchanges.collectives.push_back(
        {.step = step,
         .members = {{.node = 0, .start_ns = last - 4'000'000, .end_ns = last + 1'000'000},
                     {.node = 1, .start_ns = last, .end_ns = last + 1'000'000}},
         .ends_together = true});
  }
  const absl::StatusOr<ClockAlignment> found = AlignClocks(exchanges, {}, NeverStop);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR(static_cast<double>(found->clocks[1].offset_ns), 0, 5'000);
  for (RecordedCollective& collective : exchanges.collectives) collective.ends_together = false;
  const absl::StatusOr<ClockAlignment> without = AlignClocks(exchanges, {}, NeverStop);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_GT(std::abs(static_cast<double>(without->clocks[1].offset_ns)), 1'000'000);
}

// The right side of a line in as many unknowns as there are, for the enumeration below.
using Row = std::vector<long double>;  // left side, then the most

std::optional<std::vector<long double>> Vertex(std::vector<Row> rows) {
  const size_t n = rows.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k; i < n; ++i) {
      if (std::abs(rows[i][k]) > std::abs(rows[pivot][k])) pivot = i;
    }
    if (std::abs(rows[pivot][k]) < 1e-10L) return std::nullopt;
    std::swap(rows[k], rows[pivot]);
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const long double factor = rows[i][k] / rows[k][k];
      for (size_t j = k; j <= n; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  std::vector<long double> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = rows[i][n] / rows[i][i];
  return x;
}

struct Extremes {
  bool any = false;
  std::vector<long double> least;
  std::vector<long double> most;
};

// Of each unknown the least and the most over all vertices of what the rows allow.
Extremes TryAllVertices(const std::vector<Row>& rows, size_t unknowns) {
  Extremes found{.least = std::vector<long double>(unknowns, 1e30L),
                 .most = std::vector<long double>(unknowns, -1e30L)};
  std::vector<size_t> chosen(unknowns);
  for (size_t i = 0; i < unknowns; ++i) chosen[i] = i;
  while (true) {
    std::vector<Row> equations;
    for (const size_t i : chosen) equations.push_back(rows[i]);
    if (const auto x = Vertex(std::move(equations)); x.has_value()) {
      const bool holds = std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
        long double sum = 0;
        for (size_t k = 0; k < unknowns; ++k) sum += row[k] * (*x)[k];
        return sum <= row[unknowns] + 1e-3L;
      });
      if (holds) {
        found.any = true;
        for (size_t k = 0; k < unknowns; ++k) {
          found.least[k] = std::min(found.least[k], (*x)[k]);
          found.most[k] = std::max(found.most[k], (*x)[k]);
        }
      }
    }
    size_t at = unknowns;
    while (at > 0 && chosen[at - 1] == rows.size() - unknowns + at - 1) --at;
    if (at == 0) return found;
    ++chosen[at - 1];
    for (size_t i = at; i < unknowns; ++i) chosen[i] = chosen[i - 1] + 1;
  }
}

// Two and three nodes, some of them with an exchange that cannot be: bounds, and whether there are
// any clocks at all, as by trying every vertex, all orders in it and no hull.
TEST(ClockAlignmentTest, BoundsAreThoseOfTryingAllVertices) {
  int compared = 0;
  int contradictory = 0;
  for (uint64_t seed = 1; seed <= 240; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 80});
    SimulatedJob job{.nodes = seed % 3 == 0 ? 3 : 2,
                     .steps = seed % 3 == 0 ? 2 : 6,
                     .max_drift = seed % 2 == 0 ? 0 : 1e-4};
    SimulatedExchanges made = SimulateExchanges(seed, job);
    const double max_drift = job.max_drift == 0 ? 0 : 2e-4;
    if (random.Below(3) == 0) {
      // One end far too early.
      RecordedCollective& broken = made.exchanges.collectives.back();
      broken.members[1].start_ns -= 400'000'000;
      broken.members[1].end_ns -= 400'000'000;
    }
    const absl::StatusOr<ClockAlignment> found =
        AlignClocks(made.exchanges, {.max_drift = max_drift}, NeverStop);
    // Unknowns as in the header: the offset at each node's reference, and what the drift adds in
    // half a second.
    std::vector<int64_t> first(Index(job.nodes), INT64_MAX);
    std::vector<int64_t> last(Index(job.nodes), INT64_MIN);
    for (const RecordedCollective& collective : made.exchanges.collectives) {
      for (const auto& member : collective.members) {
        first[Index(member.node)] = std::min(first[Index(member.node)], member.start_ns);
        last[Index(member.node)] = std::max(last[Index(member.node)], member.end_ns);
      }
    }
    const auto middle = [&](int32_t node) {
      return first[Index(node)] + (last[Index(node)] - first[Index(node)]) / 2;
    };
    const size_t offsets = Index(job.nodes - 1);
    const size_t unknowns = offsets * (max_drift > 0 ? 2 : 1);
    constexpr long double kHalfNs = 5e8L;
    std::vector<Row> rows;
    for (const RawOrder& order : RawOrdersOf(made.exchanges)) {
      Row row(unknowns + 1, 0);
      const auto add = [&](int32_t node, int64_t at, long double sign) {
        if (node == 0) return;
        row[Index(node - 1)] += sign;
        if (max_drift > 0) {
          row[offsets + Index(node - 1)] +=
              sign * static_cast<long double>(at - middle(node)) / kHalfNs;
        }
      };
      add(order.early, order.early_ns, 1);
      add(order.late, order.late_ns, -1);
      row[unknowns] = static_cast<long double>(order.late_ns - order.early_ns + 1000);
      rows.push_back(row);
    }
    for (size_t node = 0; max_drift > 0 && node < offsets; ++node) {
      for (const long double side : {1.0L, -1.0L}) {
        Row row(unknowns + 1, 0);
        row[offsets + node] = side;
        row[unknowns] = static_cast<long double>(max_drift) * kHalfNs;
        rows.push_back(row);
      }
    }
    const Extremes expected = TryAllVertices(rows, unknowns);
    ASSERT_EQ(found.ok(), expected.any) << found.status();
    if (!found.ok()) {
      ++contradictory;
      EXPECT_EQ(DetailsOf(found.status()).reason, "CLOCKS_CONTRADICT");
      continue;
    }
    ++compared;
    for (size_t node = 0; node < offsets; ++node) {
      const NodeClock& clock = found->clocks[node + 1];
      const double tolerance = max_drift == 0 ? 0.5 : 2 + 1e-5 * 2e8;
      EXPECT_EQ(clock.reference_ns, middle(static_cast<int32_t>(node) + 1));
      EXPECT_NEAR(static_cast<double>(clock.least_offset_ns),
                  static_cast<double>(expected.least[node]), tolerance);
      EXPECT_NEAR(static_cast<double>(clock.most_offset_ns),
                  static_cast<double>(expected.most[node]), tolerance);
      if (max_drift == 0) continue;
      EXPECT_NEAR(clock.least_drift * 5e8, static_cast<double>(expected.least[offsets + node]),
                  tolerance);
      EXPECT_NEAR(clock.most_drift * 5e8, static_cast<double>(expected.most[offsets + node]),
                  tolerance);
    }
  }
  std::cout << "compared " << compared << ", contradictory " << contradictory << "\n";
  EXPECT_GT(compared, 120);
  EXPECT_GT(contradictory, 40);
}

// A recording so short that exchanges allow more drift than there may be.
TEST(AlignClocksTest, ADriftAtTheLimitOrNotLookedForIsNotKnown) {
  int at_limit = 0;
  int below = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const SimulatedExchanges made = SimulateExchanges(seed, {.nodes = 4, .steps = 3});
    for (const double max_drift : {0.0, 5e-5, 2e-4}) {
      const absl::StatusOr<ClockAlignment> found =
          AlignClocks(made.exchanges, {.max_drift = max_drift}, NeverStop);
      if (!found.ok()) continue;
      EXPECT_TRUE(found->clocks.front().drift_is_known) << "its own is the common time";
      for (size_t node = 1; node < found->clocks.size(); ++node) {
        const NodeClock& clock = found->clocks[node];
        const bool is_below = std::abs(clock.drift) < 0.99 * max_drift;
        if (!is_below && std::abs(clock.drift) < 0.9999 * max_drift) continue;
        EXPECT_EQ(clock.drift_is_known, is_below) << clock.drift;
        if (max_drift > 0) (is_below ? below : at_limit) += 1;
      }
    }
  }
  EXPECT_GT(at_limit, 0);
  EXPECT_GT(below, 0);
}

// Many nodes, each with drift: all exchanges are possible afterwards.
TEST(ClockAlignmentTest, AlignsSixtyFourNodes) {
  const SimulatedExchanges made = SimulateExchanges(9, {.nodes = 64, .steps = 12, .ring = true});
  const absl::StatusOr<ClockAlignment> found = AlignClocks(made.exchanges, {}, NeverStop);
  ASSERT_TRUE(found.ok()) << found.status();
  for (const RawOrder& order : RawOrdersOf(made.exchanges)) {
    ASSERT_LE(found->clocks[Index(order.early)].ToCommon(order.early_ns),
              found->clocks[Index(order.late)].ToCommon(order.late_ns) + 1002);
  }
  for (size_t node = 1; node < made.clocks.size(); ++node) {
    const double offset = made.clocks[node].OffsetAt(found->clocks[node].reference_ns);
    EXPECT_LE(static_cast<double>(found->clocks[node].least_offset_ns), offset + 1);
    EXPECT_GE(static_cast<double>(found->clocks[node].most_offset_ns), offset - 1);
  }
}

RecordedExchanges ThreeInACircle() {
  // a hears of b at 100 what b sent at 200, and so on round the circle: 300 ns too much in all.
  RecordedExchanges exchanges{.nodes = {"a", "b", "c"}, .families = {"ping"}};
  for (int32_t node = 0; node < 3; ++node) {
    exchanges.messages.push_back({.family = 0,
                                  .step = node,
                                  .sender = node,
                                  .receiver = (node + 1) % 3,
                                  .send_start_ns = 200,
                                  .send_end_ns = 200,
                                  .receive_start_ns = 50,
                                  .receive_end_ns = 100});
  }
  return exchanges;
}

TEST(ClockAlignmentTest, NamesTheExchangesThatContradictEachOtherAndByHowMuch) {
  for (const double max_drift : {0.0, 1e-9}) {
    SCOPED_TRACE(max_drift);
    const absl::StatusOr<ClockAlignment> found =
        AlignClocks(ThreeInACircle(), {.max_drift = max_drift, .tolerance_ns = 0}, NeverStop);
    ASSERT_FALSE(found.ok());
    const ErrorDetails details = DetailsOf(found.status());
    EXPECT_EQ(details.reason, "CLOCKS_CONTRADICT");
    EXPECT_EQ(details.metadata.at("excess_ns"), "300");
    EXPECT_EQ(details.metadata.at("slack_ns"), "100");
    ASSERT_EQ(details.faults.size(), 3U);
    std::vector<std::string> fields;
    for (const Fault& fault : details.faults) fields.push_back(fault.field);
    std::sort(fields.begin(), fields.end());
    EXPECT_EQ(fields, (std::vector<std::string>{"messages[0]", "messages[1]", "messages[2]"}));
    const auto of_first =
        std::find_if(details.faults.begin(), details.faults.end(),
                     [](const Fault& fault) { return fault.field == "messages[0]"; });
    EXPECT_EQ(of_first->description,
              "ping of step 0: a sent it by 0.000000200 s, b had it at 0.000000100 s");
  }
  // With as much slack as it says there are clocks.
  EXPECT_TRUE(AlignClocks(ThreeInACircle(), {.max_drift = 0, .tolerance_ns = 100}, NeverStop).ok());
  EXPECT_FALSE(AlignClocks(ThreeInACircle(), {.max_drift = 0, .tolerance_ns = 99}, NeverStop).ok());
}

// One collective of many has its readings on one node moved: it is among those that are named.
TEST(ClockAlignmentTest, NamesTheCollectiveThatWasBroken) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SimulatedJob job = RandomJobOf(seed);
    job.collectives = true;
    job.ring = false;
    SimulatedExchanges made = SimulateExchanges(seed, job);
    const size_t broken = made.exchanges.collectives.size() / 2;
    auto& member = made.exchanges.collectives[broken].members.back();
    // Longer than any step and collective.
    member.start_ns += 1'000'000'000;
    member.end_ns += 1'000'000'000;
    const absl::StatusOr<ClockAlignment> found =
        AlignClocks(made.exchanges, {.max_drift = seed % 2 == 0 ? 0 : 2e-4}, NeverStop);
    ASSERT_FALSE(found.ok());
    const ErrorDetails details = DetailsOf(found.status());
    EXPECT_EQ(details.reason, "CLOCKS_CONTRADICT");
    const std::string field = absl::StrCat("collectives[", broken, "]");
    EXPECT_TRUE(std::any_of(details.faults.begin(), details.faults.end(), [&](const Fault& fault) {
      return fault.field == field;
    })) << found.status();
    EXPECT_GT(std::stoll(details.metadata.at("excess_ns")), 100'000'000);
  }
}

// A node that only ever receives may be as far behind as it likes: its clock stays as it is where
// it can.
TEST(ClockAlignmentTest, LeavesOpenWhatNothingBounds) {
  for (const double max_drift : {0.0, 1e-4}) {
    RecordedExchanges exchanges{.nodes = {"a", "b"}, .families = {"weights"}};
    for (int32_t step = 0; step < 3; ++step) {
      const int64_t at = 1'000'000 * step;
      exchanges.messages.push_back({.step = step,
                                    .sender = 0,
                                    .receiver = 1,
                                    .send_start_ns = at,
                                    .send_end_ns = at,
                                    .receive_start_ns = at + 500,
                                    .receive_end_ns = at + 700});
    }
    const absl::StatusOr<ClockAlignment> found =
        AlignClocks(exchanges, {.max_drift = max_drift, .tolerance_ns = 0}, NeverStop);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->clocks[1].offset_ns, 0);
    EXPECT_EQ(found->clocks[1].most_offset_ns, kUnboundedOffset);
    EXPECT_NEAR(static_cast<double>(found->clocks[1].least_offset_ns), -700, 3);
  }
}

TEST(ClockAlignmentTest, RefusesNodesThatShareNothing) {
  RecordedExchanges exchanges = ThreeInACircle();
  exchanges.nodes.emplace_back("alone");
  const absl::StatusOr<ClockAlignment> found = AlignClocks(exchanges, {}, NeverStop);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(DetailsOf(found.status()).reason, "CLOCKS_UNCONNECTED");
  EXPECT_EQ(DetailsOf(found.status()).metadata.at("node"), "alone");
}

TEST(ClockAlignmentTest, OneNodeHasTheCommonTime) {
  const absl::StatusOr<ClockAlignment> found = AlignClocks({.nodes = {"a"}}, {}, NeverStop);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->clocks.front().ToCommon(17), 17);
}

// Nodes of one machine have one clock where exchanges leave that open.
TEST(ClockAlignmentTest, KeepsTheClocksOfOneMachineTogether) {
  SimulatedExchanges made = SimulateExchanges(5, {.nodes = 3, .max_drift = 0});
  for (RecordedCollective& collective : made.exchanges.collectives) {
    const int64_t moved = made.exchanges.nodes.size() == 3
                              ? static_cast<int64_t>(made.clocks[1].offset_ns) -
                                    static_cast<int64_t>(made.clocks[2].offset_ns)
                              : 0;
    // Now the third node's clock is the second one's.
    collective.members[2].start_ns -= moved;
    collective.members[2].end_ns -= moved;
  }
  made.exchanges.machines = {0, 1, 1};
  const absl::StatusOr<ClockAlignment> found =
      AlignClocks(made.exchanges, {.max_drift = 0, .machine_weight = 1e6}, NeverStop);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_NEAR(static_cast<double>(found->clocks[1].offset_ns - found->clocks[2].offset_ns), 0, 10);
}

// Bad input is refused with its path; random changes of good input crash nothing and either fail
// or leave every order possible.
TEST(ClockAlignmentTest, NamesFaults) {
  RecordedExchanges exchanges = ThreeInACircle();
  exchanges.messages[1].receiver = 7;
  exchanges.messages[2].receive_end_ns = -1;
  const absl::StatusOr<ClockAlignment> found =
      AlignClocks(exchanges, {.tolerance_ns = -1}, NeverStop);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(DetailsOf(found.status()).faults.front().field, "tolerance_ns");
  const absl::StatusOr<ClockAlignment> other = AlignClocks(exchanges, {}, NeverStop);
  ASSERT_FALSE(other.ok());
  const ErrorDetails details = DetailsOf(other.status());
  ASSERT_EQ(details.faults.size(), 2U);
  EXPECT_EQ(details.faults[0].field, "messages[1].receiver");
  EXPECT_EQ(details.faults[1].description, "the end -1 ns is before the start 50 ns");
}

TEST(ClockAlignmentTest, SurvivesThreeThousandMutations) {
  int refused = 0;
  int aligned = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random({seed, 81});
    const SimulatedJob job{.nodes = 2 + static_cast<int32_t>(random.Below(3)),
                           .steps = 3,
                           .collectives = random.Below(2) == 0,
                           .ring = true};
    RecordedExchanges exchanges = SimulateExchanges(seed % 50 + 1, job).exchanges;
    const auto time = [&](int64_t recorded) {
      const int64_t was = std::clamp(recorded, -(int64_t{1} << 62), int64_t{1} << 62);
      const std::array<int64_t, 6> extreme{0, -1, INT64_MAX, INT64_MIN, int64_t{1} << 61, was + 1};
      const uint64_t choice = random.Below(8);
      return choice < extreme.size()
                 ? extreme[choice]
                 : was + static_cast<int64_t>(random.Below(2'000'000)) - 1'000'000;
    };
    for (uint64_t i = 1 + random.Below(3); i > 0; --i) {
      RecordedMessage& message = exchanges.messages[random.Below(exchanges.messages.size())];
      switch (random.Below(8)) {
        case 0:
          message.sender = static_cast<int32_t>(random.Below(6)) - 1;
          break;
        case 1:
          message.family = static_cast<int32_t>(random.Below(8)) - 2;
          break;
        case 2:
          message.send_start_ns = time(message.send_start_ns);
          break;
        case 3:
          message.send_end_ns = time(message.send_end_ns);
          break;
        case 4:
          message.receive_start_ns = time(message.receive_start_ns);
          break;
        case 5:
          message.receive_end_ns = time(message.receive_end_ns);
          break;
        case 6:
          exchanges.messages.push_back(message);
          break;
        default:
          if (!exchanges.collectives.empty()) {
            auto& members = exchanges.collectives.front().members;
            members.push_back(members.front());
          }
      }
    }
    const AlignmentOptions options{.max_drift = seed % 2 == 0 ? 0 : 2e-4};
    const absl::StatusOr<ClockAlignment> found = AlignClocks(exchanges, options, NeverStop);
    if (!found.ok()) {
      ++refused;
      EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument) << found.status();
      continue;
    }
    ++aligned;
    for (const RawOrder& order : RawOrdersOf(exchanges)) {
      ASSERT_LE(
          found->clocks[Index(order.early)].ToCommon(order.early_ns),
          found->clocks[Index(order.late)].ToCommon(order.late_ns) + options.tolerance_ns + 2);
    }
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(aligned, 500);
}

}  // namespace
}  // namespace stepcast
