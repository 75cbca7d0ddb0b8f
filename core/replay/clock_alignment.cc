#include "core/replay/clock_alignment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "core/base/error.h"
#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/replay/difference_constraints.h"
#include "core/replay/exchange_check.h"
#include "core/replay/quadratic_program.h"

namespace stepcast {

namespace {

// Beside a variance: of a distance from the middle of what is possible, and of one from where the
// search starts, which alone holds what nothing else does.
constexpr double kCentreWeight = 1e-3;
// Weight, likewise, of the distance between two ends of a collective that ends together.
constexpr double kEndWeight = 1;
constexpr double kAnchorWeight = 1e-9;
// Nanoseconds by which a bound of the program may be violated.
constexpr double kFeasibilityNs = 0.01;
// A drift that is this share of the largest there may be is at its limit.
constexpr double kBelowTheLimit = 0.999;

// The unknowns: of each node but the first what its clock is ahead of a first guess, and what it
// drifts to either end, both in nanoseconds.
class ClockFit {
 public:
  ClockFit(const RecordedExchanges& exchanges, const AlignmentOptions& options,
           const ExchangeCheck& check, StopCheck stop)
      : exchanges_(exchanges),
        options_(options),
        stop_(stop),
        nodes_(static_cast<int32_t>(exchanges.nodes.size())),
        has_drift_(options.max_drift > 0),
        orders_(Index(nodes_) * Index(nodes_)),
        guess_(Index(nodes_), 0) {
    for (size_t node = 0; node < Index(nodes_); ++node) {
      middles_.push_back(check.MiddleOf(node));
      half_length_ns_ =
          std::max(half_length_ns_, static_cast<double>(check.LengthOf(node)) / 2 + 1);
    }
  }

  absl::StatusOr<ClockAlignment> Align() {
    if (absl::Status status = CollectOrders(); !status.ok()) return status;
    if (absl::Status status = Guess(); !status.ok()) return status;
    if (!has_drift_) {
      if (absl::Status status = BoundOffsets(); !status.ok()) return status;
    }
    WriteConstraints();
    const ReceiveFamilies receives(exchanges_, middles_);
    ClockAlignment alignment{.bounds = static_cast<int64_t>(order_count_)};
    const std::vector<double> recorded = AsRecorded();
    alignment.recorded_spread_ns = SpreadOf(receives, recorded);
    absl::StatusOr<std::vector<double>> best = Solve(CentreProgram());
    if (!best.ok()) return best.status();
    alignment.centred_spread_ns = SpreadOf(receives, *best);
    alignment.spread_ns = alignment.centred_spread_ns;
    for (int32_t round = 0; round < options_.max_rounds && !receives.families().empty(); ++round) {
      const absl::StatusOr<bool> better = Improve(receives, *best, alignment.spread_ns);
      if (!better.ok()) return better.status();
      if (!*better) break;
      ++alignment.rounds;
    }
    WriteClocks(*best, alignment);
    if (absl::Status status = BoundClocks(alignment); !status.ok()) return status;
    return alignment;
  }

 private:
  struct Program {
    std::vector<double> hessian;
    std::vector<double> gradient;
  };

  int32_t unknowns() const { return (nodes_ - 1) * (has_drift_ ? 2 : 1); }
  std::vector<ClockOrder>& OrdersOf(int32_t early, int32_t late) {
    return orders_[Index(early) * Index(nodes_) + Index(late)];
  }
  const std::vector<ClockOrder>& OrdersOf(int32_t early, int32_t late) const {
    return orders_[Index(early) * Index(nodes_) + Index(late)];
  }

  void AddReading(int32_t node, double at_ns, double factor, LinearConstraint& row) const {
    if (node == 0) return;
    row.Add(node - 1, factor);
    if (has_drift_) row.Add(nodes_ - 1 + node - 1, factor * at_ns / half_length_ns_);
  }
  // Common time, from the first node's middle.
  double CommonOf(const std::vector<double>& x, const Reading& reading) const {
    return static_cast<double>(reading.at_ns + guess_[Index(reading.node)]) +
           CorrectionOf(x, reading.node, static_cast<double>(reading.at_ns));
  }
  double CorrectionOf(const std::vector<double>& x, int32_t node, double at_ns) const {
    if (node == 0) return 0;
    const double offset = x[Index(node - 1)];
    return has_drift_ ? offset + x[Index(nodes_ - 1 + node - 1)] * (at_ns / half_length_ns_)
                      : offset;
  }
  double SpreadOf(const ReceiveFamilies& receives, const std::vector<double>& x) const {
    return receives.Spread([&](const Reading& reading) { return CommonOf(x, reading); });
  }

