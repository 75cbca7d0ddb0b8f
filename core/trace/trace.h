// The trace of the first steps of a job, chunk by chunk: the front door of traces.
//
// Threads: pure functions of their arguments; any number at once.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/throughput.h"
#include "core/trace/trace_events.h"

namespace stepcast {

// A request as it is asked for, unchecked.
struct TraceDraft {
  ScenarioDraft scenario;
  SimulationOptionsDraft options;
  bool critical_path = false;  // shown, too
  bool recording = false;      // of several workers, as it was recorded, instead of the scenario
};

// A checked request: one run without warm-up.
struct TraceQuery {
  Scenario scenario;
  SimulationOptions options;
  bool critical_path = false;
  bool recording = false;
};

struct TraceLimits {
  int64_t max_trace_events = 5'000'000;  // of the workers; some gigabyte of text
  int64_t max_path_events = 2'000'000;   // of them where a path is followed; some 300 MB of memory
};

inline constexpr int32_t kDefaultTraceSteps = 5;

// Fails as ResolveScenario does, all faults at once, reason REQUEST_INVALID, paths relative to the
// request (`scenario.workers`, `options.steps_per_worker`). An option that has no effect on a trace
// is a fault, and so are more events than the limit. Of a recording all steps are shown unless
// fewer are asked for.
absl::StatusOr<TraceQuery> ResolveTrace(const Profile& profile, const TraceDraft& draft,
                                        const TraceLimits& limits = {});

struct TraceSummary {
  int64_t events = 0;  // metadata included
  SimulationStatistics simulation;
};

// Runs what is asked for and writes the trace, piece by piece, as it goes (PerfettoWriter). The run
// is the first one of a prediction with the same scenario, seed and start; of a recording of
// several workers it is the replay that a diagnosis follows (RecordedJobOf), its clocks aligned.
// The critical path is that of the steps shown, and comes last.
//
// REQUIRES: the query was resolved for this profile. Memory: the chunks of one step a worker, and
// one piece; with the critical path all chunks, some 150 bytes each. Failure: what `sink` or `stop`
// returns, what Simulate fails with, and of a recording what AlignClocks and RecordedJobOf fail
// with; the text ends anywhere then.
absl::StatusOr<TraceSummary> WriteTrace(const Profile& profile, const TraceQuery& query,
                                        TextSink sink, StopCheck stop);

}  // namespace stepcast
