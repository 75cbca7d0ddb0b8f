// A trace of a pipeline that ui.perfetto.dev shows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/simulation.h"
#include "core/trace/trace_events.h"

namespace stepcast {

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
