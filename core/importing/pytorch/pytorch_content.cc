#include "core/importing/pytorch/pytorch_content.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/common/time_spans.h"
#include "core/importing/pytorch/gradient_buckets.h"
#include "core/importing/pytorch/pytorch_reader.h"

namespace stepcast {

namespace {

constexpr size_t kStepsLeftOut = 2;
constexpr int64_t kLongest = int64_t{1} << 60;
constexpr int32_t kNoGroup = -2;  // of gradients

using EventKind = TraceHostEvent::Kind;

absl::Status ContentFault(std::string description) {
  return ImportFault(kAtRecording, std::move(description));
}

// The form of a step: what must be as in all others.
struct StepForm {
  std::vector<int64_t> gradients;
  std::vector<std::tuple<Collective, int64_t, int32_t>> sent;  // sorted: elements, group
  size_t copies = 0;
  bool has_optimizer = false;

  auto operator<=>(const StepForm&) const = default;  // NOLINT(modernize-use-nullptr)
};

StepForm FormOf(const StepContent& content) {
  StepForm form{.copies = content.copies.size(), .has_optimizer = content.optimizer.has_value()};
  for (const Gradient& gradient : content.gradients) form.gradients.push_back(gradient.elements);
  for (const SentTensor& tensor : content.sent)
    form.sent.emplace_back(tensor.kind, tensor.elements, tensor.group);
  std::sort(form.sent.begin(), form.sent.end());
  return form;
}

class StepContentFinder {
 public:
  StepContentFinder(const PyTorchTrace& trace, const std::string& gradient_group,
                    std::vector<std::string>& notes)
      : trace_(trace), gradient_group_(gradient_group), notes_(notes) {}

  absl::StatusOr<std::vector<StepContent>> Find() {
    absl::Status status = CheckReadable();
    if (status.ok()) status = ChooseSteps();
    if (status.ok()) LeaveOutCutSteps();
    if (status.ok()) status = KeepAlike();
    if (status.ok()) status = ChooseGroup();
    if (status.ok()) status = CheckKinds();
    if (!status.ok()) return status;
    ChooseBuckets(contents_);
    NoteOthers();
    return std::move(contents_);
  }

 private:
  absl::Status CheckReadable() const;
  void JoinMicroSteps(std::vector<TraceHostEvent>& steps);
  absl::Status ChooseSteps();
  void LeaveOutCutSteps();
  StepContent ContentOf(const TraceHostEvent& step) const;
  static void FindBuckets(StepContent& content);
  bool IsLastCutOff() const;
  absl::Status KeepAlike();
  absl::StatusOr<int32_t> AskedGroup() const;
  absl::StatusOr<int32_t> FoundGroup() const;
  bool IsInner(const SentTensor& tensor, int32_t chosen) const;
  absl::Status ChooseGroup();
  absl::Status CheckKinds() const;
  void NoteOthers();
  std::string NameOfGroup(int32_t group) const;

