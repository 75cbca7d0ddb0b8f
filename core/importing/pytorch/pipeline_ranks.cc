#include "core/importing/pytorch/pipeline_ranks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/importing/common/recording_import.h"
#include "core/importing/common/time_spans.h"
#include "core/importing/pytorch/pytorch_content.h"
#include "core/importing/pytorch/pytorch_reader.h"

namespace stepcast {

namespace {

using HostKind = TraceHostEvent::Kind;

constexpr size_t kWarmUp = 2;
constexpr int64_t kLongestNs = 1'000'000'000'000'000;

// One step's events of a rank.
class StageStepReader {
 public:
  StageStepReader(const PyTorchTrace& trace, const TraceHostEvent& step) : step_(step) {
    const auto begin =
        std::partition_point(trace.host.begin(), trace.host.end(),
                             [&](const auto& event) { return event.start_ns < step.start_ns; });
    for (auto at = begin; at != trace.host.end() && at->start_ns < step.end_ns; ++at)
      events_.push_back(&*at);
  }

  absl::Status Read(PipelineRank& rank) {
    Gather();
    const size_t count = forwards_.size();
    if (count == 0)
      return Fault(
          "has no DistributedDataParallel.forward, by which micro-batches are told: wrap each "
          "stage in DistributedDataParallel, also where it has one replica");
    if (gradients_.empty() || gradients_.size() % count != 0)
      return Fault(absl::StrCat("has ", gradients_.size(), " gradients, not as many for each of ",
                                count, " forward passes"));
    PipelineRank::Step step{.number = step_.number,
                            .optimizer_ns = optimizer_ns_,
                            .length_ns = step_.end_ns - step_.start_ns};
    for (const TimeSpan& forward : forwards_)
      step.micro_batches.push_back({.forward_ns = forward.end_ns - forward.start_ns});
    FindBackwards(count, step);
    if (absl::Status status = FindGradients(count, rank); !status.ok()) return status;
    rank.steps.push_back(std::move(step));
    return absl::OkStatus();
  }

 private:
  absl::Status Fault(const std::string& what) const {
    return ImportFault(kAtRecording, absl::StrCat(StepName(step_.number), " ", what));
  }

  static int64_t BytesOf(const TraceHostEvent& event) {
    return std::max<int64_t>(event.number, 1) *
           (event.element_bytes > 0 ? event.element_bytes : SentTensor::kBytesOfUnknownElement);
  }

  void Gather() {
    for (const TraceHostEvent* event : events_) {
      const TimeSpan span{.start_ns = event->start_ns, .end_ns = event->end_ns};
      if (event->kind == HostKind::kForwardPass) forwards_.push_back(span);
      if (event->kind == HostKind::kBackward || event->kind == HostKind::kGradientScope)
        functions_.push_back(event);
      if (event->kind == HostKind::kGradient) gradients_.push_back(event);
      if (event->kind == HostKind::kCopyFromBucket) ++copies_;
      if (event->kind == HostKind::kSend || event->kind == HostKind::kReceive)
        transfers_.push_back(event);
      if (event->kind == HostKind::kCollectiveCall && event->collective == Collective::kUnspecified)
        calls_.push_back(span);
      if (event->kind == HostKind::kOptimizer)
        optimizer_ns_ = std::min(optimizer_ns_ + event->end_ns - event->start_ns, kLongestNs);
    }
    calls_ = UnionOf(std::move(calls_));
  }

  // The host's time from one instant to another, without its calls of sends and receives.
  int64_t TimeBetween(int64_t from_ns, int64_t to_ns) const {
    return to_ns - from_ns - LengthOf(BothOf(calls_, {{from_ns, to_ns}}));
  }

  // A backward pass begins with the first function after the last gradient of the one before.
  void FindBackwards(size_t count, PipelineRank::Step& step) {
    const size_t each = gradients_.size() / count;
    auto function = functions_.begin();
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const int64_t end_ns = EndOfGradient(i);
      if (i % each == 0) {
        const int64_t after = i == 0 ? step_.start_ns : EndOfGradient(i - 1);
        while (function != functions_.end() && (*function)->start_ns < after) ++function;
        backwards_.push_back({.start_ns = function == functions_.end() ? gradients_[i]->start_ns
                                                                       : (*function)->start_ns});
      }
      TimeSpan& backward = backwards_.back();
      const int64_t from = i % each == 0 ? backward.start_ns : EndOfGradient(i - 1);
      step.micro_batches[i / each].backward_ns.push_back(
          std::max<int64_t>(TimeBetween(from, std::max(end_ns, from)), 0));
      backward.end_ns = end_ns;
    }
  }

