// Traces that ui.perfetto.dev shows: of workers, and of a pipeline.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/communication/all_reduce.h"
#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/pipeline/simulation.h"
#include "core/replay/critical_path.h"
#include "core/replay/execution.h"
#include "core/trace/trace_events.h"

namespace stepcast {

// The threads that a trace shows of each worker: its steps, then its connections and processors in
// the order in which a step uses them.
class TraceLanes {
 public:
  // Lanes that run nothing are not shown; joint lanes all are, if any runs something.
  explicit TraceLanes(const Program& graph);

  struct Lane {
    int32_t thread_id = 0;  // its place in the order, too
    std::string name;
  };
  // In order, the steps first.
  const std::vector<Lane>& shown() const { return shown_; }
  // REQUIRES: an operation of the graph runs on it.
  int32_t ThreadOf(LaneIndex lane) const { return thread_of_[static_cast<size_t>(lane)]; }

 private:
  std::vector<Lane> shown_;
  std::vector<int32_t> thread_of_;  // by LaneIndex
};

// A writer of the steps of a run as a trace that ui.perfetto.dev shows: one JSON object in Chrome's
// trace event format.
//
// A worker is a process, each of its lanes a thread with a complete event ("X") a chunk, and its
// steps are a thread, too. Start and end of each event are rounded by themselves, to the nearest
// picosecond, so that events of one lane touch but never overlap. The order of events is not by
// time. The contract's GenerateTraceResponse says what `args` are. Threads: none. Memory: a piece
// and the metadata of one worker, whatever the number of steps. Cost: some hundred bytes and
// nanoseconds an event.
class PerfettoWriter final : public TraceSink, public TraceEvents {
 public:
  // The run that is traced. Borrowed, as the sink is.
  struct Subject {
    const Profile& profile;
    const Scenario& scenario;
    const Program& graph;  // of both
    const std::vector<PlannedCollective>& collectives;
    int32_t steps_per_worker = 0;  // shown; later ones are left out
  };

  PerfettoWriter(const Subject& subject, TextSink sink);

  // Call first.
  void Begin();
  void OnStep(std::span<const ChunkRecord> chunks) override;
  // The critical path of the steps shown: a process of its own, above the workers, with an event a
  // segment, and a flow of arrows through the events that it leads through. REQUIRES: the
  // execution is of the run that OnStep was told of, and the path is its.
  void WritePath(const Execution& execution, const CriticalPath& path, PacedStopCheck& pace);

 private:
  void WriteChunk(const ChunkRecord& chunk);
  void WriteSegment(const Execution& execution, const PathSegment& segment);
  // The process of the path, an index as those of workers are.
  int32_t PathProcess() const { return subject_.scenario.workers; }
  std::string TitleOf(OpIndex op) const;
  int32_t ThreadOf(OpIndex op, int32_t service) const;
  void AppendTransferArgs(const ChunkRecord& chunk);
  void AppendCollectiveArgs(const ChunkRecord& chunk);
  void AppendComputationArgs(const ChunkRecord& chunk);

  const Subject subject_;
  const TraceLanes lanes_;
  std::vector<int32_t> collective_of_;  // by OpIndex, of collectives
  std::vector<double> compute_speed_;   // by worker; empty: all as recorded
};

// Writes the slices of a run as they end: a replica is a process (of replicas that are alike some,
// each of which stands for several), with a thread for its steps, one a device, one a direction of
// each link between devices, and one a device whose gradients are reduced. A flow leads from what
// makes a transfer over the transfer to what waited for it. Memory: of the steps under way.
class PipelineTrace final : public PipelineLog, public TraceEvents {
 public:
  // `job` outlives it.
  PipelineTrace(const PipelineJob& job, TextSink sink);

  // Call first.
  void Begin();
  void OnSlice(const PipelineSlice& slice) override;

 private:
  // Steps of a replica whose devices are not all through.
  struct OpenStep {
    int32_t devices = 0;  // that are
    Instant begin;
    Instant end;
  };

  int32_t ThreadOf(const PipelineSlice& slice) const;
  int32_t LinkThread(int32_t from, int32_t to) const;
  int32_t ReductionThread(int32_t device) const;
  std::string NameOf(const PipelineSlice& slice) const;
  void WriteSlice(const PipelineSlice& slice);
  void WriteFlow(const char* phase, const PipelineSlice& slice, int64_t transfer);
  void EndStep(const PipelineSlice& slice);

  const PipelineJob& job_;
  std::map<std::pair<int32_t, int32_t>, OpenStep> open_;  // by replica and step
  std::vector<Instant> ended_;                            // by replica, its last whole step
};

// Events that such a trace has at most.
int64_t MostPipelineEvents(const PipelineLayout& layout, int32_t replicas, int32_t steps);

}  // namespace stepcast