  absl::Status CollectOrders() {
    std::vector<std::vector<ClockOrder>> found(orders_.size());
    for (size_t i = 0; i < exchanges_.messages.size(); ++i) {
      const RecordedMessage& message = exchanges_.messages[i];
      found[Index(message.sender) * Index(nodes_) + Index(message.receiver)].push_back(
          OrderOf(message.sender, message.send_end_ns, message.receiver, message.receive_end_ns,
                  static_cast<int64_t>(i)));
    }
    PacedStopCheck stop(stop_);
    for (int32_t early = 0; early < nodes_; ++early) {
      for (int32_t late = 0; late < nodes_; ++late) {
        if (early == late) continue;
        std::vector<ClockOrder>& orders = found[Index(early) * Index(nodes_) + Index(late)];
        AddCollectives(early, late, orders);
        if (!stop.GoesOn(static_cast<int64_t>(orders.size() + exchanges_.collectives.size()) + 1))
          return stop.status();
        OrdersOf(early, late) = TightestOrders(std::move(orders));
        orders = {};
        order_count_ += OrdersOf(early, late).size();
      }
    }
    return absl::OkStatus();
  }
  ClockOrder OrderOf(int32_t early, int64_t early_ns, int32_t late, int64_t late_ns,
                     int64_t source) const {
    return {.early_ns = early_ns - middles_[Index(early)],
            .late_ns = late_ns - middles_[Index(late)] + options_.tolerance_ns,
            .source = source};
  }
  void AddCollectives(int32_t early, int32_t late, std::vector<ClockOrder>& orders) {
    if (member_of_.empty()) IndexMembers();
    for (size_t i = 0; i < exchanges_.collectives.size(); ++i) {
      const int32_t first = member_of_[i * Index(nodes_) + Index(early)];
      const int32_t second = member_of_[i * Index(nodes_) + Index(late)];
      if (first < 0 || second < 0) continue;
      const std::vector<RecordedCollective::Member>& members = exchanges_.collectives[i].members;
      orders.push_back(OrderOf(early, members[Index(first)].start_ns, late,
                               members[Index(second)].end_ns,
                               static_cast<int64_t>(exchanges_.messages.size() + i)));
    }
  }
  void IndexMembers() {
    member_of_.assign(exchanges_.collectives.size() * Index(nodes_), -1);
    for (size_t i = 0; i < exchanges_.collectives.size(); ++i) {
      const std::vector<RecordedCollective::Member>& members = exchanges_.collectives[i].members;
      for (size_t k = 0; k < members.size(); ++k)
        member_of_[i * Index(nodes_) + Index(members[k].node)] = static_cast<int32_t>(k);
    }
  }

  // The tightest bound without drift; nullptr: there is none.
  const ClockOrder* TightestOf(int32_t early, int32_t late) const {
    const std::vector<ClockOrder>& orders = OrdersOf(early, late);
    const auto found = std::min_element(
        orders.begin(), orders.end(),
        [](const ClockOrder& a, const ClockOrder& b) { return a.most() < b.most(); });
    return found == orders.end() ? nullptr : &*found;
  }