  // The end of the engine's function around it, with DistributedDataParallel's hook.
  int64_t EndOfGradient(size_t i) const {
    int64_t end_ns = gradients_[i]->end_ns;
    const auto next = std::partition_point(
        functions_.begin(), functions_.end(),
        [&](const auto* function) { return function->start_ns <= gradients_[i]->start_ns; });
    if (next != functions_.begin() && (*(next - 1))->kind == HostKind::kGradientScope)
      end_ns = std::max(end_ns, (*(next - 1))->end_ns);
    return end_ns;
  }

  // A tensor sent after a forward pass is an activation, after a backward pass its input's
  // gradient. Adds to the rank, or says by what the step is unlike those before.
  absl::Status FindGradients(size_t count, PipelineRank& rank) const {
    std::map<int64_t, int64_t> activations;
    std::map<int64_t, int64_t> inputs;
    std::map<int64_t, int64_t> received;
    for (const TraceHostEvent* transfer : transfers_) {
      if (transfer->kind == HostKind::kReceive) {
        ++received[BytesOf(*transfer)];
      } else {
        ++(IsAfterForward(transfer->start_ns) ? activations : inputs)[BytesOf(*transfer)];
      }
    }
    for (const auto* sent : {&activations, &inputs}) {
      if (sent->empty()) continue;
      if (sent->size() > 1 || sent->begin()->second != static_cast<int64_t>(count))
        return Fault(absl::StrCat(
            "sends ", TensorsOf(*sent), sent == &inputs ? " back" : " on", " in ", count,
            " micro-batches, not one of one size for each: more than one chunk of a device, or "
            "several tensors between stages, are not read from recordings"));
    }
    const int64_t activation = activations.empty() ? 0 : activations.begin()->first;
    const int64_t input = inputs.empty() ? 0 : inputs.begin()->first;
    std::vector<int64_t> gradients;
    for (size_t i = 0; i < gradients_.size() / count; ++i)
      gradients.push_back(BytesOf(*gradients_[i]));
    // A stage's input is a leaf, whose gradient is no parameter's, and so not copied from a bucket.
    const bool has_leaf = copies_ == 0 || gradients.size() == copies_ + 1;
    if (const auto leaf = std::find(gradients.rbegin(), gradients.rend(), input);
        input > 0 && has_leaf && leaf != gradients.rend())
      *leaf = 0;
    if (rank.steps.empty()) {
      rank.activation_bytes = activation;
      rank.input_bytes = input;
      rank.received = std::move(received);
      rank.gradient_bytes = std::move(gradients);
      return absl::OkStatus();
    }
    if (static_cast<int64_t>(count) != rank.micro_batches() ||
        activation != rank.activation_bytes || input != rank.input_bytes ||
        received != rank.received || gradients != rank.gradient_bytes)
      return Fault(absl::StrCat("is unlike ", StepName(rank.steps.front().number),
                                " in its micro-batches, gradients or transfers"));
    return absl::OkStatus();
  }

  bool IsAfterForward(int64_t at_ns) const {
    const auto last = [at_ns](const std::vector<TimeSpan>& passes) {
      int64_t start_ns = INT64_MIN;
      for (const TimeSpan& pass : passes)
        if (pass.start_ns <= at_ns) start_ns = std::max(start_ns, pass.start_ns);
      return start_ns;
    };
    return last(forwards_) >= last(backwards_);
  }

  const TraceHostEvent& step_;
  std::vector<const TraceHostEvent*> events_;
  std::vector<TimeSpan> forwards_;
  std::vector<TimeSpan> backwards_;
  std::vector<const TraceHostEvent*> functions_;
  std::vector<const TraceHostEvent*> gradients_;
  std::vector<const TraceHostEvent*> transfers_;
  std::vector<TimeSpan> calls_;
  size_t copies_ = 0;
  int64_t optimizer_ns_ = 0;
};

// Keeps the steps that all ranks have.
absl::Status MatchSteps(std::vector<PipelineRank>& ranks) {
  for (PipelineRank& rank : ranks) {
    std::erase_if(rank.steps, [&](const PipelineRank::Step& step) {
      return !std::all_of(ranks.begin(), ranks.end(), [&](const PipelineRank& other) {
        return std::any_of(other.steps.begin(), other.steps.end(),
                           [&](const auto& same) { return same.number == step.number; });
      });
    });
    if (rank.steps.empty())
      return ImportFault(rank.path, absl::StrCat("rank ", rank.rank,
                                                 " has no step that all other ranks have, too: "
                                                 "record the same steps on all"));
  }
  return absl::OkStatus();
}

// The operations of one micro-batch, and how long each takes of every recorded one.
class PipelineProfile {
 public:
  PipelineProfile(const std::vector<PipelineRank>& ranks, double scale)
      : ranks_(ranks), scale_(scale) {
    for (size_t r = 0; r < ranks.size(); ++r) AddForward(r);
    for (size_t r = ranks.size(); r > 0; --r) AddBackward(r - 1);
    for (size_t r = 0; r < ranks.size(); ++r) AddOptimizer(r);
  }