  const PyTorchTrace& trace_;
  const std::string& gradient_group_;  // as asked for; empty: to be found
  std::vector<std::string>& notes_;
  std::vector<StepContent> contents_;
  std::vector<std::string> left_out_;
  size_t warm_up_ = kStepsLeftOut;
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
  const bool has_shapes = std::any_of(
      trace_.host.begin(), trace_.host.end(),
      [](const TraceHostEvent& e) { return e.kind == EventKind::kGradient && e.number >= 0; });
  std::vector<std::string> missing;
  if (!has_steps) missing.emplace_back("no ProfilerStep");
  if (!has_gradients)
    missing.emplace_back("no torch::autograd::AccumulateGrad, so no step of it trains");
  if (trace_.device.empty() && trace_.names_devices)
    missing.emplace_back("nothing that ran on the GPU that it names");
  if (!missing.empty() && has_gradients && !has_shapes) missing.emplace_back("no shapes");
  if (!missing.empty()) {
    return ContentFault(absl::StrCat(
        "it has ", absl::StrJoin(missing, ", and "),
        ": record training steps, forward and backward, with "
        "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], "
        "schedule=schedule(wait=5, warmup=3, active=12), record_shapes=True), and call p.step() "
        "after each"));
  }
  return absl::OkStatus();
}

// Steps of which every k-th alone updates, or, where that was not recorded, sends gradients, become
// one step for each of these, with the micro-steps before it that only accumulate. The others stay
// as they are.
void StepContentFinder::JoinMicroSteps(std::vector<TraceHostEvent>& steps) {
  std::vector<size_t> ends;
  bool has_optimizer = false;
  std::vector<StepContent> contents;
  for (const TraceHostEvent& step : steps) {
    const StepContent& content = contents.emplace_back(ContentOf(step));
    if (content.gradients.empty()) return;
    has_optimizer = has_optimizer || content.optimizer.has_value();
  }
  for (size_t i = 0; i < contents.size(); ++i) {
    const bool is_sent = contents[i].first_bucket < contents[i].end_bucket;
    const bool is_end = has_optimizer ? contents[i].optimizer.has_value() : is_sent;
    if (is_end) ends.push_back(i);
    if (!is_end && is_sent) return;
  }
  if (ends.size() < 2) return;
  const size_t micro_steps = ends[1] - ends[0];
  const size_t left = steps.size() - 1 - ends.back();
  bool are_regular = micro_steps > 1 && ends[0] < micro_steps && left < micro_steps;
  for (size_t i = 1; i < ends.size(); ++i)
    are_regular = are_regular && ends[i] - ends[i - 1] == micro_steps;
  if (!are_regular) return;
  std::vector<TraceHostEvent> joined;
  for (const size_t end : ends) {
    // The first two warm up.
    if (end + 1 < kStepsLeftOut + micro_steps) continue;
    joined.push_back(steps[end]);
    joined.back().start_ns = steps[end + 1 - micro_steps].start_ns;
  }
  if (joined.empty()) return;
  notes_.push_back(absl::StrCat(
      "Joined: each ", micro_steps, " ProfilerSteps are one step, since every ",
      micro_steps == 2   ? "2nd"
      : micro_steps == 3 ? "3rd"
                         : absl::StrCat(micro_steps, "th"),
      " alone ", has_optimizer ? "has an optimizer" : "sends gradients",
      " (no_sync); the batch size is of all ", micro_steps,
      " together. Left out: ", steps.size() - micro_steps * joined.size(),
      " ProfilerSteps of joined ones that warm up, or were not recorded to their end."));
  steps = std::move(joined);
  warm_up_ = 0;
}

absl::Status StepContentFinder::ChooseSteps() {
  std::vector<TraceHostEvent> steps;
  std::copy_if(trace_.host.begin(), trace_.host.end(), std::back_inserter(steps),
               [](const TraceHostEvent& event) { return event.kind == EventKind::kStep; });
  if (steps.size() <= kStepsLeftOut) {
    return ContentFault(
        absl::StrCat("it has ", steps.size(), " ProfilerStep", steps.size() == 1 ? "" : "s",
                     ", of which the first two are left out: record at least three, better twelve "
                     "(schedule(wait=5, warmup=3, active=12))"));
  }
  JoinMicroSteps(steps);
  std::vector<int64_t> lengths;
  lengths.reserve(steps.size());
  for (const TraceHostEvent& step : steps) lengths.push_back(step.end_ns - step.start_ns);
  const int64_t median = MiddleOf(lengths);
  const int64_t longest = LongestUsual(lengths, median);
  size_t long_steps = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t length = lengths[i];
    const bool is_short = length < median / 2;
    const bool is_long = length > longest;
    if (i >= warm_up_ && !is_short && !is_long) {
      contents_.push_back(ContentOf(steps[i]));
      continue;
    }
    std::string name = StepName(steps[i].number);
    if (i >= warm_up_ && is_short) name.append(" (shorter than half the median)");
    if (i >= warm_up_ && is_long) {
      absl::StrAppendFormat(&name, " (%.1f times the median)",
                            static_cast<double>(length) / static_cast<double>(median));
      ++long_steps;
    }
    left_out_.push_back(std::move(name));
  }
  if (contents_.empty())
    return ContentFault(
        "after its first two, all its ProfilerSteps are shorter than half the median");
  if (long_steps > 0) {
    notes_.push_back(absl::StrCat(
        "Left out: ", long_steps, " of ", steps.size() - warm_up_,
        " steps that last far longer than the others, as one that evaluates, saves a checkpoint or "
        "waits for data does; where such steps belong to the job, --step-seconds gives the mean "
        "over all."));
  }
  return absl::OkStatus();
}

// A step whose last kernels the recording does not have seems shorter than it was: the last one of
// fewer than any other has, or one of far fewer than most.
void StepContentFinder::LeaveOutCutSteps() {
  constexpr double kFarFewer = 0.9;
  if (trace_.device.empty() || contents_.size() < 2) return;
  const auto launched_before = [this](int64_t host_ns) {
    return std::partition_point(
        trace_.device.begin(), trace_.device.end(),
        [host_ns](const TraceDeviceWork& work) { return work.launch_ns < host_ns; });
  };
  std::vector<int64_t> counts;
  for (const StepContent& content : contents_) {
    counts.push_back(launched_before(content.window.end_ns) -
                     launched_before(content.window.start_ns));
  }
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end() - 1);
  const int64_t usual = MiddleOf(counts);
  const int64_t least_of_last = 2 * *least - *most;
  std::vector<StepContent> kept;
  for (size_t i = 0; i < contents_.size(); ++i) {
    const bool is_cut = static_cast<double>(counts[i]) < kFarFewer * static_cast<double>(usual) ||
                        (i + 1 == contents_.size() && counts[i] < least_of_last);
    if (is_cut) {
      left_out_.push_back(absl::StrCat(StepName(contents_[i].number), " (", counts[i],
                                       " kernels and copies on the GPU, most have ", usual,
                                       ": it was not recorded to its end)"));
    } else {
      kept.push_back(std::move(contents_[i]));
    }
  }
  contents_ = std::move(kept);
}

