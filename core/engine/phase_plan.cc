#include "core/engine/phase_plan.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "core/base/graph_cuts.h"

namespace stepcast {

namespace {

class PhasePlanner {
 public:
  explicit PhasePlanner(const Program& graph)
      : graph_(graph), hubs_(PhasePlan::HubsOf(graph.lanes())) {}

  std::optional<PhasePlan> Plan(bool find_cut) && {
    if (hubs_ == 0) return std::nullopt;
    for (OpIndex op = 0; op < graph_.size(); ++op) {
      if (!Fits(op)) return std::nullopt;
    }
    Sort();
    if (plan_.downloads.empty()) return std::nullopt;
    FindOrder();
    const OpIndex cut = FindCut();
    if (cut < 0 && !UploadsWaitForAllDownloads()) return std::nullopt;
    if (cut >= 0 && find_cut) DivideAt(cut);
    FillPhases();
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
    std::vector<std::vector<int32_t>> targets(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      for (const OpIndex dependent : graph_.dependents(order_[i])) {
        if (place[Index(dependent)] >= 0) targets[i].push_back(place[Index(dependent)]);
      }
    }
    const std::vector<bool> cuts = CutsOf(targets);
    for (size_t i = 0; i < order_.size(); ++i) {
      if (cuts[i] && PartOf(order_[i]) == Part::kComputation) return order_[i];
    }
    return -1;
  }

  // 64 downloads at a time, handed on along the order.
  bool UploadsWaitForAllDownloads() const {
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

  // All downloads of a hub queue at once: first services in graph order, then, turn by turn,
  // what was stopped.
  void FillPhases() {
    plan_.phases.resize(hubs_);
    plan_.arrival_order.resize(plan_.downloads.size());
    std::vector<std::deque<std::pair<int32_t, int32_t>>> lines(hubs_);  // source, service
    for (size_t i = 0; i < plan_.downloads.size(); ++i)
      lines[Hub(plan_.downloads[i])].emplace_back(static_cast<int32_t>(i), 0);
    for (size_t hub = 0; hub < hubs_; ++hub) {
      PhasePlan::DownloadPhase& phase = plan_.phases[hub];
      for (auto& line = lines[hub]; !line.empty(); line.pop_front()) {
        const auto [source, service] = line.front();
        const OpIndex op = plan_.downloads[static_cast<size_t>(source)];
        const TransferWork& work = graph_.work(op);
        const bool stops = service + 1 < work.services;
        phase.services.push_back({.op = op,
                                  .service = service,
                                  .source = stops ? -1 : source,
                                  .work = work.OfService(service)});
        phase.total += work.OfService(service);
        plan_.arrival_order[static_cast<size_t>(source)] =
            static_cast<int32_t>(phase.services.size());
        if (stops) line.emplace_back(source, service + 1);
      }
    }
  }

  const Program& graph_;
  const size_t hubs_;
  PhasePlan plan_;
  std::vector<OpIndex> order_;
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

std::optional<PhasePlan> PhasePlan::Make(const Program& graph, bool find_cut) {
  return PhasePlanner(graph).Plan(find_cut);
}

}  // namespace stepcast
