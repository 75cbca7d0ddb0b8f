#include "core/importing/pytorch/pytorch_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "core/base/error.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/pytorch/gradient_buckets.h"
#include "core/importing/pytorch/pytorch_reader.h"
#include "core/importing/pytorch/pytorch_steps.h"
#include "core/model/profile.h"

namespace stepcast {

namespace {

constexpr double kLongestScaledNs = 1e18;
// So many sizes and times of a note, and of the rest their number.
constexpr size_t kMostListed = 24;

double Ms(double ns) { return ns / kNsPerMs; }

std::string ListOf(const std::vector<std::string>& items) {
  if (items.size() <= kMostListed) return absl::StrJoin(items, ", ");
  const std::vector<std::string> first(items.begin(),
                                       items.begin() + static_cast<ptrdiff_t>(kMostListed));
  return absl::StrCat(absl::StrJoin(first, ", "), " and ", items.size() - kMostListed, " more");
}

// A profile of the steps that a trace has.
class PyTorchProfile {
 public:
  PyTorchProfile(const PyTorchTraceOptions& options, TracedSteps traced)
      : options_(options), traced_(std::move(traced)) {}

  absl::StatusOr<ImportedProfile> Make(const ProfileLimits& limits);

 private:
  double MeanOf(int64_t TracedStep::*field) const;
  double MeanEnd(size_t piece) const;
  bool HasHostOperation() const;
  std::optional<double> IdleFraction() const;
  void AddOperations(ProfileDraft& draft);
  void AddSteps(ProfileDraft& draft) const;
  std::vector<std::string> Notes(const ProfileDraft& draft) const;
  std::string PartsNote() const;
  void AddBucketNotes(std::vector<std::string>& notes) const;
  std::string BucketList(const std::vector<size_t>& counts) const;
  void AddGpuNotes(std::vector<std::string>& notes) const;
  void AddMemoryNotes(std::vector<std::string>& notes) const;