// True if collectives of the last step have calls and no runs, as those of no other step: the
// recording ended before they did.
bool StepContentFinder::IsLastCutOff() const {
  const auto is_whole = [](const StepContent& content) { return content.runs >= content.calls; };
  return contents_.size() > 1 && contents_.back().runs < contents_.back().calls &&
         contents_.front().runs > 0 &&
         std::all_of(contents_.begin(), std::prev(contents_.end()), is_whole);
}

std::string DifferenceOf(const StepContent& content, const StepContent& like) {
  if (content.gradients.size() != like.gradients.size())
    return absl::StrCat(content.gradients.size(), " gradients, others ", like.gradients.size());
  for (size_t i = 0; i < like.gradients.size(); ++i) {
    if (content.gradients[i].elements != like.gradients[i].elements)
      return absl::StrCat("gradient ", i, " of ", content.gradients[i].elements,
                          " elements, others of ", like.gradients[i].elements);
  }
  if (content.sent.size() != like.sent.size())
    return absl::StrCat(content.sent.size(), " collectives, others ", like.sent.size());
  return "other collectives, copies or no optimizer";
}

// Most steps have the same gradients and collectives; the others are left out.
absl::Status StepContentFinder::KeepAlike() {
  std::map<StepForm, size_t> forms;
  std::vector<StepForm> of_steps;
  const size_t whole = contents_.size() - (IsLastCutOff() ? 1 : 0);
  for (const StepContent& content : contents_) {
    of_steps.push_back(FormOf(content));
    if (of_steps.size() <= whole) ++forms[of_steps.back()];
  }
  const auto usual = std::max_element(
      forms.begin(), forms.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto first = std::find(of_steps.begin(), of_steps.end(), usual->first);
  const StepContent& like = contents_[static_cast<size_t>(first - of_steps.begin())];
  std::vector<StepContent> kept;
  for (size_t i = 0; i < contents_.size(); ++i) {
    if (of_steps[i] == usual->first) continue;
    if (like.sent.empty() && !like.gradients.empty() &&
        of_steps[i].gradients == usual->first.gradients &&
        contents_[i].first_bucket < contents_[i].end_bucket) {
      return ContentFault(absl::StrCat(
          StepName(like.number), " and most steps send no gradients (no_sync), and ",
          StepName(contents_[i].number),
          " does, and not every so many steps: call p.step() once for each step of the optimizer, "
          "after all its micro-batches"));
    }
    std::string what =
        absl::StrCat(StepName(contents_[i].number), " (", DifferenceOf(contents_[i], like),
                     i < whole ? ")" : "; it was not recorded to its end)");
    if (2 * usual->second <= whole) {
      return ContentFault(absl::StrCat(
          StepName(like.number), " and ", what, " differ, and no more than half of its ", whole,
          " steps are alike: record steps that are alike, one p.step() for each"));
    }
    left_out_.push_back(std::move(what));
  }
  for (size_t i = 0; i < contents_.size(); ++i) {
    if (of_steps[i] == usual->first) kept.push_back(std::move(contents_[i]));
  }
  contents_ = std::move(kept);
  if (!left_out_.empty()) {
    const bool has_buckets = std::any_of(contents_.begin(), contents_.end(), [](const auto& each) {
      return each.first_bucket < each.end_bucket;
    });
    notes_.push_back(absl::StrCat("Left out: ", absl::StrJoin(left_out_, ", "),
                                  "; the first two steps warm up",
                                  has_buckets ? ", and the buckets of DistributedDataParallel are "
                                                "not yet those of later ones."
                                              : "."));
  }
  if (contents_.front().gradients.empty()) {
    return ContentFault(absl::StrCat(StepName(contents_.front().number),
                                     " has no torch::autograd::AccumulateGrad: record steps that "
                                     "train, forward and backward"));
  }
  return absl::OkStatus();
}

// Events of a step's collectives: of what was launched its size, its call and its run, not all of
// which are recorded.
struct CollectiveEvents {
  std::vector<const TraceHostEvent*> sizes;
  std::vector<const TraceHostEvent*> calls;
  std::vector<const TraceHostEvent*> runs;

  // True if the event is of one.
  bool Take(const TraceHostEvent& event) {
    if (event.kind == EventKind::kCollective) sizes.push_back(&event);
    if (event.kind == EventKind::kCollectiveCall) calls.push_back(&event);
    if (event.kind == EventKind::kCollectiveRun) runs.push_back(&event);
    return event.kind == EventKind::kCollective || event.kind == EventKind::kCollectiveCall ||
           event.kind == EventKind::kCollectiveRun;
  }

  // By launch.
  std::vector<SentTensor> Sent() const {
    const std::vector<const TraceHostEvent*>& sent =
        !sizes.empty() ? sizes : (!runs.empty() ? runs : calls);
    std::vector<SentTensor> tensors;
    for (size_t i = 0; i < sent.size(); ++i) {
      const bool has_call = calls.size() == sent.size();
      SentTensor tensor{.kind = sent[i]->collective,
                        .launch_ns = has_call ? calls[i]->start_ns : sent[i]->start_ns,
                        .elements = sent[i]->number,
                        .element_bytes = sent[i]->element_bytes,
                        .group_size = sent[i]->group_size,
                        .group = sent[i]->group,
                        .is_whole = sent[i]->is_whole};
      // A run begins whenever its thread comes to it.
      tensor.is_of_hook = has_call || !sizes.empty();
      if (runs.size() == sent.size()) tensor.run = {runs[i]->start_ns, runs[i]->end_ns};
      tensors.push_back(tensor);
    }
    std::stable_sort(tensors.begin(), tensors.end(), [](const SentTensor& a, const SentTensor& b) {
      return a.launch_ns < b.launch_ns;
    });
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i].place = i;
    return tensors;
  }
};

