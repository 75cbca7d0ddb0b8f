// A writer of the steps of a run as a trace that ui.perfetto.dev shows: one JSON object in Chrome's
// trace event format.
//
// A worker is a process, each of its lanes a thread with a complete event ("X") a chunk, and its
// steps are a thread, too. Start and end of each event are rounded by themselves, to the nearest
// picosecond, so that events of one lane touch but never overlap. The order of events is not by
// time. The contract's GenerateTraceResponse says what `args` are. Threads: none. Memory: a piece
// and the metadata of one worker, whatever the number of steps. Cost: some hundred bytes and
// nanoseconds an event.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "core/engine/program.h"
#include "core/engine/simulation.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/trace/text_pieces.h"
#include "core/trace/trace_lanes.h"

namespace stepcast {

class PerfettoWriter final : public TraceSink {
 public:
  // The run that is traced. Borrowed, as the sink is.
  struct Subject {
    const Profile& profile;
    const Scenario& scenario;
    const Program& graph;          // of both
    int32_t steps_per_worker = 0;  // shown; later ones are left out
  };

  PerfettoWriter(const Subject& subject, TextSink sink);

  // Call first.
  void Begin();
  void OnStep(std::span<const ChunkRecord> chunks) override;
  // Call last. Not called, the text is no JSON yet.
  void End();

  // The error of the sink; from then on nothing is written.
  const absl::Status& status() const { return pieces_.status(); }
  int64_t events() const { return events_; }

 private:
  // Begins an event with the fields that all have. EndEvent ends it.
  void BeginEvent(const char* phase, int32_t worker, int32_t thread);
  void EndEvent();
  void WriteMetadata(const char* kind, int32_t worker, int32_t thread, const std::string& name,
                     int32_t sort_index);
  void WriteStep(int32_t worker, int32_t step, Instant begin, Instant end);
  void WriteChunk(const ChunkRecord& chunk);
  void AppendTimes(Instant begin, Instant end);
  void AppendTransferArgs(const ChunkRecord& chunk);
  void AppendComputationArgs(const ChunkRecord& chunk);

  const Subject subject_;
  const TraceLanes lanes_;
  std::vector<double> compute_speed_;  // by worker; empty: all as recorded
  TextPieces pieces_;
  std::string event_;  // at hand; a member only to keep its memory
  int64_t events_ = 0;
};

}  // namespace stepcast