  // The middle, of each node, between the bounds from a node that is known, the narrowest first
  // (Prim's tree); where one side is open, the recorded clock or the bound.
  absl::Status Guess() {
    constexpr int64_t kOpen = int64_t{1} << 60;
    std::vector<uint8_t> known(Index(nodes_), 0);
    std::vector<int64_t> width(Index(nodes_), std::numeric_limits<int64_t>::max());
    int32_t node = 0;
    for (int32_t left = nodes_; left > 0; --left) {
      known[Index(node)] = 1;
      int32_t next = -1;
      for (int32_t other = 0; other < nodes_; ++other) {
        if (known[Index(other)] != 0) continue;
        const ClockOrder* const above = TightestOf(other, node);
        const ClockOrder* const below = TightestOf(node, other);
        if (above != nullptr || below != nullptr) {
          const int64_t most = above == nullptr ? kOpen : above->most();
          const int64_t least = below == nullptr ? -kOpen : -below->most();
          if (most - least < width[Index(other)]) {
            width[Index(other)] = most - least;
            guess_[Index(other)] =
                guess_[Index(node)] +
                (above != nullptr && below != nullptr
                     ? least + (most - least) / 2
                     : NearestTo(RecordedOffset(other) - RecordedOffset(node),
                                 above != nullptr ? most : least, above != nullptr));
          }
        }
        if (width[Index(other)] < std::numeric_limits<int64_t>::max() &&
            (next < 0 || width[Index(other)] < width[Index(next)])) {
          next = other;
        }
      }
      if (next < 0 && left > 1) return Unconnected(known);
      node = next;
    }
    return absl::OkStatus();
  }
  // The recorded clock where the only bound lets it; the bound where not, or where it is so far
  // from it that the clocks count from different days.
  static int64_t NearestTo(int64_t as_recorded, int64_t bound, bool is_above) {
    const bool is_possible = is_above ? as_recorded <= bound : as_recorded >= bound;
    return is_possible && std::abs(as_recorded - bound) <= DifferenceConstraints::kMaxBound
               ? as_recorded
               : bound;
  }
  // Between the middles of a node and the first one's, if the clocks are right.
  int64_t RecordedOffset(int32_t node) const {
    const int64_t apart = middles_[Index(node)] - middles_.front();
    constexpr int64_t kFar = int64_t{1} << 58;
    return std::clamp(apart, -kFar, kFar);
  }
  absl::Status Unconnected(const std::vector<uint8_t>& known) const {
    const auto lost = static_cast<size_t>(std::find(known.begin(), known.end(), 0) - known.begin());
    return MakeError(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("nodes[", lost, "]: ", exchanges_.nodes[lost],
                                  " shares no exchange, directly or through others, with ",
                                  exchanges_.nodes.front(), ": its clock cannot be aligned"),
                     {.reason = "CLOCKS_UNCONNECTED",
                      .metadata = {{"node", exchanges_.nodes[lost]}},
                      .faults = {{absl::StrCat("nodes[", lost, "]"), "shares no exchange"}}});
  }

  // Without drift: exactly, in whole numbers.
  absl::Status BoundOffsets() {
    DifferenceConstraints system(nodes_);
    for (int32_t early = 0; early < nodes_; ++early) {
      for (int32_t late = 0; late < nodes_; ++late) {
        const ClockOrder* const order = early == late ? nullptr : TightestOf(early, late);
        if (order != nullptr) system.Add(early, late, order->most(), order->source);
      }
    }
    const std::optional<DifferenceConstraints::Cycle> cycle = system.FindContradiction();
    if (!cycle.has_value()) {
      offset_bounds_ = system.TightestBounds();
      return absl::OkStatus();
    }
    std::vector<Fault> faults;
    for (const DifferenceConstraints::Constraint& constraint : cycle->constraints)
      faults.push_back(FaultOf(constraint.above, constraint.below, constraint.source));
    return Contradiction(
        std::move(faults), static_cast<double>(cycle->excess),
        static_cast<double>(cycle->excess) / static_cast<double>(cycle->constraints.size()));
  }