  const PyTorchTraceOptions& options_;
  TracedSteps traced_;
  double scale_ = 1;
  double step_ns_ = 0;               // mean, as recorded
  std::vector<size_t> ready_after_;  // by gradient operation, the piece that launches it
  std::vector<int32_t> operation_of_piece_;
  std::vector<int32_t> operation_of_collective_;
};

double PyTorchProfile::MeanOf(int64_t TracedStep::*field) const {
  double sum = 0;
  for (const TracedStep& step : traced_.steps) sum += static_cast<double>(step.*field);
  return sum / static_cast<double>(traced_.steps.size());
}

double PyTorchProfile::MeanEnd(size_t piece) const {
  double sum = 0;
  for (const TracedStep& step : traced_.steps) sum += static_cast<double>(step.ends_ns[piece]);
  return sum / static_cast<double>(traced_.steps.size());
}

// The GPU hides what the host does where several workers wait for each other; a worker alone would
// show it.
bool PyTorchProfile::HasHostOperation() const {
  return traced_.has_gpu && MeanOf(&TracedStep::exposed_ns) > 0;
}

// Idle share of a lone worker, whose GPU computes or waits for the host; none without a GPU.
std::optional<double> PyTorchProfile::IdleFraction() const {
  double alone_ns = MeanEnd(traced_.pieces.size() - 1);
  if (HasHostOperation()) alone_ns = std::max(alone_ns, MeanOf(&TracedStep::host_ns));
  if (!traced_.has_gpu || alone_ns <= 0) return std::nullopt;
  return std::clamp(1 - MeanOf(&TracedStep::busy_ns) / alone_ns, 0.0, 1.0);
}

void PyTorchProfile::AddOperations(ProfileDraft& draft) {
  std::vector<Operation>& operations = draft.operations;
  operation_of_collective_.assign(traced_.collectives.size(), -1);
  int32_t before = -1;
  std::vector<int32_t> forward(traced_.saved.links.size(), -1);  // operations, by link
  for (size_t p = 0; p < traced_.pieces.size(); ++p) {
    const TracedPiece& piece = traced_.pieces[p];
    const bool is_inside = !piece.group.empty();
    Operation operation{.name = piece.name,
                        .resource = is_inside ? Resource::kCollective : Resource::kWorker,
                        .size_bytes = piece.size_bytes,
                        .collective = piece.collective,
                        .pass = piece.pass,
                        .group = piece.group};
    if (before >= 0) operation.waiting_for.push_back(before);
    if (piece.pass == Pass::kForward && forward.empty()) operation.kept_bytes = traced_.saved.bytes;
    if (piece.link >= 0) {
      const auto link = static_cast<size_t>(piece.link);
      if (piece.pass == Pass::kForward) {
        operation.kept_bytes = traced_.saved.links[link].kept_bytes;
        operation.output_bytes = traced_.saved.links[link].output_bytes;
        forward[link] = static_cast<int32_t>(operations.size());
      } else if (forward[link] >= 0 && forward[link] != before) {
        operation.waiting_for.push_back(forward[link]);
      }
    }
    for (const int32_t needed : piece.needs) {
      const int32_t index = operation_of_collective_[static_cast<size_t>(needed)];
      if (index >= 0) operation.waiting_for.push_back(index);
    }
    before = static_cast<int32_t>(operations.size());
    operation_of_piece_.push_back(before);
    operations.push_back(std::move(operation));
    for (const int32_t launched : piece.launches) {
      const TracedCollective& collective = traced_.collectives[static_cast<size_t>(launched)];
      operation_of_collective_[static_cast<size_t>(launched)] =
          static_cast<int32_t>(operations.size());
      if (collective.is_gradient) ready_after_.push_back(p);
      operations.push_back({.name = collective.name,
                            .resource = Resource::kCollective,
                            .size_bytes = collective.size_bytes,
                            .waiting_for = {before},
                            .parameter = collective.is_gradient && !traced_.gradient_bytes.empty()
                                             ? collective.name
                                             : "",
                            .collective = collective.kind,
                            .pass = collective.is_gradient ? Pass::kUnspecified : Pass::kOther});
    }
  }
  if (HasHostOperation())
    operations.push_back(
        {.name = std::string(kHostAlone), .resource = Resource::kWorker, .stream = 1});
}

void PyTorchProfile::AddSteps(ProfileDraft& draft) const {
  const auto scaled = [this](int64_t ns) {
    return static_cast<int64_t>(
        std::llround(std::min(static_cast<double>(ns) * scale_, kLongestScaledNs)));
  };
  for (const TracedStep& traced : traced_.steps) {
    RecordedStep step{.start_ns = std::vector<int64_t>(draft.operations.size(), 0),
                      .end_ns = std::vector<int64_t>(draft.operations.size(), 0)};
    int64_t start_ns = 0;
    for (size_t p = 0; p < traced_.pieces.size(); ++p) {
      const auto at = static_cast<size_t>(operation_of_piece_[p]);
      step.start_ns[at] = start_ns;
      step.end_ns[at] = start_ns = scaled(traced.ends_ns[p]);
      for (const int32_t launched : traced_.pieces[p].launches) {
        const auto sent =
            static_cast<size_t>(operation_of_collective_[static_cast<size_t>(launched)]);
        step.start_ns[sent] = step.end_ns[sent] = start_ns;
      }
    }
    if (HasHostOperation()) step.end_ns.back() = scaled(traced.host_ns);
    draft.steps.push_back(std::move(step));
  }
}

std::string PyTorchProfile::PartsNote() const {
  double forward = 0;
  double backward = 0;
  double copies = 0;
  double optimizer = 0;
  double start = 0;
  for (size_t p = 0; p < traced_.pieces.size(); ++p) {
    const std::string& name = traced_.pieces[p].name;
    const double length = MeanEnd(p) - start;
    start += length;
    const auto is = [&name](const char* begin) { return name.rfind(begin, 0) == 0; };
    if (is("forward") || is("until_broadcast")) forward += length;
    if (is("backward")) backward += length;
    if (is("copy")) copies += length;
    if (name == "optimizer") optimizer += length;
  }
  const double step = MeanEnd(traced_.pieces.size() - 1);
  const auto share = [step](double part) { return 100 * part / step; };
  return absl::StrFormat(
      "Explained: %.1f %% of a step's %.3f ms are forward (%.1f %%), backward (%.1f %%), copies "
      "out "
      "of buckets (%.1f %%) and optimizer (%.1f %%); the rest is the host's, and the loop's around "
      "them.",
      share(forward + backward + copies + optimizer), Ms(step), share(forward), share(backward),
      share(copies), share(optimizer));
}

// Their sizes, and when the last gradient of each is ready, from where the computation begins.
std::string PyTorchProfile::BucketList(const std::vector<size_t>& counts) const {
  const double begin = MeanOf(&TracedStep::span_ns);
  std::vector<std::string> items;
  size_t next = 0;
  for (const size_t count : counts) {
    int64_t bytes = 0;
    for (size_t i = 0; i < count; ++i) bytes += traced_.gradient_bytes[next++];
    items.push_back(absl::StrFormat("%d (%.1f ms)", bytes,
                                    Ms(MeanEnd(ready_after_[next - 1]) - begin) * scale_));
  }
  return absl::StrCat(counts.size(), " of ", ListOf(items));
}

void PyTorchProfile::AddBucketNotes(std::vector<std::string>& notes) const {
  constexpr char kReady[] = " bytes (in brackets when the last gradient of each is ready)";
  if (traced_.gradient_bytes.empty()) {
    const double begin = MeanOf(&TracedStep::span_ns);
    std::vector<std::string> items;
    for (size_t b = 0; b < traced_.bucket_bytes.size(); ++b) {
      items.push_back(absl::StrFormat("%d (%.1f ms)", traced_.bucket_bytes[b],
                                      Ms(MeanEnd(ready_after_[b]) - begin) * scale_));
    }
    notes.push_back(
        absl::StrCat("Found buckets: ", items.size(), " of ", ListOf(items), kReady, "."));
    return;
  }
  const double share = traced_.sent_share;
  const std::vector<size_t> by_rule = AssignBuckets(
      traced_.gradient_bytes, AsSent(Buckets{}, RecordedBuckets{.sent_share = share}));
  if (traced_.bucket_gradients.empty()) {
    notes.push_back(absl::StrCat(
        "Found no buckets, since the model was recorded without DistributedDataParallel, and so "
        "without its copies into and out of buckets. By its rule (1 MiB first, then 25) they would "
        "be ",
        BucketList(by_rule), kReady, "."));
    return;
  }
  std::string note = absl::StrCat("Found buckets: ", BucketList(traced_.bucket_gradients), kReady);
  if (by_rule == traced_.bucket_gradients) {
    absl::StrAppend(&note,
                    ", as DistributedDataParallel makes them by default (1 MiB first, then "
                    "25).");
  } else {
    const std::optional<CapRange> caps =
        CapsThatMake(traced_.gradient_bytes, traced_.bucket_gradients);
    if (caps && caps->most < INT64_MAX) {
      absl::StrAppendFormat(&note, "; a cap of %.2f to %.2f MiB makes them.",
                            static_cast<double>(caps->least) / share / kMebibyte,
                            static_cast<double>(caps->most) / share / kMebibyte);
    } else {
      absl::StrAppend(&note, caps ? "." : "; no cap makes them.");
    }
    absl::StrAppend(&note, " By default (1 MiB first, then 25) they would be ", BucketList(by_rule),
                    ".");
  }
  notes.push_back(std::move(note));
}

void PyTorchProfile::AddGpuNotes(std::vector<std::string>& notes) const {
  const std::optional<double> idle = IdleFraction();
  if (!idle) return;
  const double step = MeanEnd(traced_.pieces.size() - 1);
  const double begin = MeanOf(&TracedStep::span_ns);
  const double busy = MeanOf(&TracedStep::busy_ns);
  std::string note =
      absl::StrFormat("Found a GPU that is busy for %.1f %% of a step", 100 * busy / step);
  if (step > begin) {
    absl::StrAppendFormat(&note, ", and for %.1f %% from its first kernel to its last",
                          100 * busy / (step - begin));
  }
  notes.push_back(absl::StrCat(note, "."));
  if (*idle <= kIdleFractionOfHostBound) return;
  notes.push_back(absl::StrFormat(
      "%s bound by the host: the GPU waits for it (data loading, Python, launches) for %.1f %% of "
      "a "
      "step, more than a tenth. That time is kept, and no network makes it shorter.",
      HasHostOperation() ? "A worker alone is" : "The recording is", 100 * *idle));
}

void PyTorchProfile::AddMemoryNotes(std::vector<std::string>& notes) const {
  const std::vector<ForwardLink>& links = traced_.saved.links;
  if (!links.empty()) {
    const auto [least, most] = std::minmax_element(
        links.begin(), links.end() - 1,
        [](const ForwardLink& a, const ForwardLink& b) { return a.output_bytes < b.output_bytes; });
    notes.push_back(absl::StrFormat(
        "Found a forward pass of %d parts, forward/0/%s to forward/%d/%s, each of which hands on "
        "one tensor (%.4g to %.4g MB): a pipeline is cut between them.",
        links.size(), links.front().name, links.size() - 1, links.back().name,
        static_cast<double>(least->output_bytes) / 1e6,
        static_cast<double>(most->output_bytes) / 1e6));
  }
  if (traced_.saved.bytes == 0) return;
  notes.push_back(absl::StrFormat(
      "Found: the forward pass keeps %.4g MB for the backward pass, by the shapes of the inputs "
      "of %d operations that autograd saves something of.",
      static_cast<double>(traced_.saved.bytes) / 1e6, traced_.saved.operations));
  if (traced_.saved.run_again > 0) {
    notes.push_back(absl::StrFormat(
        "Found activation checkpointing: %d operations of the forward pass run once more in the "
        "backward pass, which is part of its computation, and what they would keep is not kept; "
        "their inputs are.",
        traced_.saved.run_again));
  }
  notes.emplace_back(
      "Assumed: an input is the latest tensor of its shape that nothing has read yet, else one "
      "that was read before; every tensor is kept once.");
}

std::vector<std::string> PyTorchProfile::Notes(const ProfileDraft& draft) const {
  const size_t steps = traced_.steps.size();
  std::vector<std::string> notes;
  int64_t bytes = 0;
  int64_t gradients = 0;
  for (const TracedCollective& collective : traced_.collectives) {
    if (!collective.is_gradient) continue;
    bytes += collective.size_bytes;
    ++gradients;
  }
  notes.push_back(absl::StrFormat(
      "Found %d step%s of %.3f ms, and %d %s of %d bytes in %d operations.", steps,
      steps == 1 ? "" : "s", Ms(step_ns_), gradients,
      traced_.gradient_bytes.empty() ? "buckets" : "gradients", bytes, draft.operations.size()));
  notes.push_back(PartsNote());
  AddBucketNotes(notes);
  AddGpuNotes(notes);
  AddMemoryNotes(notes);
  notes.insert(notes.end(), traced_.notes.begin(), traced_.notes.end());
  if (const double exposed = MeanOf(&TracedStep::exposed_ns); exposed > 0) {
    notes.push_back(absl::StrFormat(
        "Left out: %.3f ms a step in which the worker waited for collectives%s.", Ms(exposed),
        traced_.group_size > 1 ? absl::StrCat(" of ", traced_.group_size, " workers") : ""));
  }
  std::vector<std::string> shortest;
  for (size_t i = 0; i < traced_.collectives.size(); ++i) {
    if (traced_.shortest_collective_ns[i] > 0) {
      shortest.push_back(absl::StrFormat(
          "%s of %d bytes %.3f ms", traced_.collectives[i].name, traced_.collectives[i].size_bytes,
          Ms(static_cast<double>(traced_.shortest_collective_ns[i]))));
    }
  }
  if (!shortest.empty() && shortest.size() <= traced_.bucket_bytes.size() + 8) {
    notes.push_back(absl::StrCat(
        "Recorded collectives took at least, waiting for others included: ", ListOf(shortest),
        "."));
  }
  if (HasHostOperation()) {
    notes.push_back(absl::StrFormat(
        "Assumed: a worker alone takes at least the %.3f ms that the host worked a step "
        "(host_alone).",
        Ms(MeanOf(&TracedStep::host_ns)) * scale_));
  }
  if (options_.step_seconds) {
    notes.push_back(
        absl::StrFormat("Put right: all times are scaled by %.4f, so that a step lasts "
                        "the %.6g s that it does without the profiler.",
                        scale_, *options_.step_seconds));
  }
  if (steps == 1) {
    notes.emplace_back(
        "Only one step is left, so all steps and workers will be alike: record twelve.");
  }
  return notes;
}

absl::StatusOr<ImportedProfile> PyTorchProfile::Make(const ProfileLimits& limits) {
  if (traced_.pieces.empty())
    return ImportFault(kAtRecording, "its steps take no time: record training steps");
  step_ns_ = MeanEnd(traced_.pieces.size() - 1);
  if (options_.step_seconds && step_ns_ > 0) scale_ = *options_.step_seconds * 1e9 / step_ns_;
  const RecordingOptions& recording = options_.recording;
  ProfileDraft draft{.display_name = recording.model,
                     .model = recording.model,
                     .framework = std::string(kPytorchFramework),
                     .batch_size = recording.batch_size,
                     .platform = recording.platform,
                     .devices_per_worker = static_cast<int32_t>(traced_.devices_per_worker)};
  AddOperations(draft);
  AddSteps(draft);
  if (!traced_.bucket_bytes.empty()) {
    draft.buckets =
        RecordedBuckets{.sizes_bytes = traced_.bucket_bytes, .sent_share = traced_.sent_share};
  }
  draft.device_idle_fraction = IdleFraction();
  std::vector<std::string> notes = Notes(draft);
  absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits);
  if (!profile.ok()) return AsImportFaults(profile.status());
  return ImportedProfile{.profile = *std::move(profile), .notes = std::move(notes)};
}

absl::StatusOr<ImportedProfile> ProfileOf(const PyTorchTrace& trace,
                                          const PyTorchTraceOptions& options,
                                          const ProfileLimits& limits, bool cuts_forward) {
  absl::StatusOr<TracedSteps> traced =
      FindTracedSteps(trace, {cuts_forward, options.data_parallel_group});
  if (!traced.ok()) return traced.status();
  return PyTorchProfile(options, *std::move(traced)).Make(limits);
}

}  // namespace

