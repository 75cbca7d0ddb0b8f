#include "core/importing/pytorch_content.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "core/base/quoted.h"
#include "core/importing/recording_options.h"

namespace stepcast {

namespace {

constexpr size_t kStepsLeftOut = 2;
constexpr int64_t kLongest = int64_t{1} << 60;

using EventKind = TraceHostEvent::Kind;

absl::Status ContentFault(std::string description) {
  return ImportFault(kAtRecording, std::move(description));
}

class StepContentFinder {
 public:
  StepContentFinder(const PyTorchTrace& trace, std::vector<std::string>& notes)
      : trace_(trace), notes_(notes) {}

  absl::StatusOr<std::vector<StepContent>> Find() {
    absl::Status status = CheckReadable();
    if (status.ok()) status = ChooseSteps();
    if (status.ok()) status = CheckAlike();
    if (!status.ok()) return status;
    return std::move(contents_);
  }

 private:
  absl::Status CheckReadable() const;
  absl::Status ChooseSteps();
  StepContent ContentOf(const TraceHostEvent& step) const;
  static void FindBuckets(StepContent& content);
  absl::Status CheckAlike() const;

  const PyTorchTrace& trace_;
  std::vector<std::string>& notes_;
  std::vector<StepContent> contents_;
};

absl::Status StepContentFinder::CheckReadable() const {
  if (trace_.events == 0) return ContentFault("its traceEvents have no event with a length");
  if (!trace_.has_categories) {
    return ContentFault(
        "its events have no categories, shapes or threads, as export_chrome_trace writes where "
        "PyTorch is built without Kineto (Debian's python3-torch is): record with a PyTorch of "
        "which torch.profiler.kineto_available() is true");
  }
  const bool has_gradients =
      std::any_of(trace_.host.begin(), trace_.host.end(),
                  [](const TraceHostEvent& e) { return e.kind == EventKind::kGradient; });
  const bool has_steps =
      std::any_of(trace_.host.begin(), trace_.host.end(),
                  [](const TraceHostEvent& e) { return e.kind == EventKind::kStep; });
  if (!has_steps) {
    return ContentFault(absl::StrCat(
        "it has no ProfilerStep", has_gradients ? "" : " and no gradients",
        ": record training steps with torch.profiler.profile(schedule=schedule(wait=5, warmup=3, "
        "active=12), record_shapes=True), and call p.step() after each"));
  }
  if (!has_gradients) {
    return ContentFault(
        "it has no torch::autograd::AccumulateGrad, so no step of it trains: record forward and "
        "backward, with ProfilerActivity.CPU among the activities");
  }
  if (trace_.device.empty() && trace_.names_devices) {
    return ContentFault(
        "it names a GPU and has nothing that ran on it: record with ProfilerActivity.CUDA among "
        "the activities");
  }
  return absl::OkStatus();
}

absl::Status StepContentFinder::ChooseSteps() {
  std::vector<const TraceHostEvent*> steps;
  std::vector<int64_t> lengths;
  for (const TraceHostEvent& event : trace_.host) {
    if (event.kind != EventKind::kStep) continue;
    steps.push_back(&event);
    lengths.push_back(event.end_ns - event.start_ns);
  }
  if (steps.size() <= kStepsLeftOut) {
    return ContentFault(
        absl::StrCat("it has ", steps.size(), " ProfilerStep", steps.size() == 1 ? "" : "s",
                     ", of which the first two are left out: record at least three, better twelve "
                     "(schedule(wait=5, warmup=3, active=12))"));
  }
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2),
                   lengths.end());
  const int64_t median = lengths[lengths.size() / 2];
  std::vector<std::string> left_out;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool is_short = steps[i]->end_ns - steps[i]->start_ns < median / 2;
    if (i >= kStepsLeftOut && !is_short) {
      contents_.push_back(ContentOf(*steps[i]));
      continue;
    }
    left_out.push_back(absl::StrCat(StepName(steps[i]->number),
                                    i < kStepsLeftOut ? "" : " (shorter than half the median)"));
  }
  if (contents_.empty())
    return ContentFault(
        "after its first two, all its ProfilerSteps are shorter than half the median");
  notes_.push_back(absl::StrCat("Left out: ", absl::StrJoin(left_out, ", "),
                                "; the first two steps warm up, and the buckets of "
                                "DistributedDataParallel are not yet those of later ones."));
  return absl::OkStatus();
}