  Fault FaultOf(int32_t early, int32_t late, int64_t source) const {
    const auto messages = static_cast<int64_t>(exchanges_.messages.size());
    const auto describe = [&](int32_t family, int32_t step, std::string_view first,
                              int64_t early_ns, std::string_view last, int64_t late_ns) {
      const absl::string_view first_verb(first.data(), first.size());
      const absl::string_view last_verb(last.data(), last.size());
      return absl::StrCat(exchanges_.families[Index(family)], " of step ", step, ": ",
                          exchanges_.nodes[Index(early)], first_verb, ClockText(early_ns), ", ",
                          exchanges_.nodes[Index(late)], last_verb, ClockText(late_ns));
    };
    if (source < messages) {
      const RecordedMessage& message = exchanges_.messages[static_cast<size_t>(source)];
      return {absl::StrCat("messages[", source, "]"),
              describe(message.family, message.step, " sent it by ", message.send_end_ns,
                       " had it at ", message.receive_end_ns)};
    }
    const auto i = static_cast<size_t>(source - messages);
    const RecordedCollective& collective = exchanges_.collectives[i];
    const auto& members = collective.members;
    return {absl::StrCat("collectives[", i, "]"),
            describe(collective.family, collective.step, " started it at ",
                     members[Index(member_of_[i * Index(nodes_) + Index(early)])].start_ns,
                     " ended it at ",
                     members[Index(member_of_[i * Index(nodes_) + Index(late)])].end_ns)};
  }
  absl::Status Contradiction(std::vector<Fault> faults, double excess_ns, double slack_ns) const {
    std::string message = absl::StrCat(
        "the clocks cannot be reconciled: ", faults.size(), " exchanges contradict each other by ",
        DurationText(std::llround(excess_ns)),
        has_drift_ ? absl::StrCat(", even if clocks drift by up to ", options_.max_drift) : "",
        ": ", faults.front().description);
    for (size_t i = 1; i < faults.size() && i < 4; ++i)
      absl::StrAppend(&message, "; ", faults[i].description);
    if (faults.size() > 4) absl::StrAppend(&message, "; and ", faults.size() - 4, " more");
    return MakeError(absl::StatusCode::kInvalidArgument, message,
                     {.reason = "CLOCKS_CONTRADICT",
                      .metadata = {{"excess_ns", absl::StrCat(std::llround(excess_ns))},
                                   {"slack_ns", absl::StrCat(std::llround(slack_ns))}},
                      .faults = std::move(faults)});
  }

  void WriteConstraints() {
    for (int32_t early = 0; early < nodes_; ++early) {
      for (int32_t late = 0; late < nodes_; ++late) {
        if (early == late) continue;
        const int64_t guess = guess_[Index(late)] - guess_[Index(early)];
        for (const ClockOrder& order : OrdersOf(early, late)) {
          LinearConstraint row;
          AddReading(early, static_cast<double>(order.early_ns), 1, row);
          AddReading(late, static_cast<double>(order.late_ns), -1, row);
          row.most = static_cast<double>(order.most() + guess);
          Append(row, {.early = early, .late = late, .source = order.source});
        }
      }
    }
    if (!has_drift_) return;
    for (int32_t node = 1; node < nodes_; ++node) {
      for (const double side : {1.0, -1.0}) {
        LinearConstraint row{.most = options_.max_drift * half_length_ns_};
        row.Add(nodes_ - 1 + node - 1, side);
        Append(row, {});
      }
    }
  }
  struct Origin {
    int32_t early = -1;  // below 0: a limit of a drift
    int32_t late = -1;
    int64_t source = 0;
  };
  void Append(const LinearConstraint& row, Origin origin) {
    constraints_.push_back(row);
    origins_.push_back(origin);
    scale_ns_ = std::max(scale_ns_, std::abs(row.most));
  }

  Program EmptyProgram() const {
    const auto size = Index(unknowns());
    return {.hessian = std::vector<double>(size * size, 0),
            .gradient = std::vector<double>(size, 0)};
  }
  // Adds weight * (row(x) + constant)^2.
  static void AddSquare(const LinearConstraint& row, double constant, double weight,
                        Program& program) {
    const size_t size = program.gradient.size();
    for (size_t a = 0; a < row.count; ++a) {
      const auto column = static_cast<size_t>(row.columns[a]);
      program.gradient[column] += 2 * weight * row.values[a] * constant;
      for (size_t b = 0; b < row.count; ++b) {
        program.hessian[column * size + static_cast<size_t>(row.columns[b])] +=
            2 * weight * row.values[a] * row.values[b];
      }
    }
  }