  ProfileDraft Draft(const RecordingOptions& options) && {
    ProfileDraft draft{.display_name = options.model,
                       .model = options.model,
                       .framework = std::string(kPytorchFramework),
                       .batch_size = options.batch_size,
                       .platform = options.platform};
    draft.operations = std::move(operations_);
    for (const std::vector<int64_t>& lengths : lengths_) {
      RecordedStep& step = draft.steps.emplace_back();
      int64_t at_ns = 0;
      for (const int64_t length : lengths) {
        step.start_ns.push_back(at_ns);
        step.end_ns.push_back(at_ns = std::min(at_ns + length, 2 * kLongestNs));
      }
    }
    return draft;
  }

 private:
  int32_t Add(Operation operation) {
    operations_.push_back(std::move(operation));
    return static_cast<int32_t>(operations_.size()) - 1;
  }

  // Lengths of an operation in every micro-batch of every step.
  template <typename Length>
  void AddLengths(size_t r, Length length) {
    size_t sample = 0;
    for (const PipelineRank::Step& step : ranks_[r].steps) {
      for (const PipelineRank::MicroBatch& micro_batch : step.micro_batches) {
        if (sample == lengths_.size()) lengths_.emplace_back();
        const double scaled = static_cast<double>(length(step, micro_batch)) * scale_;
        lengths_[sample++].push_back(std::llround(std::min<double>(scaled, kLongestNs)));
      }
    }
  }

  void AddForward(size_t r) {
    Operation forward{.name = absl::StrCat("forward/", r),
                      .resource = Resource::kWorker,
                      .pass = Pass::kForward,
                      .output_bytes = ranks_[r].activation_bytes};
    if (r > 0) forward.waiting_for = {static_cast<int32_t>(r) - 1};
    Add(std::move(forward));
    AddLengths(r, [](const auto&, const auto& micro_batch) { return micro_batch.forward_ns; });
  }

  void AddBackward(size_t r) {
    const std::vector<int64_t>& bytes = ranks_[r].gradient_bytes;
    for (size_t i = 0; i < bytes.size(); ++i) {
      Operation backward{.name = absl::StrCat("backward/", r, "/", i),
                         .resource = Resource::kWorker,
                         .waiting_for = {static_cast<int32_t>(r)},
                         .pass = Pass::kBackward};
      if (before_ >= 0) backward.waiting_for.push_back(before_);
      before_ = Add(std::move(backward));
      AddLengths(r,
                 [i](const auto&, const auto& micro_batch) { return micro_batch.backward_ns[i]; });
      if (bytes[i] == 0) continue;
      const std::string name = absl::StrCat("gradient/", r, "/", i);
      gradients_[r].push_back(Add({.name = name,
                                   .resource = Resource::kCollective,
                                   .size_bytes = bytes[i],
                                   .waiting_for = {before_},
                                   .parameter = name,
                                   .collective = Collective::kAllReduce}));
      AddLengths(r, [](const auto&, const auto&) { return 0; });
    }
  }

  void AddOptimizer(size_t r) {
    Operation optimizer{.name = absl::StrCat("optimizer/", r),
                        .resource = Resource::kWorker,
                        .waiting_for = gradients_[r],
                        .pass = Pass::kOptimizer};
    if (optimizer.waiting_for.empty()) optimizer.waiting_for = {before_};
    Add(std::move(optimizer));
    AddLengths(r, [](const auto& step, const auto&) { return step.optimizer_ns; });
  }

