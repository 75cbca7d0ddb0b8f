#include "tests/core/calibrate/streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "core/engine/program.h"
#include "tests/core/engine/job_builder.h"

namespace stepcast::testing {

namespace {

// Download i of the profile is operation downloads[i].
struct StreamJob {
  Profile profile;
  std::vector<int32_t> downloads;
};

StreamJob JobOf(const std::vector<StreamRequest>& requests) {
  JobBuilder job;
  std::vector<int32_t> downloads;
  int64_t now = 0;
  int32_t clock = -1;
  for (const StreamRequest& request : requests) {
    if (request.start_ns > now) {
      clock = job.Compute(request.start_ns - now,
                          clock < 0 ? JobBuilder::Waits{} : JobBuilder::Waits{clock});
      now = request.start_ns;
    }
    downloads.push_back(job.Download(request.size_bytes,
                                     now == 0 ? JobBuilder::Waits{} : JobBuilder::Waits{clock}));
  }
  ProfileDraft draft = job.Build().content();
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto operation = static_cast<size_t>(downloads[i]);
    draft.steps[0].start_ns[operation] = 0;
    draft.steps[0].end_ns[operation] = requests[i].end_ns;
  }
  return {.profile = Profile::Create(std::move(draft)).value(), .downloads = std::move(downloads)};
}

}  // namespace

RecordedPhase PhaseFrom(const std::vector<StreamRequest>& requests) {
  RecordedPhase phase;
  for (const StreamRequest& request : requests) {
    phase.push_back({.operation = static_cast<int32_t>(phase.size()),
                     .size_bytes = static_cast<double>(request.size_bytes),
                     .start_ns = static_cast<double>(request.start_ns),
                     .end_ns = static_cast<double>(request.end_ns)});
  }
  return phase;
}

std::vector<double> EngineEnds(const std::vector<StreamRequest>& requests,
                               const ScenarioDraft& scenario, TransferOrder order) {
  const StreamJob job = JobOf(requests);
  Scenario resolved = Resolved(job.profile, scenario);
  resolved.servers().transfer_order = order;
  const JobGraph job_graph = JobFor(job.profile, resolved);
  const Program& graph = *job_graph.programs.front();
  KeptTrace trace;
  RunOptions options = OptionsFor(resolved, 1);
  options.trace = &trace;
  options.fastest_path = EnginePath::kPlain;
  const absl::StatusOr<RunResult> result = Simulate(job_graph, options, NeverStop);
  EXPECT_TRUE(result.ok()) << result.status();
  std::vector<double> ends(requests.size());
  for (const ChunkRecord& chunk : trace.records) {
    const auto at = std::find(job.downloads.begin(), job.downloads.end(), graph.source(chunk.op));
    if (at == job.downloads.end()) continue;
    double& end = ends[static_cast<size_t>(at - job.downloads.begin())];
    end = std::max(end, static_cast<double>(ToNanoseconds(chunk.end)));
  }
  return ends;
}

RecordedPhase RecordedByEngine(const std::vector<StreamRequest>& requests,
                               const ScenarioDraft& scenario, double noise, Random& random) {
  const std::vector<double> ends = EngineEnds(requests, scenario, TransferOrder::kGraph);
  RecordedPhase phase = PhaseFrom(requests);
  for (size_t i = 0; i < phase.size(); ++i) {
    phase[i].end_ns = phase[i].start_ns +
                      (ends[i] - phase[i].start_ns) * std::max(0.01, 1 + noise * random.Normal());
  }
  return phase;
}

Profile ProfileOf(const std::vector<std::vector<StreamRequest>>& steps, double bytes_per_second) {
  ProfileDraft draft{.batch_size = 1, .platform = {.bandwidth_bytes_per_second = bytes_per_second}};
  for (const StreamRequest& request : steps.front()) {
    draft.operations.push_back({.name = "stream" + std::to_string(draft.operations.size()),
                                .resource = Resource::kDownlink,
                                .size_bytes = request.size_bytes});
  }
  for (const std::vector<StreamRequest>& requests : steps) {
    RecordedStep& step = draft.steps.emplace_back();
    for (const StreamRequest& request : requests) {
      step.start_ns.push_back(request.start_ns);
      step.end_ns.push_back(request.end_ns);
    }
  }
  return Profile::Create(std::move(draft)).value();
}

}  // namespace stepcast::testing