// Finds gradients that the engine adds to others: after a function, within what it does around it,
// or, where that was not recorded, before it does anything else.
class AddedGradients {
 public:
  void Take(const TraceHostEvent& event, std::vector<BackwardNode>& nodes) {
    switch (event.kind) {
      case EventKind::kBackward:
        is_last_ = event.number >= 0;
        if (!is_last_) break;
        nodes.push_back(
            {.start_ns = event.start_ns, .end_ns = event.end_ns, .sequence = event.number});
        function_end_ns_ = INT64_MAX;
        break;
      case EventKind::kFunction:
        if (is_last_ && event.end_ns <= nodes.back().end_ns &&
            event.number == nodes.back().sequence)
          function_end_ns_ = event.end_ns;
        break;
      case EventKind::kAddition: {
        if (!is_last_) break;
        const int64_t end_ns = nodes.back().end_ns;
        const bool is_within = event.start_ns >= function_end_ns_ && event.end_ns <= end_ns;
        const bool is_next = function_end_ns_ == INT64_MAX && event.start_ns >= end_ns;
        if (is_within || is_next) nodes.back().added.push_back(event.number);
        break;
      }
      case EventKind::kSynchronization:
        break;
      default:
        is_last_ = false;
    }
  }

 private:
  bool is_last_ = false;                 // the last event was a function's, or within it
  int64_t function_end_ns_ = INT64_MAX;  // INT64_MAX: not recorded by itself
};