StepContent StepContentFinder::ContentOf(const TraceHostEvent& step) const {
  StepContent content{.number = step.number, .window = {step.start_ns, step.end_ns}};
  std::vector<const TraceHostEvent*> sizes;
  std::vector<const TraceHostEvent*> calls;
  std::vector<const TraceHostEvent*> runs;
  const TraceHostEvent* scope = nullptr;
  auto event =
      std::lower_bound(trace_.host.begin(), trace_.host.end(), step.start_ns,
                       [](const TraceHostEvent& e, int64_t start) { return e.start_ns < start; });
  for (; event != trace_.host.end() && event->start_ns < step.end_ns; ++event) {
    switch (event->kind) {
      case EventKind::kGradient: {
        const bool in_scope = scope != nullptr && event->end_ns <= scope->end_ns;
        content.gradients.push_back({.start_ns = event->start_ns,
                                     .end_ns = in_scope ? scope->end_ns : event->end_ns,
                                     .elements = event->number,
                                     .element_bytes = event->element_bytes});
        content.optimizer.reset();  // of another part of the model
        [[fallthrough]];
      }
      case EventKind::kBackward:
      case EventKind::kGradientScope:
        if (event->kind == EventKind::kGradientScope) scope = &*event;
        if (event->kind == EventKind::kBackward && event->number >= 0)
          content.nodes.push_back(event->number);
        content.backward_ns = std::min(content.backward_ns, event->start_ns);
        break;
      case EventKind::kCollectiveCall:
        calls.push_back(&*event);
        break;
      case EventKind::kCollective:
        sizes.push_back(&*event);
        break;
      case EventKind::kCollectiveRun:
        runs.push_back(&*event);
        break;
      case EventKind::kCopyFromBucket:
        content.copies.push_back({event->start_ns, event->end_ns});
        break;
      case EventKind::kOptimizer: {
        // Several one after the other are one.
        if (content.gradients.empty()) break;
        if (!content.optimizer) content.optimizer = {event->start_ns, event->end_ns};
        content.optimizer->end_ns = std::max(content.optimizer->end_ns, event->end_ns);
        break;
      }
      case EventKind::kSynchronization:
        content.waited_ns = std::min(
            kLongest, content.waited_ns + std::min(kLongest, event->end_ns - event->start_ns));
        break;
      case EventKind::kStep:
        break;
    }
  }
  const std::vector<const TraceHostEvent*>& sent =
      !sizes.empty() ? sizes : (!runs.empty() ? runs : calls);
  for (size_t i = 0; i < sent.size(); ++i) {
    const bool has_call = calls.size() == sent.size();
    const bool has_run = runs.size() == sent.size();
    SentTensor tensor{.kind = sent[i]->collective,
                      .launch_ns = has_call ? calls[i]->start_ns : sent[i]->start_ns,
                      .elements = sent[i]->number,
                      .element_bytes = sent[i]->element_bytes,
                      .group_size = sent[i]->group_size};
    if (has_run) tensor.run = {runs[i]->start_ns, runs[i]->end_ns};
    content.sent.push_back(tensor);
  }
  std::stable_sort(
      content.sent.begin(), content.sent.end(),
      [](const SentTensor& a, const SentTensor& b) { return a.launch_ns < b.launch_ns; });
  FindBuckets(content);
  return content;
}

// Between the first gradient and what follows the last.
void StepContentFinder::FindBuckets(StepContent& content) {
  if (content.gradients.empty()) return;
  const int64_t from = content.gradients.front().start_ns;
  int64_t to = content.window.end_ns;
  if (content.optimizer) to = std::min(to, content.optimizer->start_ns);
  if (!content.copies.empty() && content.copies.front().start_ns > from)
    to = std::min(to, content.copies.front().start_ns);
  const auto place = [&content](int64_t at_ns) {
    return static_cast<size_t>(
        std::partition_point(content.sent.begin(), content.sent.end(),
                             [at_ns](const SentTensor& s) { return s.launch_ns < at_ns; }) -
        content.sent.begin());
  };
  content.first_bucket = place(from);
  content.end_bucket = place(to);
}

absl::Status StepContentFinder::CheckAlike() const {
  const StepContent& first = contents_.front();
  if (first.gradients.empty()) {
    return ContentFault(absl::StrCat(StepName(first.number),
                                     " has no torch::autograd::AccumulateGrad: record steps that "
                                     "train, forward and backward"));
  }
  for (const StepContent& content : contents_) {
    const auto differs = [&](size_t here, size_t there, const char* what) {
      return ContentFault(absl::StrCat(StepName(first.number), " has ", there, " ", what, ", ",
                                       StepName(content.number), " ", here,
                                       ": record steps that are alike, one p.step() for each"));
    };
    if (content.gradients.size() != first.gradients.size())
      return differs(content.gradients.size(), first.gradients.size(), "gradients");
    if (content.sent.size() != first.sent.size())
      return differs(content.sent.size(), first.sent.size(), "collectives");
    for (size_t i = 0; i < first.gradients.size(); ++i) {
      if (content.gradients[i].elements != first.gradients[i].elements) {
        return ContentFault(
            absl::StrCat("gradient ", i, " has ", first.gradients[i].elements, " elements in ",
                         StepName(first.number), " and ", content.gradients[i].elements, " in ",
                         StepName(content.number), ": record a model that stays the same"));
      }
    }
    for (const SentTensor& tensor : content.sent) {
      if (tensor.kind != Collective::kUnspecified) continue;
      return ContentFault(absl::StrCat(
          StepName(content.number), " has the collective ", Quoted(trace_.other_collective),
          ", as sharded models have (FSDP, ZeRO) and ones that are cut in pieces: record the "
          "model with DistributedDataParallel, or alone, and ask for sharding in the scenario"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string StepName(int64_t number) {
  return number < 0 ? "a ProfilerStep" : absl::StrCat("ProfilerStep#", number);
}

absl::StatusOr<std::vector<StepContent>> FindStepContents(const PyTorchTrace& trace,
                                                          std::vector<std::string>& notes) {
  return StepContentFinder(trace, notes).Find();
}

}  // namespace stepcast