  const std::vector<PipelineRank>& ranks_;
  const double scale_;
  std::vector<Operation> operations_;
  std::vector<std::vector<int64_t>> lengths_;  // by recorded micro-batch
  std::map<size_t, std::vector<int32_t>> gradients_;
  int32_t before_ = -1;
};

double MedianStepNs(const std::vector<PipelineRank>& ranks) {
  std::vector<int64_t> lengths;
  for (const PipelineRank& rank : ranks)
    for (const PipelineRank::Step& step : rank.steps) lengths.push_back(step.length_ns);
  const auto middle = lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return static_cast<double>(*middle);
}

std::vector<std::string> NotesOn(const std::vector<PipelineRank>& ranks) {
  const int64_t micro_batches = ranks[0].micro_batches();
  std::vector<std::string> notes = {absl::StrFormat(
      "Found a pipeline of %d stages, one a rank, and %d steps of %d micro-batches: a recorded "
      "step of the profile is a micro-batch, of which batch_size is the examples.",
      ranks.size(), ranks[0].steps.size(), micro_batches)};
  for (size_t r = 0; r < ranks.size(); ++r) {
    double forward = 0;
    double backward = 0;
    double optimizer = 0;
    for (const PipelineRank::Step& step : ranks[r].steps) {
      optimizer += static_cast<double>(step.optimizer_ns);
      for (const PipelineRank::MicroBatch& each : step.micro_batches) {
        forward += static_cast<double>(each.forward_ns);
        for (const int64_t length : each.backward_ns) backward += static_cast<double>(length);
      }
    }
    const auto steps = static_cast<double>(ranks[r].steps.size());
    const double passes = steps * static_cast<double>(micro_batches);
    double bytes = 0;
    for (const int64_t gradient : ranks[r].gradient_bytes) bytes += static_cast<double>(gradient);
    notes.push_back(absl::StrFormat(
        "Found stage %d on rank %d: %.3f ms of forward and %.3f ms of backward a micro-batch, "
        "%.3f ms of optimizer a step, %.0f bytes of gradients, and %d bytes handed on.",
        r, ranks[r].rank, forward / passes / kNsPerMs, backward / passes / kNsPerMs,
        optimizer / steps / kNsPerMs, bytes, ranks[r].activation_bytes));
  }
  notes.emplace_back(
      "Left out: waiting for other ranks, the bubble, transfers, and reductions with their copies. "
      "What operations keep for the backward pass is not read of ranks.");
  return notes;
}

}  // namespace

absl::StatusOr<PipelineRank> ReadPipelineRank(const PyTorchTrace& trace) {
  if (!trace.device.empty())
    return ImportFault(kAtRecording,
                       "it has sends or receives and kernels of a GPU, and of the ranks of a "
                       "pipeline only ones that compute on their hosts are read: record one "
                       "micro-batch of the whole model on one GPU, and ask for the pipeline in "
                       "the scenario");
  PipelineRank rank{.rank = trace.rank, .world_size = std::max<int64_t>(trace.world_size, 0)};
  for (const TraceGroup& group : trace.groups)
    if (DimensionOf(group) == "pipeline") rank.stages = std::max(rank.stages, group.size);
  std::vector<const TraceHostEvent*> steps;
  for (const TraceHostEvent& event : trace.host)
    if (event.kind == HostKind::kStep) steps.push_back(&event);
  if (steps.size() > kWarmUp) steps.erase(steps.begin(), steps.begin() + kWarmUp);
  for (const TraceHostEvent* step : steps)
    if (absl::Status status = StageStepReader(trace, *step).Read(rank); !status.ok()) return status;
  if (rank.steps.empty())
    return ImportFault(kAtRecording, "it has no ProfilerStep: call the profiler's step()");
  return rank;
}

absl::StatusOr<ImportedProfile> ProfileOfPipeline(std::vector<PipelineRank> ranks,
                                                  const PyTorchTraceOptions& options,
                                                  const ProfileLimits& limits) {
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const PipelineRank& a, const PipelineRank& b) { return a.rank < b.rank; });
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i].rank < 0 || (i > 0 && ranks[i].rank == ranks[i - 1].rank))
      return ImportFault(
          ranks[i].path,
          absl::StrCat("its rank is ", ranks[i].rank < 0 ? "not known" : "another's, too",
                       ": name the file rank0.json, rank1.json, .."));
  std::vector<std::string> doubts;
  if (absl::Status status = CheckReplica(ranks, doubts); !status.ok()) return status;
  if (absl::Status status = MatchSteps(ranks); !status.ok()) return status;
  std::vector<std::string> notes = NotesOn(ranks);
  notes.insert(notes.end(), doubts.begin(), doubts.end());
  double scale = 1;
  if (options.step_seconds.has_value()) {
    scale = *options.step_seconds * 1e9 / std::max(MedianStepNs(ranks), 1.0);
    notes.push_back(
        absl::StrFormat("Put right: all times are scaled by %.4f, so that the median step lasts "
                        "the %.6g s that it does without the profiler.",
                        scale, *options.step_seconds));
  }
  absl::StatusOr<Profile> profile =
      Profile::Create(PipelineProfile(ranks, scale).Draft(options.recording), limits);
  if (!profile.ok()) return AsImportFaults(profile.status());
  return ImportedProfile{.profile = *std::move(profile), .notes = std::move(notes)};
}

}  // namespace stepcast