// Several optimizers one after the other are one; a gradient after them is of another part of the
// model.
void TakeOptimizer(const TraceHostEvent& event, StepContent& content) {
  if (content.gradients.empty()) return;
  if (!content.optimizer) content.optimizer = {event.start_ns, event.end_ns};
  content.optimizer->end_ns = std::max(content.optimizer->end_ns, event.end_ns);
}

// The functions of the backward pass that a moment is within.
class FunctionsAround {
 public:
  void Take(const TraceHostEvent& event) {
    while (!open_.empty() && open_.back()->end_ns <= event.start_ns) open_.pop_back();
    if (event.kind == EventKind::kBackward && event.number >= 0) open_.push_back(&event);
  }
  int64_t sequence() const { return open_.empty() ? -1 : open_.back()->number; }

 private:
  std::vector<const TraceHostEvent*> open_;
};

// Reentrant checkpointing runs a piece of the model again with inputs of their own, whose gradients
// are no parameters': of those within its function, the last one of each input's shape.
void LeaveOutGradientsOfInputs(const TensorOperations& tensors, StepContent& content) {
  absl::flat_hash_map<int64_t, const TensorOperation*> functions;
  for (const Gradient& gradient : content.gradients) {
    if (gradient.within >= 0) functions.try_emplace(gradient.within, nullptr);
  }
  if (functions.empty()) return;
  auto operation = std::lower_bound(
      tensors.operations.begin(), tensors.operations.end(), content.window.start_ns,
      [](const TensorOperation& each, int64_t start_ns) { return each.start_ns < start_ns; });
  for (; operation != tensors.operations.end() && operation->start_ns < content.backward_ns;
       ++operation) {
    const auto found = functions.find(operation->sequence);
    if (found != functions.end() && operation->function >= 0) found->second = &*operation;
  }
  for (const auto& each : functions) {  // clang-14 captures no structured binding
    if (each.second == nullptr) continue;
    for (const int32_t place : each.second->shapes) {
      if (place < 0) continue;
      const std::vector<int64_t>& shape = tensors.shapes[static_cast<size_t>(place)];
      int64_t elements = 1;
      for (const int64_t size : shape)
        elements = size > 0 && elements < kLongest / size ? elements * size : 0;
      const auto input = std::find_if(
          content.gradients.rbegin(), content.gradients.rend(), [&](const Gradient& gradient) {
            return gradient.within == each.first && gradient.elements == elements &&
                   !shape.empty() && gradient.rows == shape.front();
          });
      if (input != content.gradients.rend()) content.gradients.erase(std::next(input).base());
    }
  }
}

