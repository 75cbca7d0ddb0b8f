#include "core/engine/phase_rows.h"

#include <algorithm>

namespace stepcast {

namespace {

// Notes when each operation ran.
struct Notes {
  void Ran(int32_t op, Instant start, Instant end) {
    ran.push_back({.op = operations[static_cast<size_t>(op)], .start = start, .end = end});
  }

  const std::vector<OpIndex>& operations;
  std::vector<PhaseRow::Ran>& ran;
};

std::vector<PhaseRow::Decisive> DecisiveOf(const DownloadSchedule& downloads,
                                           const std::vector<int64_t>& durations) {
  if (downloads.last_awaited.empty()) return {};
  const std::vector<PhasePlan::Service>& services = downloads.phases.front().services;
  std::vector<Span> waiting(services.size());
  for (size_t op = 0; op < durations.size(); ++op) {
    if (downloads.last_awaited[op] >= 0)
      waiting[Index(downloads.last_awaited[op])].ticks += durations[op];
  }
  std::vector<Span> works;
  works.reserve(services.size());
  for (const PhasePlan::Service& service : services) works.push_back(service.work);
  const LatestEnds ends(works, waiting);
  std::vector<PhaseRow::Decisive> decisive;
  const Span all = ends.TakenBefore(ends.size());
  for (int32_t i = ends.size() - 1; i >= 0; i = ends.DecisiveBefore(i))
    decisive.push_back({.work = ends.WorkBefore(i + 1), .after = all - ends.TakenBefore(i)});
  std::reverse(decisive.begin(), decisive.end());
  for (size_t i = decisive.size(); i-- > 1;)
    decisive[i].work = decisive[i].work - decisive[i - 1].work;
  return decisive;
}

}  // namespace

PhaseRows::PhaseRows(const Program& graph, const PhasePlan& plan, bool traced, bool streamed)
    : graph_(graph),
      plan_(plan),
      traced_(traced),
      streamed_(streamed),
      after_cut_(graph, {}, plan.after_cut, plan.uploads) {
  std::vector<int32_t> places(plan.uploads_to.size(), 0);
  for (size_t i = 0; i < plan.uploads.size(); ++i)
    place_of_upload_.push_back(places[static_cast<size_t>(HubOfUpload(static_cast<int32_t>(i)))]++);
}

std::unique_ptr<PhaseRow> PhaseRows::Make(double speed, int32_t recorded,
                                          const DownloadSchedule& downloads, const int32_t* ranks) {
  auto row = std::make_unique<PhaseRow>();
  row->durations.reserve(plan_.computations.size());
  for (const OpIndex op : plan_.computations) {
    row->durations.push_back(AtSpeed(graph_.duration(recorded, op), speed).ticks);
    row->computation += row->durations.back();
  }
  row->downloads = DecisiveOf(downloads, row->durations);
  if (!plan_.after_cut.empty()) RunAfterCut(speed, recorded, *row);
  if (streamed_) FillStreams(recorded, *row);
  for (size_t hub = 0; ranks != nullptr && hub < row->ready.size(); ++hub)
    row->ranked.push_back(RankedBy(ranks, hub, *row));
  for (const std::vector<OpIndex>& on_hub : plan_.updates_on) {
    PhaseRow::Updates& updates = row->updates.emplace_back();
    updates.durations.reserve(on_hub.size());
    for (const OpIndex op : on_hub) {
      updates.durations.push_back(graph_.duration(recorded, op).ticks);
      updates.total += updates.durations.back();
    }
  }
  return row;
}

PhaseRow::Ranked PhaseRows::RankedBy(const int32_t* ranks, size_t hub, const PhaseRow& row) const {
  const std::vector<LaneSchedule::Ready>& ready = row.ready[hub];
  PhaseRow::Ranked ranked{.ranks = std::vector<int32_t>(ready.size()),
                          .least_later = std::vector<int32_t>(ready.size())};
  int32_t least = Ranking::kUnranked;
  for (size_t i = ready.size(); i-- > 0;) {
    const int32_t rank = ranks[plan_.uploads_to[hub][Index(ready[i].sink)]];
    ranked.ranks[i] = rank;
    ranked.least_later[i] = least;
    ranked.is_sorted = ranked.is_sorted && rank <= least;
    least = std::min(least, rank);
  }
  return ranked;
}

void PhaseRows::FillStreams(int32_t recorded, PhaseRow& row) const {
  for (size_t hub = 0; hub < row.ready.size(); ++hub) {
    PhaseRow::Stream& stream = row.streams.emplace_back();
    std::vector<Span> works;
    std::vector<Span> updates;
    stream.ready.reserve(row.ready[hub].size());
    works.reserve(row.ready[hub].size());
    updates.reserve(row.ready[hub].size());
    for (const LaneSchedule::Ready& ready : row.ready[hub]) {
      const OpIndex upload = plan_.uploads_to[hub][static_cast<size_t>(ready.sink)];
      stream.ready.push_back(ready.at - Instant{});
      works.push_back(graph_.work(upload).first);
      Span& update = updates.emplace_back();
      for (const OpIndex after : graph_.dependents(upload))
        update += graph_.duration(recorded, after);
    }
    stream.ends = LatestEnds(works, updates);
  }
}

void PhaseRows::RunAfterCut(double speed, int32_t recorded, PhaseRow& row) {
  std::vector<int64_t> durations;
  durations.reserve(plan_.after_cut.size());
  for (const OpIndex op : plan_.after_cut)
    durations.push_back(AtSpeed(graph_.duration(recorded, op), speed).ticks);
  std::vector<LaneSchedule::Ready> ready;
  ready.reserve(plan_.uploads.size());
  Instant end;
  if (traced_) {
    end = after_cut_.Run(Instant{}, {}, durations.data(), ready,
                         Notes{.operations = plan_.after_cut, .ran = row.ran});
  } else {
    end = after_cut_.Run(Instant{}, {}, durations.data(), ready, LaneSchedule::Unwatched{});
  }
  row.after_cut = end - Instant{};
  row.computation += row.after_cut.ticks;
  row.ready.resize(plan_.uploads_to.size());
  for (size_t hub = 0; hub < row.ready.size(); ++hub)
    row.ready[hub].reserve(plan_.uploads_to[hub].size());
  for (LaneSchedule::Ready upload : ready) {
    const auto hub = static_cast<size_t>(HubOfUpload(upload.sink));
    upload.sink = place_of_upload_[static_cast<size_t>(upload.sink)];
    row.ready[hub].push_back(upload);
  }
}

}  // namespace stepcast
