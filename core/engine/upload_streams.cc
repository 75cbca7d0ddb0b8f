#include "core/engine/upload_streams.h"

namespace stepcast {

bool UploadStreams::Fit(const Program& graph, const PhasePlan& plan) {
  if (plan.after_cut.empty()) return false;
  for (const OpIndex op : plan.uploads) {
    if (graph.work(op).services > 1) return false;
  }
  for (size_t hub = 0; hub < plan.uploads_to.size(); ++hub) {
    for (const OpIndex op : plan.uploads_to[hub]) {
      if (graph.dependents(op).size() > 1) return false;
    }
    // Of a hub's updates each waits for one upload alone.
    for (const OpIndex op : plan.updates_on[hub]) {
      if (graph.dependency_count(op) != 1 || !graph.dependents(op).empty()) return false;
    }
  }
  return true;
}

Instant UploadStreams::EndByDecisive(const Stream& stream, LoggedLink::Reader reader) {
  const LatestEnds& ends = stream.row->ends;
  decisive_.clear();
  for (int32_t i = ends.DecisiveBefore(stream.batch_end - 1); i >= stream.arrived;
       i = ends.DecisiveBefore(i))
    decisive_.push_back(i);
  Instant end;
  Span read = ends.WorkBefore(stream.arrived);
  for (; !decisive_.empty(); decisive_.pop_back()) {
    const int32_t upload = decisive_.back();
    const Span work = ends.WorkBefore(upload + 1);
    end = std::max(end, reader.After(work - read) +
                            (ends.TakenBefore(stream.batch_end) - ends.TakenBefore(upload)));
    read = work;
  }
  return end;
}

int64_t UploadStreams::UpdatedUntil(int32_t worker, const PhaseRow& /*row*/, Instant /*step_begin*/,
                                    Instant now, const LoggedLink& link) const {
  const Stream& stream = streams_[static_cast<size_t>(worker)];
  if (stream.row == nullptr) return 0;
  const LatestEnds& ends = stream.row->ends;
  Instant updated_at = stream.updated_at;
  Span updated = ends.TakenBefore(stream.arrived);
  if (link.IsActive(worker)) {
    LoggedLink::Reader reader = link.Read(worker);
    const Span carried = ends.WorkBefore(stream.arrived) + link.CarriedOf(worker, now);
    for (int32_t i = stream.arrived; i < stream.batch_end && ends.WorkBefore(i + 1) <= carried;
         ++i) {
      const Span update = ends.TakenBefore(i + 1) - ends.TakenBefore(i);
      const Instant arrived = reader.After(ends.WorkBefore(i + 1) - ends.WorkBefore(i));
      updated_at = std::max(updated_at, arrived) + update;
      updated += update;
    }
  }
  // Since the last arrival it has not been idle before it was done.
  return updated.ticks - std::max<int64_t>(0, (updated_at - now).ticks);
}

}  // namespace stepcast