// Collectives that are launched while the hooks of a gradient run.
void MarkThoseOfHooks(StepContent& content) {
  for (SentTensor& tensor : content.sent) {
    const auto after = std::partition_point(
        content.gradients.begin(), content.gradients.end(),
        [&tensor](const Gradient& gradient) { return gradient.start_ns <= tensor.launch_ns; });
    tensor.is_of_hook = tensor.is_of_hook && after != content.gradients.begin() &&
                        tensor.launch_ns <= std::prev(after)->end_ns;
  }
}

// True for what comes after the gradients of a backward pass, and not within its hooks.
bool EndsBackwardPass(const TraceHostEvent& event, const TraceHostEvent* scope,
                      const StepContent& content) {
  return !content.gradients.empty() && (scope == nullptr || event.start_ns >= scope->end_ns) &&
         (event.kind == EventKind::kForwardPass || event.kind == EventKind::kCopyFromBucket ||
          event.kind == EventKind::kOptimizer);
}

StepContent StepContentFinder::ContentOf(const TraceHostEvent& step) const {
  StepContent content{.number = step.number, .window = {step.start_ns, step.end_ns}};
  CollectiveEvents collectives;
  const TraceHostEvent* scope = nullptr;
  bool is_between = false;  // backward passes
  AddedGradients additions;
  FunctionsAround around;
  auto event =
      std::lower_bound(trace_.host.begin(), trace_.host.end(), step.start_ns,
                       [](const TraceHostEvent& e, int64_t start) { return e.start_ns < start; });
  for (; event != trace_.host.end() && event->start_ns < step.end_ns; ++event) {
    if (collectives.Take(*event)) continue;
    const bool is_gradient = event->kind == EventKind::kGradient;
    is_between = is_between || EndsBackwardPass(*event, scope, content);
    const bool is_backward = is_gradient || event->kind == EventKind::kGradientScope ||
                             event->kind == EventKind::kBackward;
    if (is_backward && std::exchange(is_between, false))
      content.later_passes_ns.push_back(event->start_ns);
    around.Take(*event);
    if (is_gradient) {
      const bool in_scope = scope != nullptr && event->end_ns <= scope->end_ns;
      content.gradients.push_back({.start_ns = event->start_ns,
                                   .end_ns = in_scope ? scope->end_ns : event->end_ns,
                                   .elements = event->number,
                                   .within = around.sequence(),
                                   .rows = event->group_size,
                                   .element_bytes = event->element_bytes});
      content.optimizer.reset();
    }
    if (event->kind == EventKind::kGradientScope) scope = &*event;
    additions.Take(*event, content.nodes);
    if (is_backward) content.backward_ns = std::min(content.backward_ns, event->start_ns);
    if (event->kind == EventKind::kCopyFromBucket)
      content.copies.push_back({event->start_ns, event->end_ns});
    if (event->kind == EventKind::kOptimizer) TakeOptimizer(*event, content);
    if (event->kind == EventKind::kSynchronization) {
      content.waited_ns = std::min(
          kLongest, content.waited_ns + std::min(kLongest, event->end_ns - event->start_ns));
    }
  }
  content.sent = collectives.Sent();
  content.calls = collectives.calls.size();
  content.runs = collectives.runs.size();
  LeaveOutGradientsOfInputs(trace_.tensors, content);
  MarkThoseOfHooks(content);
  FindBuckets(content);
  return content;
}

// Between the first gradient and what follows the last.
void StepContentFinder::FindBuckets(StepContent& content) {
  if (content.gradients.empty()) return;
  const int64_t from = content.gradients.front().start_ns;
  int64_t to = content.window.end_ns;
  if (content.optimizer) to = std::min(to, content.optimizer->start_ns);
  if (content.last_copies() != content.copies.end())
    to = std::min(to, content.last_copies()->start_ns);
  const auto place = [&content](int64_t at_ns) {
    return static_cast<size_t>(
        std::partition_point(content.sent.begin(), content.sent.end(),
                             [at_ns](const SentTensor& s) { return s.launch_ns < at_ns; }) -
        content.sent.begin());
  };
  content.first_bucket = place(from);
  content.end_bucket = place(to);
}

