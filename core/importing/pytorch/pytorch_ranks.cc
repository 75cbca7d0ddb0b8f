#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/pytorch/pipeline_ranks.h"
#include "core/importing/pytorch/pytorch_content.h"
#include "core/importing/pytorch/pytorch_reader.h"
#include "core/importing/pytorch/pytorch_trace.h"

namespace stepcast {

namespace {

// The steps of a trace, with the times of their collectives: on a GPU those of the kernels, else of
// the annotations.
class RankSteps {
 public:
  RankSteps(const PyTorchTrace& trace, const std::string& gradient_group)
      : trace_(trace), gradient_group_(gradient_group) {}

  absl::StatusOr<std::vector<RankStep>> Find() const {
    std::vector<std::string> notes;
    const absl::StatusOr<std::vector<StepContent>> contents =
        FindStepContents(trace_, gradient_group_, notes);
    if (!contents.ok()) return contents.status();
    std::vector<RankStep> steps;
    for (const StepContent& content : *contents) {
      RankStep step{.number = content.number,
                    .begin_ns = trace_.base_ns + content.window.start_ns,
                    .end_ns = trace_.base_ns + content.window.end_ns};
      if (!content.inner.empty()) {
        return ImportFault(
            kAtRecording,
            absl::StrCat(StepName(content.number), " has ", content.inner.size(),
                         " collectives of other groups than the gradients', as models that are cut "
                         "in pieces have: give the recording of one rank"));
      }
      const std::vector<CollectiveRun> kernels = KernelsOf(content);
      if (!trace_.device.empty() && kernels.size() != content.sent.size()) {
        return ImportFault(
            kAtRecording,
            absl::StrCat(StepName(content.number), " launched ", kernels.size(), " kernels for ",
                         content.sent.size(), " collectives: it cannot be said which is whose"));
      }
      for (size_t i = 0; i < content.sent.size(); ++i) {
        const SentTensor& tensor = content.sent[i];
        if (tensor.elements == 0) continue;
        const bool has_run = tensor.run.end_ns > tensor.run.start_ns;
        if (kernels.empty() && !has_run) {
          return ImportFault(
              kAtRecording,
              absl::StrCat("collective ", i, " of ", StepName(content.number),
                           " has no recorded run (gloo:all_reduce, or a kernel of NCCL)"));
        }
        step.collectives.push_back(
            {.what = {.name = NameOfCollective(tensor.kind, step.collectives.size()),
                      .kind = tensor.kind,
                      .size_bytes = tensor.bytes()},
             .group_size = tensor.group_size,
             .run = kernels.empty()
                        ? CollectiveRun{.start_ns = trace_.base_ns + tensor.run.start_ns,
                                        .end_ns = trace_.base_ns + tensor.run.end_ns}
                        : kernels[tensor.place]});
      }
      steps.push_back(std::move(step));
    }
    return steps;
  }

 private:
  std::vector<CollectiveRun> KernelsOf(const StepContent& content) const {
    std::vector<CollectiveRun> kernels;
    auto work = std::partition_point(
        trace_.device.begin(), trace_.device.end(),
        [&](const TraceDeviceWork& each) { return each.launch_ns < content.window.start_ns; });
    for (; work != trace_.device.end() && work->launch_ns < content.window.end_ns; ++work) {
      if (work->is_collective) {
        kernels.push_back(
            {.start_ns = trace_.base_ns + work->start_ns, .end_ns = trace_.base_ns + work->end_ns});
      }
    }
    return kernels;
  }

  const PyTorchTrace& trace_;
  const std::string& gradient_group_;
};

absl::StatusOr<RankPart> PartOf(const PyTorchTrace& read, const RankTrace& trace,
                                const PyTorchTraceOptions& options, const ProfileLimits& limits) {
  absl::StatusOr<std::vector<RankStep>> steps = RankSteps(read, options.data_parallel_group).Find();
  if (!steps.ok()) return steps.status();
  absl::StatusOr<ImportedProfile> imported = ProfileOfPyTorchRank(read, options, limits);
  if (!imported.ok()) return imported.status();
  return RankPart{.rank = read.rank >= 0 ? read.rank : RankOfName(trace.name),
                  .world_size = read.world_size,
                  .name_of_step = StepName,
                  .steps = *std::move(steps),
                  .imported = *std::move(imported)};
}

absl::StatusOr<ImportedProfile> ImportPipeline(const std::vector<RankTrace>& traces,
                                               const PyTorchTrace& first,
                                               const PyTorchTraceOptions& options,
                                               const ProfileLimits& limits, StopCheck stop) {
  if (traces.size() > kMaxRecordedWorkers)
    return ImportFault("recordings",
                       absl::StrCat(traces.size(), " traces are more than ", kMaxRecordedWorkers));
  if (!options.data_parallel_group.empty())
    return ImportFault("data_parallel_group",
                       absl::StrCat(Quoted(options.data_parallel_group),
                                    ", and of a pipeline's stages all gradients are reduced"));
  std::vector<PipelineRank> ranks;
  for (size_t i = 0; i < traces.size(); ++i) {
    const std::string path = absl::StrCat("recordings[", i, "]");
    absl::StatusOr<PyTorchTrace> next;
    if (i > 0) next = ReadPyTorchTrace(*traces[i].recording, limits, stop);
    if (i > 0 && !next.ok()) return AtPath(next.status(), path);
    absl::StatusOr<PipelineRank> rank = ReadPipelineRank(i == 0 ? first : *next);
    if (!rank.ok()) return AtPath(rank.status(), path);
    if (rank->rank < 0) rank->rank = RankOfName(traces[i].name);
    rank->path = path;
    ranks.push_back(*std::move(rank));
  }
  return ProfileOfPipeline(std::move(ranks), options, limits);
}

}  // namespace

absl::StatusOr<PyTorchJob> ImportPyTorchJob(const std::vector<RankTrace>& traces,
                                            const PyTorchTraceOptions& options,
                                            const ProfileLimits& limits, StopCheck stop) {
  if (absl::Status status = CheckPyTorchTraceOptions(options, limits); !status.ok()) return status;
  absl::StatusOr<PyTorchTrace> first;
  if (!traces.empty()) first = ReadPyTorchTrace(*traces[0].recording, limits, stop);
  if (first.ok() && first->has_transfers)
    return ImportPipeline(traces, *first, options, limits, stop);
  if (options.step_seconds.has_value()) {
    return ImportFault("step_seconds",
                       absl::StrCat(*options.step_seconds,
                                    " given, and times of several workers that are alike are as "
                                    "recorded"));
  }
  return ImportRanks(traces, limits, [&](const RankTrace& trace) -> absl::StatusOr<RankPart> {
    const bool is_first = &trace == traces.data();
    const absl::StatusOr<PyTorchTrace> read =
        is_first ? std::move(first) : ReadPyTorchTrace(*trace.recording, limits, stop);
    if (!read.ok()) return read.status();
    return PartOf(*read, trace, options, limits);
  });
}

absl::StatusOr<MultiRankRecording> ImportPyTorchRanks(const std::vector<RankTrace>& traces,
                                                      const PyTorchTraceOptions& options,
                                                      const ProfileLimits& limits, StopCheck stop) {
  absl::StatusOr<PyTorchJob> job = ImportPyTorchJob(traces, options, limits, stop);
  if (!job.ok()) return job.status();
  if (auto* recording = std::get_if<MultiRankRecording>(&*job)) return std::move(*recording);
  return ImportFault("recordings", "of the stages of a pipeline, not of workers alike");
}

}  // namespace stepcast
