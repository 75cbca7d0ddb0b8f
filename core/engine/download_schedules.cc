#include "core/engine/download_schedules.h"

#include <utility>

#include "core/base/time.h"

namespace stepcast {

namespace {

// Drops what nobody waits for, or somebody who also waits for what comes later: its work is added
// to the next one's.
void KeepWhatMatters(const LaneSchedule& computation, PhasePlan::DownloadPhase& phase) {
  Span skipped;
  size_t kept = 0;
  for (size_t i = 0; i < phase.services.size(); ++i) {
    PhasePlan::Service service = phase.services[i];
    skipped += service.work;
    const bool matters = service.source >= 0 && computation.Matters(service.source);
    if (!matters && i + 1 < phase.services.size()) continue;
    service.work = std::exchange(skipped, Span{});
    phase.services[kept++] = service;
  }
  phase.services.resize(kept);
}

}  // namespace

DownloadSchedules::DownloadSchedules(const JobGraph& job, const PhasePlan& plan, bool traced,
                                     bool keeps_chunks)
    : graph_(*job.programs.front()),
      plan_(plan),
      traced_(traced),
      keeps_chunks_(keeps_chunks),
      rule_(job.rankings.empty() ? Ranking::Rule::kArrival : job.rankings.front()->rule),
      kept_(rule_ == Ranking::Rule::kRecorded ? Index(graph_.step_count()) : 1) {}

std::shared_ptr<const DownloadSchedule> DownloadSchedules::Of(int32_t recorded,
                                                              const int32_t* ranks) {
  if (rule_ == Ranking::Rule::kShuffled) return Make(ranks);
  std::shared_ptr<const DownloadSchedule>& kept =
      kept_[rule_ == Ranking::Rule::kRecorded ? Index(recorded) : 0];
  if (kept != nullptr) return kept;
  std::shared_ptr<const DownloadSchedule> made = Make(ranks);
  if (kept_operations_ > 0 && kept_operations_ + graph_.size() > kMostKept) return made;
  kept_operations_ += graph_.size();
  kept = std::move(made);
  return kept;
}

std::shared_ptr<const DownloadSchedule> DownloadSchedules::Make(const int32_t* ranks) {
  PhasePlan::DownloadOrder order = plan_.InOrder(graph_, ranks);
  const bool shuffled = rule_ == Ranking::Rule::kShuffled;
  std::shared_ptr<LaneSchedule> computation = any_order_;
  if (computation == nullptr) {
    computation = std::make_shared<LaneSchedule>(
        graph_, plan_.downloads, plan_.computations,
        plan_.after_cut.empty() ? plan_.uploads : std::vector<OpIndex>{},
        shuffled ? std::vector<int32_t>{} : order.arrival_order);
    if (shuffled) any_order_ = computation;
  }
  std::vector<std::vector<Span>> chunks(keeps_chunks_ ? order.phases.size() : 0);
  for (size_t hub = 0; hub < chunks.size(); ++hub) {
    chunks[hub].reserve(order.phases[hub].services.size());
    for (const PhasePlan::Service& service : order.phases[hub].services)
      chunks[hub].push_back(service.work);
  }
  if (!traced_) {
    for (PhasePlan::DownloadPhase& phase : order.phases) KeepWhatMatters(*computation, phase);
  }
  std::vector<int32_t> last_awaited;
  if (!traced_ && !shuffled && !plan_.after_cut.empty() && order.phases.size() == 1) {
    std::vector<int32_t> arriving;
    for (const PhasePlan::Service& service : order.phases.front().services)
      arriving.push_back(service.source);
    last_awaited = computation->LastAwaited(arriving);
  }
  return std::make_shared<const DownloadSchedule>(
      DownloadSchedule{.phases = std::move(order.phases),
                       .chunks = std::move(chunks),
                       .computation = std::move(computation),
                       .last_awaited = std::move(last_awaited)});
}

}  // namespace stepcast