std::string StepContentFinder::NameOfGroup(int32_t group) const {
  const TraceGroup& named = trace_.groups[static_cast<size_t>(group)];
  return named.description.empty()
             ? Quoted(named.name)
             : absl::StrCat(Quoted(named.name), " (", Quoted(named.description), ")");
}

// By its name or its description, where it was asked for.
absl::StatusOr<int32_t> StepContentFinder::AskedGroup() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < trace_.groups.size(); ++i) {
    const TraceGroup& group = trace_.groups[i];
    if (group.name == gradient_group_ || group.description == gradient_group_)
      return static_cast<int32_t>(i);
    names.push_back(NameOfGroup(static_cast<int32_t>(i)));
  }
  return ImportFault(
      "data_parallel_group",
      absl::StrCat(
          "the recording has no group ", Quoted(gradient_group_), ": ",
          names.empty() ? "it names none" : absl::StrCat("it has ", absl::StrJoin(names, ", "))));
}

// The group that gradients add up in: by their sizes, else by its description; kNone: none.
absl::StatusOr<int32_t> StepContentFinder::FoundGroup() const {
  const StepContent& content = contents_.front();
  std::set<int32_t> groups;
  for (size_t i = content.first_bucket; i < content.end_bucket; ++i) {
    const SentTensor& tensor = content.sent[i];
    if (tensor.kind == Collective::kAllReduce && tensor.group >= 0) groups.insert(tensor.group);
  }
  if (groups.empty()) return kNoGroup;
  std::vector<int32_t> likely;
  for (const int32_t group : groups) {
    if (AddUpToGradients(content, group)) likely.push_back(group);
  }
  const bool is_told = !likely.empty();
  if (!is_told) likely.assign(groups.begin(), groups.end());
  if (likely.size() > 1 || !is_told) {
    std::erase_if(likely, [this](int32_t group) {
      return IsInsideReplica(trace_.groups[static_cast<size_t>(group)]);
    });
  }
  if (likely.size() > 1) {
    const auto name = [this](std::string* text, int32_t group) {
      absl::StrAppend(text, NameOfGroup(group));
    };
    return ContentFault(absl::StrCat(
        "its all-reduces are of the groups ", absl::StrJoin(likely, ", ", name),
        ", and sizes do not tell which are of gradients: say it (--data-parallel-group, in a "
        "request data_parallel_group), record with record_shapes=True, or name the groups "
        "(init_device_mesh with mesh_dim_names, new_group with group_desc)"));
  }
  return likely.empty() ? kNoGroup : likely.front();
}

// All other groups' collectives are inside a replica.
absl::Status StepContentFinder::ChooseGroup() {
  const absl::StatusOr<int32_t> chosen = gradient_group_.empty() ? FoundGroup() : AskedGroup();
  if (!chosen.ok()) return chosen.status();
  const bool has_inside = std::any_of(trace_.groups.begin(), trace_.groups.end(), IsInsideReplica);
  // Without all-reduces of gradients, whatever is not inside a replica is left to be judged.
  if (*chosen == kNoGroup && !has_inside) return absl::OkStatus();
  for (StepContent& each : contents_) {
    each.group = *chosen;
    const auto is_inner = [this, chosen](const SentTensor& tensor) {
      return tensor.group >= 0 && tensor.group != *chosen && IsInner(tensor, *chosen);
    };
    std::copy_if(each.sent.begin(), each.sent.end(), std::back_inserter(each.inner), is_inner);
    std::erase_if(each.sent, is_inner);
    FindBuckets(each);
  }
  return absl::OkStatus();
}

// True for a collective of another group than the gradients'. A group that shards a model is not
// one inside a replica, unless the gradients' group was told by name.
bool StepContentFinder::IsInner(const SentTensor& tensor, int32_t chosen) const {
  const TraceGroup& group = trace_.groups[static_cast<size_t>(tensor.group)];
  if (IsInsideReplica(group) || !gradient_group_.empty()) return true;
  return chosen != kNoGroup &&
         (tensor.kind == Collective::kAllReduce || tensor.kind == Collective::kBroadcast ||
          (group.description.empty() && AddUpToGradients(contents_.front(), chosen)));
}