  // Pulls towards the middle of what is possible between each two nodes that have orders in both
  // directions, the narrower it is the more; towards one clock on each machine; towards the guess.
  Program CentreProgram() const {
    struct Pull {
      LinearConstraint row;
      double constant = 0;
      double width = 0;
    };
    std::vector<Pull> pulls;
    double narrowest = std::numeric_limits<double>::infinity();
    for (int32_t a = 0; a < nodes_; ++a) {
      for (int32_t b = a + 1; b < nodes_; ++b) {
        const std::vector<ClockOrder>& there = OrdersOf(a, b);
        const std::vector<ClockOrder>& back = OrdersOf(b, a);
        if (there.empty() || back.empty()) continue;
        const auto guess = static_cast<double>(guess_[Index(a)] - guess_[Index(b)]);
        const double first = static_cast<double>(there.front().early_ns);
        const double last = static_cast<double>(there.back().early_ns);
        for (const double at : {first, (first + last) / 2, last}) {
          const double most = HeightAt(there, at) - guess;
          const double least = -HeightAt(back, at + guess) - guess;
          Pull pull{.constant = -(most + least) / 2, .width = std::max(1.0, most - least)};
          AddReading(a, at, 1, pull.row);
          AddReading(b, at + guess, -1, pull.row);
          narrowest = std::min(narrowest, pull.width);
          pulls.push_back(pull);
        }
      }
    }
    Program program = EmptyProgram();
    const double share = kCentreWeight / (3.0 * std::max(1, nodes_ - 1));
    for (const Pull& pull : pulls) {
      const double weight = narrowest / pull.width;
      AddSquare(pull.row, pull.constant, share * weight * weight, program);
    }
    AddMachines(program);
    AddEnds(program);
    for (size_t i = 0; i < program.gradient.size(); ++i)
      program.hessian[i * program.gradient.size() + i] += 2 * kAnchorWeight;
    return program;
  }
  // Each member's end is pulled to the next one's, round the collective.
  void AddEnds(Program& program) const {
    size_t pulls = 0;
    for (const RecordedCollective& collective : exchanges_.collectives)
      pulls += collective.ends_together ? collective.members.size() : 0;
    const double weight = kEndWeight / static_cast<double>(std::max<size_t>(1, pulls));
    for (const RecordedCollective& collective : exchanges_.collectives) {
      const size_t members = collective.ends_together ? collective.members.size() : 0;
      for (size_t i = 0; i < members; ++i) {
        const RecordedCollective::Member& a = collective.members[i];
        const RecordedCollective::Member& b = collective.members[(i + 1) % members];
        const int64_t of_a = a.end_ns - middles_[Index(a.node)];
        const int64_t of_b = b.end_ns - middles_[Index(b.node)];
        LinearConstraint row;
        AddReading(a.node, static_cast<double>(of_a), 1, row);
        AddReading(b.node, static_cast<double>(of_b), -1, row);
        const int64_t apart = of_a + guess_[Index(a.node)] - of_b - guess_[Index(b.node)];
        AddSquare(row, static_cast<double>(apart), weight, program);
      }
    }
  }
  void AddMachines(Program& program) const {
    if (exchanges_.machines.empty()) return;
    for (int32_t a = 0; a < nodes_; ++a) {
      for (int32_t b = a + 1; b < nodes_; ++b) {
        if (exchanges_.machines[Index(a)] != exchanges_.machines[Index(b)]) continue;
        LinearConstraint row;
        AddReading(a, 0, 1, row);
        AddReading(b, 0, -1, row);
        const int64_t apart =
            guess_[Index(a)] - RecordedOffset(a) - (guess_[Index(b)] - RecordedOffset(b));
        AddSquare(row, static_cast<double>(apart), options_.machine_weight / nodes_, program);
      }
    }
  }

  // The mean variance of the receives' durations, where the latest starts are those.
  void AddVariances(const ReceiveFamilies& receives, const std::vector<size_t>& latest,
                    Program& program) const {
    const size_t size = program.gradient.size();
    std::vector<double> mean_row(size, 0);
    std::vector<size_t> touched;
    const double share = 1 / static_cast<double>(receives.families().size());
    for (const std::vector<ReceiveFamilies::Receive>& family : receives.families()) {
      const double each = 1 / static_cast<double>(family.size());
      std::vector<LinearConstraint> rows;
      std::vector<double> constants;
      double mean = 0;
      for (const ReceiveFamilies::Receive& receive : family) {
        const Reading& start = receives.start(latest[receive.exchange]);
        LinearConstraint row;
        AddReading(receive.end.node, static_cast<double>(receive.end.at_ns), 1, row);
        AddReading(start.node, static_cast<double>(start.at_ns), -1, row);
        constants.push_back(static_cast<double>(receive.end.at_ns +
                                                guess_[Index(receive.end.node)] - start.at_ns -
                                                guess_[Index(start.node)]));
        mean += each * constants.back();
        for (size_t k = 0; k < row.count; ++k) {
          const auto column = static_cast<size_t>(row.columns[k]);
          if (mean_row[column] == 0) touched.push_back(column);
          mean_row[column] += each * row.values[k];
        }
        rows.push_back(row);
      }
      for (size_t i = 0; i < rows.size(); ++i)
        AddSquare(rows[i], constants[i] - mean, share * each, program);
      std::sort(touched.begin(), touched.end());
      touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
      for (const size_t a : touched) {
        for (const size_t b : touched)
          program.hessian[a * size + b] -= 2 * share * mean_row[a] * mean_row[b];
      }
      for (const size_t column : touched) mean_row[column] = 0;
      touched.clear();
    }
  }

