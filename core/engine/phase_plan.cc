#include "core/engine/phase_plan.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "core/base/graph_cuts.h"
#include "core/engine/job_graph.h"

namespace stepcast {

namespace {

class PhasePlanner {
 public:
  PhasePlanner(const Program& graph, StopCheck stop)
      : graph_(graph), hubs_(PhasePlan::HubsOf(graph.lanes())), pace_(stop) {}

  absl::StatusOr<std::optional<PhasePlan>> Plan(bool find_cut) && {
    if (hubs_ == 0) return std::nullopt;
    for (OpIndex op = 0; op < graph_.size(); ++op) {
      if (!Fits(op)) return std::nullopt;
    }
    Sort();
    if (plan_.downloads.empty()) return std::nullopt;
    FindOrder();
    if (!pace_.GoesOn(graph_.size())) return pace_.status();
    const OpIndex cut = FindCut();
    const bool has_phases = cut >= 0 || UploadsWaitForAllDownloads();
    if (!pace_.GoesOn(graph_.size())) return pace_.status();
    if (!has_phases) return std::nullopt;
    if (cut >= 0 && find_cut) DivideAt(cut);
    return std::move(plan_);
  }

 private:
  enum class Part : uint8_t { kDownload, kComputation, kUpload, kUpdate };

  Part PartOf(OpIndex op) const {
    const LaneSpec& lane = graph_.lanes()[graph_.lane(op)];
    if (lane.role == LaneRole::kCompute) return Part::kComputation;
    if (lane.role == LaneRole::kHub) return Part::kUpdate;
    return lane.network == PhasePlan::kInbound ? Part::kDownload : Part::kUpload;
  }

  size_t Hub(OpIndex op) const { return Index(graph_.lanes()[graph_.lane(op)].index); }

  // True if nothing that waits for the operation, and nothing it waits for, spoils the phases.
  bool Fits(OpIndex op) const {
    const Part part = PartOf(op);
    const bool waits = graph_.dependency_count(op) > 0;
    if (part == Part::kDownload && waits) return false;
    if ((part == Part::kUpload || part == Part::kUpdate) && !waits) return false;
    const std::span<const OpIndex> dependents = graph_.dependents(op);
    return std::all_of(dependents.begin(), dependents.end(), [&](OpIndex dependent) {
      const Part next = PartOf(dependent);
      if (part == Part::kDownload || part == Part::kComputation)
        return next == Part::kComputation || next == Part::kUpload;
      return next == Part::kUpdate && Hub(dependent) == Hub(op);
    });
  }

  void Sort() {
    plan_.uploads_to.resize(hubs_);
    plan_.updates_on.resize(hubs_);
    for (OpIndex op = 0; op < graph_.size(); ++op) {
      switch (PartOf(op)) {
        case Part::kDownload:
          plan_.downloads.push_back(op);
          break;
        case Part::kUpload:
          plan_.uploads.push_back(op);
          plan_.uploads_to[Hub(op)].push_back(op);
          break;
        case Part::kUpdate:
          plan_.updates_on[Hub(op)].push_back(op);
          break;
        case Part::kComputation:
          plan_.computations.push_back(op);
      }
    }
  }

  bool InOrder(OpIndex op) const { return PartOf(op) != Part::kUpdate; }

  // A topological order of downloads, computations and uploads.
  void FindOrder() {
    std::vector<int32_t> pending = graph_.dependency_counts();
    order_.assign(graph_.roots().begin(), graph_.roots().end());
    for (size_t done = 0; done < order_.size(); ++done) {
      for (const OpIndex dependent : graph_.dependents(order_[done])) {
        if (InOrder(dependent) && --pending[Index(dependent)] == 0) order_.push_back(dependent);
      }
    }
  }

  // The first computation that is a cut of what is in order; -1 where there is none.
  OpIndex FindCut() const {
    std::vector<int32_t> place(Index(graph_.size()), -1);
    for (size_t i = 0; i < order_.size(); ++i) place[Index(order_[i])] = static_cast<int32_t>(i);
    TargetLists lists;
    for (const OpIndex op : order_) {
      for (const OpIndex dependent : graph_.dependents(op)) {
        if (place[Index(dependent)] >= 0) lists.targets.push_back(place[Index(dependent)]);
      }
      lists.EndNode();
    }
    const std::vector<bool> cuts = CutsOf(lists);
    for (size_t i = 0; i < order_.size(); ++i) {
      if (cuts[i] && PartOf(order_[i]) == Part::kComputation) return order_[i];
    }
    return -1;
  }