absl::Status StepContentFinder::CheckKinds() const {
  for (const StepContent& content : contents_) {
    // A gather of the group that all-reduces gradients is no shard of the model.
    const bool are_whole = AddUpToGradients(content, content.group);
    const auto other =
        std::find_if(content.sent.begin(), content.sent.end(), [&](const SentTensor& tensor) {
          return tensor.kind != Collective::kAllReduce && tensor.kind != Collective::kBroadcast &&
                 !(are_whole && tensor.kind == Collective::kAllGather && tensor.elements >= 0 &&
                   tensor.group == content.group);
        });
    const bool is_known = other != content.sent.end();
    // Sends and receives whose groups are recorded are among what was sent.
    if (!is_known && (!trace_.has_transfers || !trace_.groups.empty())) continue;
    return ContentFault(absl::StrCat(
        StepName(content.number), " has the collective ", Quoted(trace_.other_collective),
        is_known && other->group >= 0 ? absl::StrCat(" of the group ", NameOfGroup(other->group))
                                      : "",
        ", as sharded models have (FSDP, ZeRO) and ones that are cut in pieces: record the model "
        "with DistributedDataParallel, or alone, and ask for sharding or a pipeline in the "
        "scenario, or give the recordings of all ranks of one replica of a pipeline; where the "
        "group is inside a replica, --data-parallel-group (in a request data_parallel_group) says "
        "which one is of gradients"));
  }
  return absl::OkStatus();
}

void StepContentFinder::NoteOthers() {
  const StepContent& content = contents_.front();
  if (std::string note = NoteOfOtherAllReduces(content); !note.empty())
    notes_.push_back(std::move(note));
  std::map<int32_t, std::pair<size_t, int64_t>> inner;
  for (const SentTensor& tensor : content.inner) {
    auto& [count, bytes] = inner[tensor.group];
    ++count;
    bytes += tensor.bytes();
  }
  const auto [devices, contexts] = ShapeOfReplica(trace_, content.group);
  if (contexts > 1) {
    notes_.push_back(absl::StrCat(
        "Gradients meet in the group ", NameOfGroup(content.group), ", in which each replica has ",
        contexts,
        " contexts. A prediction's all-reduces are among replicas, one member each: those "
        "of W workers send 2(W-1)/W of their bytes, where the job's send 2(",
        contexts, "W-1)/(", contexts, "W) of them, also with one worker."));
  }
  for (const auto& [group, sum] : inner) {
    notes_.push_back(absl::StrCat(
        "Found inside a worker: ", sum.first, " collective", sum.first == 1 ? "" : "s",
        " a step of ", sum.second, " bytes of the group ", NameOfGroup(group),
        ", which is not that of the gradients. A worker of a prediction is a replica with all of "
        "its devices",
        devices > 1 ? absl::StrCat(" (", devices, " by the groups' sizes)") : "",
        ", and these take as long as they were recorded."));
  }
}

}  // namespace

std::vector<TimeSpan>::const_iterator StepContent::last_copies() const {
  return std::partition_point(copies.begin(), copies.end(), [this](const TimeSpan& copy) {
    return copy.start_ns < gradients.back().start_ns;
  });
}

std::vector<SentTensor> StepContent::buckets() const {
  std::vector<SentTensor> buckets;
  std::copy_if(sent.begin(), sent.end(), std::back_inserter(buckets),
               [](const SentTensor& tensor) { return tensor.is_bucket; });
  return buckets;
}

std::string StepName(int64_t number) {
  return number < 0 ? "a ProfilerStep" : absl::StrCat("ProfilerStep#", number);
}

absl::StatusOr<std::vector<StepContent>> FindStepContents(const PyTorchTrace& trace,
                                                          const std::string& gradient_group,
                                                          std::vector<std::string>& notes) {
  return StepContentFinder(trace, gradient_group, notes).Find();
}

}  // namespace stepcast