  absl::StatusOr<std::vector<double>> Solve(const Program& program) {
    absl::StatusOr<QuadraticSolution> solution =
        MinimizeQuadratic(program.hessian, program.gradient, constraints_, kFeasibilityNs, stop_);
    if (!solution.ok()) return solution.status();
    if (!solution->feasible) return ContradictionOf(solution->multipliers);
    return std::move(solution->x);
  }
  absl::Status ContradictionOf(const std::vector<Multiplier>& multipliers) const {
    double largest = 0;
    for (const Multiplier& multiplier : multipliers) {
      if (origins_[multiplier.constraint].early >= 0) largest = std::max(largest, multiplier.value);
    }
    double excess = 0;
    double weights = 0;
    std::vector<Fault> faults;
    for (const Multiplier& multiplier : multipliers) {
      const Origin& origin = origins_[multiplier.constraint];
      excess -= multiplier.value / largest * constraints_[multiplier.constraint].most;
      if (origin.early < 0 || multiplier.value < 1e-9 * largest) continue;
      weights += multiplier.value / largest;
      faults.push_back(FaultOf(origin.early, origin.late, origin.source));
    }
    return Contradiction(std::move(faults), excess, excess / weights);
  }

  // One step of the alternation: solves with the branches that are active at `best`, and goes as
  // far towards what it finds as makes the durations differ less. False: nowhere, or rounding hides
  // where.
  absl::StatusOr<bool> Improve(const ReceiveFamilies& receives, std::vector<double>& best,
                               double& spread) {
    Program program = CentreProgram();
    AddVariances(receives, receives.LatestStarts([&](const Reading& reading) {
      return CommonOf(best, reading);
    }),
                 program);
    const absl::StatusOr<std::vector<double>> target = Solve(program);
    if (DetailsOf(target.status()).reason == kIllConditioned) return false;
    if (!target.ok()) return target.status();
    constexpr int kHalvings = 6;
    double share = 1;
    for (int i = 0; i < kHalvings; ++i, share /= 2) {
      std::vector<double> tried = best;
      for (size_t k = 0; k < tried.size(); ++k) tried[k] += share * ((*target)[k] - best[k]);
      const double found = SpreadOf(receives, tried);
      // A thousandth less is not worth a round.
      if (found >= spread * (1 - 1e-3)) continue;
      best = std::move(tried);
      spread = found;
      return true;
    }
    return false;
  }

  std::vector<double> AsRecorded() const {
    std::vector<double> x(Index(unknowns()), 0);
    for (int32_t node = 1; node < nodes_; ++node) {
      x[Index(node - 1)] =
          static_cast<double>(middles_[Index(node)] - middles_.front() - guess_[Index(node)]);
    }
    return x;
  }

  // The offset of a node whose unknown is `correction`.
  int64_t OffsetOf(int32_t node, int64_t correction) const {
    return guess_[Index(node)] + correction - (middles_[Index(node)] - middles_.front());
  }
  void WriteClocks(const std::vector<double>& x, ClockAlignment& alignment) const {
    for (int32_t node = 0; node < nodes_; ++node) {
      NodeClock clock{.reference_ns = middles_[Index(node)]};
      if (node > 0) {
        clock.offset_ns = OffsetOf(node, std::llround(x[Index(node - 1)]));
        if (has_drift_) clock.drift = x[Index(nodes_ - 1 + node - 1)] / half_length_ns_;
        clock.drift_is_bounded = has_drift_;
        clock.drift_is_known =
            has_drift_ && std::abs(clock.drift) < kBelowTheLimit * options_.max_drift;
      }
      alignment.clocks.push_back(clock);
    }
  }