  // 64 downloads at a time, handed on along the order. Means nothing once it was told to stop.
  bool UploadsWaitForAllDownloads() {
    if (plan_.uploads.empty()) return true;
    const auto downloads = plan_.downloads.size();
    if (static_cast<int64_t>(downloads / 64 + 1) * graph_.size() > PhasePlan::kMostChecks)
      return false;
    std::vector<uint64_t> from(Index(graph_.size()));
    for (size_t first = 0; first < downloads; first += 64) {
      std::fill(from.begin(), from.end(), 0);
      const size_t count = std::min<size_t>(64, downloads - first);
      for (size_t i = 0; i < count; ++i) from[Index(plan_.downloads[first + i])] = uint64_t{1} << i;
      for (const OpIndex op : order_) {
        for (const OpIndex dependent : graph_.dependents(op))
          from[Index(dependent)] |= from[Index(op)];
      }
      const uint64_t all = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
      for (const OpIndex upload : plan_.uploads) {
        if (from[Index(upload)] != all) return false;
      }
      if (!pace_.GoesOn(graph_.size())) return false;
    }
    return true;
  }

  void DivideAt(OpIndex cut) {
    std::vector<bool> before(Index(graph_.size()), false);
    for (auto op = order_.begin(); *op != cut; ++op) before[Index(*op)] = true;
    const auto later = std::stable_partition(plan_.computations.begin(), plan_.computations.end(),
                                             [&](OpIndex op) -> bool { return before[Index(op)]; });
    plan_.after_cut.assign(later, plan_.computations.end());
    plan_.computations.erase(later, plan_.computations.end());
  }

  const Program& graph_;
  const size_t hubs_;
  PhasePlan plan_;
  std::vector<OpIndex> order_;
  PacedStopCheck pace_;
};

}  // namespace

size_t PhasePlan::HubsOf(const Lanes& lanes) {
  if (lanes.networks() != 2 || lanes.CountOf(kInbound) != lanes.CountOf(kOutbound)) return 0;
  const int32_t hubs = lanes.CountOf(kInbound);
  if (lanes.first_link() != HubLane(hubs) || lanes[0].role != LaneRole::kCompute) return 0;
  for (int32_t hub = 0; hub < hubs; ++hub) {
    if (lanes[HubLane(hub)] != LaneSpec{.role = LaneRole::kHub, .index = hub}) return 0;
  }
  return Index(hubs);
}

absl::StatusOr<std::optional<PhasePlan>> PhasePlan::Make(const Program& graph, bool find_cut,
                                                         StopCheck stop) {
  return PhasePlanner(graph, stop).Plan(find_cut);
}

// All downloads of a hub queue at once: ranked ones go before all others, which stand in one line
// with what was stopped.
PhasePlan::DownloadOrder PhasePlan::InOrder(const Program& graph, const int32_t* ranks) const {
  DownloadOrder order{.phases = std::vector<DownloadPhase>(uploads_to.size()),
                      .arrival_order = std::vector<int32_t>(downloads.size())};
  struct Waiting {
    int32_t source = 0;
    int32_t service = 0;
  };
  std::vector<int32_t> ranked;  // sources
  std::vector<std::deque<Waiting>> lines(uploads_to.size());
  const auto hub_of = [&](int32_t source) {
    return Index(graph.lanes()[graph.lane(downloads[Index(source)])].index);
  };
  const auto rank_of = [&](int32_t source) {
    return ranks == nullptr ? Ranking::kUnranked : ranks[downloads[Index(source)]];
  };
  const auto serve = [&](Waiting next) {
    const OpIndex op = downloads[Index(next.source)];
    const TransferWork& work = graph.work(op);
    const Span span = work.OfService(next.service);
    const bool stops = next.service + 1 < work.services;
    DownloadPhase& phase = order.phases[hub_of(next.source)];
    phase.services.push_back(
        {.op = op, .service = next.service, .source = stops ? -1 : next.source, .work = span});
    phase.total += span;
    order.arrival_order[Index(next.source)] = static_cast<int32_t>(phase.services.size());
    if (stops)
      lines[hub_of(next.source)].push_back({.source = next.source, .service = next.service + 1});
  };
  for (int32_t source = 0; Index(source) < downloads.size(); ++source) {
    if (rank_of(source) == Ranking::kUnranked) {
      lines[hub_of(source)].push_back({.source = source});
    } else {
      ranked.push_back(source);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](int32_t a, int32_t b) { return rank_of(a) < rank_of(b); });
  for (const int32_t source : ranked) serve({.source = source});
  for (std::deque<Waiting>& line : lines) {
    for (; !line.empty(); line.pop_front()) serve(line.front());
  }
  return order;
}

}  // namespace stepcast