absl::Status CheckPyTorchTraceOptions(const PyTorchTraceOptions& options,
                                      const ProfileLimits& limits) {
  FaultList faults;
  CheckRecordingOptions(options.recording, limits, faults);
  const double seconds = options.step_seconds.value_or(1);
  const double longest = static_cast<double>(limits.max_step_ns) / 1e9;
  if (!(seconds > 0 && seconds <= longest))
    faults.Add("step_seconds", absl::StrCat(seconds, " is not above 0 and at most ", longest));
  if (options.data_parallel_group.size() > limits.max_text_bytes)
    faults.Add("data_parallel_group",
               TooLong(options.data_parallel_group, "max_text_bytes", limits.max_text_bytes));
  if (faults.empty()) return absl::OkStatus();
  return FaultsError("IMPORT_INVALID", std::move(faults).Take());
}

absl::StatusOr<ImportedProfile> ProfileOfPyTorchRank(const PyTorchTrace& trace,
                                                     const PyTorchTraceOptions& options,
                                                     const ProfileLimits& limits) {
  return ProfileOf(trace, options, limits, /*cuts_forward=*/false);
}

absl::StatusOr<ImportedProfile> ImportPyTorchTrace(ByteSource& recording,
                                                   const PyTorchTraceOptions& options,
                                                   const ProfileLimits& limits, StopCheck stop) {
  if (absl::Status status = CheckPyTorchTraceOptions(options, limits); !status.ok()) return status;
  const absl::StatusOr<PyTorchTrace> trace = ReadPyTorchTrace(recording, limits, stop);
  if (!trace.ok()) return trace.status();
  return ProfileOf(*trace, options, limits, /*cuts_forward=*/true);
}

}  // namespace stepcast