  absl::Status BoundClocks(ClockAlignment& alignment) {
    for (int32_t node = 1; node < nodes_; ++node) {
      NodeClock& clock = alignment.clocks[Index(node)];
      if (!has_drift_) {
        const int64_t above = offset_bounds_[Index(node) * Index(nodes_)];
        const int64_t below = offset_bounds_[Index(node)];
        const int64_t guess = guess_[Index(node)];
        clock.most_offset_ns = above == DifferenceConstraints::kUnbounded
                                   ? kUnboundedOffset
                                   : OffsetOf(node, above - guess);
        clock.least_offset_ns = below == DifferenceConstraints::kUnbounded
                                    ? -kUnboundedOffset
                                    : OffsetOf(node, -below - guess);
        continue;
      }
      for (const double side : {1.0, -1.0}) {
        const absl::StatusOr<double> offset = Farthest(node - 1, side);
        if (!offset.ok()) return offset.status();
        int64_t& bound = side > 0 ? clock.most_offset_ns : clock.least_offset_ns;
        bound = std::isinf(*offset) ? (side > 0 ? kUnboundedOffset : -kUnboundedOffset)
                                    : OffsetOf(node, std::llround(*offset));
        const absl::StatusOr<double> drift = Farthest(nodes_ - 1 + node - 1, side);
        if (!drift.ok()) return drift.status();
        (side > 0 ? clock.most_drift : clock.least_drift) =
            std::clamp(*drift / half_length_ns_, -options_.max_drift, options_.max_drift);
      }
    }
    return absl::OkStatus();
  }
  // The most, or least, that an unknown can be, or a little beyond it; infinite: nothing bounds it,
  // or rounding hides what does. Of a linear program the optimum nearest to 0 is where a point far
  // out in that direction is projected to, once that is far enough (Mangasarian, "Normal solutions
  // of linear programs", 1984); what it can fall short by is the square of the unknowns' size by
  // how far that is. A point that is very far loses what nearly coincides to rounding, so a nearer
  // one is tried then.
  absl::StatusOr<double> Farthest(int32_t unknown, double side) {
    const auto size = Index(unknowns());
    Program program = EmptyProgram();
    for (size_t i = 0; i < size; ++i) program.hessian[i * size + i] = 1;
    for (const double times : {1e6, 1e4}) {
      const double far = scale_ns_ * times * static_cast<double>(size);
      program.gradient[Index(unknown)] = -side * far;
      const absl::StatusOr<std::vector<double>> x = Solve(program);
      if (DetailsOf(x.status()).reason == kIllConditioned) continue;
      if (!x.ok()) return x.status();
      const double found = (*x)[Index(unknown)];
      if (std::abs(found) > far / 1e3) break;
      return found + side * (1 + scale_ns_ / times);
    }
    return side * std::numeric_limits<double>::infinity();
  }

  const RecordedExchanges& exchanges_;
  const AlignmentOptions& options_;
  const StopCheck stop_;
  const int32_t nodes_;
  const bool has_drift_;
  double half_length_ns_ = 1;
  std::vector<int64_t> middles_;                 // by node
  std::vector<std::vector<ClockOrder>> orders_;  // by early and late node: their hull
  size_t order_count_ = 0;
  std::vector<int32_t> member_of_;      // by collective and node; -1: it is none
  std::vector<int64_t> guess_;          // by node: from its middle to the first one's
  std::vector<int64_t> offset_bounds_;  // without drift
  std::vector<LinearConstraint> constraints_;
  std::vector<Origin> origins_;  // parallel
  double scale_ns_ = 1;          // of the constraints' right sides
};

}  // namespace

int64_t NodeClock::ToCommon(int64_t reading_ns) const {
  return reading_ns + offset_ns +
         std::llround(drift * static_cast<double>(reading_ns - reference_ns));
}

absl::StatusOr<ClockAlignment> AlignClocks(const RecordedExchanges& exchanges,
                                           const AlignmentOptions& options, StopCheck stop,
                                           const AlignmentLimits& limits) {
  ExchangeCheck check(exchanges, limits);
  if (absl::Status status = check.Check(options); !status.ok()) return status;
  return ClockFit(exchanges, options, check, stop).Align();
}

}  // namespace stepcast
