#include "core/importing/pytorch_content.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "core/base/quoted.h"
#include "core/importing/recording_options.h"

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

  auto operator<=>(const StepForm&) const = default;
};

StepForm FormOf(const StepContent& content) {
  StepForm form{.copies = content.copies.size(), .has_optimizer = content.optimizer.has_value()};
  for (const Gradient& gradient : content.gradients) form.gradients.push_back(gradient.elements);
  for (const SentTensor& tensor : content.sent)
    form.sent.emplace_back(tensor.kind, tensor.elements, tensor.group);
  std::sort(form.sent.begin(), form.sent.end());
  return form;
}

// The lower-case words of a group's description.
std::vector<std::string> WordsOf(const TraceGroup& group) {
  return absl::StrSplit(absl::AsciiStrToLower(group.description), absl::ByAnyChar("_- ."));
}

bool HasAny(const std::vector<std::string>& words, std::initializer_list<const char*> others) {
  return std::any_of(words.begin(), words.end(), [&others](const std::string& word) {
    return std::find(others.begin(), others.end(), word) != others.end();
  });
}

// The one dimension of a replica that a group is; empty: none, or several.
std::string DimensionOf(const TraceGroup& group) {
  const std::vector<std::string> words = WordsOf(group);
  std::vector<std::string> dimensions;
  if (HasAny(words, {"tensor", "tp", "etp"})) dimensions.emplace_back("tensor");
  if (HasAny(words, {"pipeline", "pp"})) dimensions.emplace_back("pipeline");
  if (HasAny(words, {"context", "cp", "sp", "sequence"})) dimensions.emplace_back("context");
  if (HasAny(words, {"expert", "ep"})) dimensions.emplace_back("expert");
  if (dimensions.empty() && group.description.empty()) return group.name;
  return dimensions.size() == 1 ? dimensions.front() : "";
}

// Gradients to which all-reduces add up.
struct BucketMatch {
  std::vector<size_t> sent;  // places of the all-reduces
};

// The all-reduces of a group (-1: of any), of whole numbers or not, that consecutive gradients add
// up to, in order, up to the last one. None where they do not, or where sizes are not known.
// Gradients before them are those of micro-steps that only accumulate, of which there are as many
// again, or were all that were left over. Cost: linear in the all-reduces, times at most
// kMostPlaces.
std::optional<BucketMatch> MatchOf(const StepContent& content, int32_t group,
                                   bool are_whole = false) {
  constexpr int64_t kMostElements = int64_t{1} << 36;
  constexpr size_t kMostPlaces = 64;
  struct Node {
    size_t gradient;
    int64_t after;  // the node that was before it, from the end; -1: none
    size_t sent;
  };
  std::vector<int64_t> until(1, 0);
  for (const Gradient& gradient : content.gradients) {
    if (gradient.elements < 1 || gradient.elements > kMostElements) return std::nullopt;
    until.push_back(until.back() + gradient.elements);
  }
  std::vector<Node> nodes = {{.gradient = content.gradients.size(), .after = -1, .sent = 0}};
  std::vector<size_t> reached = {0};
  size_t candidates = 0;
  for (size_t i = content.end_bucket; i-- > content.first_bucket;) {
    const SentTensor& tensor = content.sent[i];
    if (tensor.kind != Collective::kAllReduce || tensor.is_whole != are_whole ||
        tensor.elements < 1 || tensor.elements > kMostElements ||
        (group >= 0 && tensor.group != group))
      continue;
    ++candidates;
    const size_t before = reached.size();
    for (size_t k = 0; k < before && reached.size() < kMostPlaces; ++k) {
      const size_t gradient = nodes[reached[k]].gradient;
      const auto begin =
          std::lower_bound(until.begin(), until.end(), until[gradient] - tensor.elements);
      if (begin == until.end() || *begin != until[gradient] - tensor.elements) continue;
      const auto at = static_cast<size_t>(begin - until.begin());
      if (std::any_of(reached.begin(), reached.end(),
                      [&](size_t node) { return nodes[node].gradient == at; }))
        continue;
      nodes.push_back({.gradient = at, .after = static_cast<int64_t>(reached[k]), .sent = i});
      reached.push_back(nodes.size() - 1);
    }
  }
  const size_t best = *std::min_element(reached.begin(), reached.end(), [&](size_t a, size_t b) {
    return nodes[a].gradient < nodes[b].gradient;
  });
  BucketMatch match;
  for (auto node = static_cast<int64_t>(best); nodes[static_cast<size_t>(node)].after >= 0;
       node = nodes[static_cast<size_t>(node)].after)
    match.sent.push_back(nodes[static_cast<size_t>(node)].sent);
  const size_t skipped = nodes[best].gradient;
  const size_t taken = content.gradients.size() - skipped;
  if (taken == 0) return std::nullopt;
  const int64_t bytes = until.back() - until[skipped];
  const bool is_again =
      skipped % taken == 0 && until[skipped] == static_cast<int64_t>(skipped / taken) * bytes;
  if (!is_again && match.sent.size() != candidates) return std::nullopt;
  return match;
}

class StepContentFinder {
 public:
  StepContentFinder(const PyTorchTrace& trace, const std::string& gradient_group,
                    std::vector<std::string>& notes)
      : trace_(trace), gradient_group_(gradient_group), notes_(notes) {}

  absl::StatusOr<std::vector<StepContent>> Find() {
    absl::Status status = CheckReadable();
    if (status.ok()) status = ChooseSteps();
    if (status.ok()) status = KeepAlike();
    if (status.ok()) status = ChooseGroup();
    if (status.ok()) status = CheckKinds();
    if (!status.ok()) return status;
    PutInOrder();
    ChooseBuckets();
    NoteOthers();
    return std::move(contents_);
  }

 private:
  absl::Status CheckReadable() const;
  absl::Status ChooseSteps();
  StepContent ContentOf(const TraceHostEvent& step) const;
  static void FindBuckets(StepContent& content);
  absl::Status KeepAlike();
  absl::StatusOr<int32_t> AskedGroup() const;
  absl::StatusOr<int32_t> FoundGroup() const;
  bool IsInner(const SentTensor& tensor, int32_t chosen) const;
  absl::Status ChooseGroup();
  absl::Status CheckKinds() const;
  void PutInOrder();
  void ChooseBuckets();
  void NoteOthers();
  std::string NameOfGroup(int32_t group) const;

  const PyTorchTrace& trace_;
  const std::string& gradient_group_;  // as asked for; empty: to be found
  std::vector<std::string>& notes_;
  std::vector<StepContent> contents_;
  std::vector<std::string> left_out_;
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
  if (!missing.empty() && has_gradients && !has_shapes) missing.emplace_back("no shapes");
  if (!missing.empty()) {
    return ContentFault(absl::StrCat(
        "it has ", absl::StrJoin(missing, ", and "),
        ": record training steps, forward and backward, with "
        "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], "
        "schedule=schedule(wait=5, warmup=3, active=12), record_shapes=True), and call p.step() "
        "after each"));
  }
  if (trace_.device.empty() && trace_.names_devices) {
    return ContentFault(
        "it names a GPU and has nothing that ran on it: record with ProfilerActivity.CUDA among "
        "the activities");
  }
  return absl::OkStatus();
}

int64_t MiddleOf(std::vector<int64_t> values) {
  const auto half = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), half, values.end());
  return *half;
}

// A step that is longer is beyond the usual variation, and by so much that a step more or less is
// seen. Of few steps the usual one is not known.
int64_t LongestUsual(const std::vector<int64_t>& lengths, int64_t median) {
  constexpr size_t kFewSteps = 4;
  constexpr int64_t kFarDeviations = 12;
  constexpr int64_t kFarLengths = 2;
  if (lengths.size() < kStepsLeftOut + kFewSteps) return INT64_MAX;
  std::vector<int64_t> deviations;
  for (const int64_t length : lengths) deviations.push_back(std::abs(length - median));
  return std::max(
      kFarLengths * median,
      median + kFarDeviations * std::min(kLongest / kFarDeviations, MiddleOf(deviations)));
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
  const int64_t median = MiddleOf(lengths);
  const int64_t longest = LongestUsual(lengths, median);
  size_t long_steps = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t length = steps[i]->end_ns - steps[i]->start_ns;
    const bool is_short = length < median / 2;
    const bool is_long = length > longest;
    if (i >= kStepsLeftOut && !is_short && !is_long) {
      contents_.push_back(ContentOf(*steps[i]));
      continue;
    }
    std::string name = StepName(steps[i]->number);
    if (i >= kStepsLeftOut && is_short) name.append(" (shorter than half the median)");
    if (i >= kStepsLeftOut && is_long) {
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
        "Left out: ", long_steps, " of ", steps.size() - kStepsLeftOut,
        " steps that last far longer than the others, as one that evaluates, saves a checkpoint or "
        "waits for data does; where such steps belong to the job, --step-seconds gives the mean "
        "over all."));
  }
  return absl::OkStatus();
}

// Most steps have the same gradients and collectives; the others are left out.
absl::Status StepContentFinder::KeepAlike() {
  std::map<StepForm, size_t> forms;
  std::vector<StepForm> of_steps;
  for (const StepContent& content : contents_) ++forms[of_steps.emplace_back(FormOf(content))];
  const auto usual = std::max_element(
      forms.begin(), forms.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto first = std::find(of_steps.begin(), of_steps.end(), usual->first);
  const StepContent& like = contents_[static_cast<size_t>(first - of_steps.begin())];
  const auto difference = [&like](const StepContent& content) {
    if (content.gradients.size() != like.gradients.size()) {
      return absl::StrCat(content.gradients.size(), " gradients, others ", like.gradients.size());
    }
    for (size_t i = 0; i < like.gradients.size(); ++i) {
      if (content.gradients[i].elements != like.gradients[i].elements)
        return absl::StrCat("gradient ", i, " of ", content.gradients[i].elements,
                            " elements, others of ", like.gradients[i].elements);
    }
    if (content.sent.size() != like.sent.size())
      return absl::StrCat(content.sent.size(), " collectives, others ", like.sent.size());
    return std::string("other collectives, copies or no optimizer");
  };
  std::vector<StepContent> kept;
  for (size_t i = 0; i < contents_.size(); ++i) {
    if (of_steps[i] == usual->first) continue;
    std::string what =
        absl::StrCat(StepName(contents_[i].number), " (", difference(contents_[i]), ")");
    if (2 * usual->second <= contents_.size()) {
      return ContentFault(
          absl::StrCat(StepName(like.number), " and ", what,
                       " differ, and no more than half of its ", contents_.size(),
                       " steps are alike: record steps that are alike, one p.step() for each"));
    }
    left_out_.push_back(std::move(what));
  }
  for (size_t i = 0; i < contents_.size(); ++i) {
    if (of_steps[i] == usual->first) kept.push_back(std::move(contents_[i]));
  }
  contents_ = std::move(kept);
  notes_.push_back(absl::StrCat("Left out: ", absl::StrJoin(left_out_, ", "),
                                "; the first two steps warm up, and the buckets of "
                                "DistributedDataParallel are not yet those of later ones."));
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
        nodes.push_back({.start_ns = event.start_ns, .sequence = event.number});
        end_ns_ = event.end_ns;
        function_end_ns_ = INT64_MAX;
        break;
      case EventKind::kFunction:
        if (is_last_ && event.end_ns <= end_ns_ && event.number == nodes.back().sequence)
          function_end_ns_ = event.end_ns;
        break;
      case EventKind::kAddition: {
        const bool is_within = event.start_ns >= function_end_ns_ && event.end_ns <= end_ns_;
        const bool is_next = function_end_ns_ == INT64_MAX && event.start_ns >= end_ns_;
        if (is_last_ && (is_within || is_next)) nodes.back().added.push_back(event.number);
        break;
      }
      case EventKind::kSynchronization:
        break;
      default:
        is_last_ = false;
    }
  }

 private:
  bool is_last_ = false;  // the last event was a function's, or within it
  int64_t end_ns_ = INT64_MIN;
  int64_t function_end_ns_ = INT64_MAX;  // INT64_MAX: not recorded by itself
};

// Several optimizers one after the other are one; a gradient after them is of another part of the
// model.
void TakeOptimizer(const TraceHostEvent& event, StepContent& content) {
  if (content.gradients.empty()) return;
  if (!content.optimizer) content.optimizer = {event.start_ns, event.end_ns};
  content.optimizer->end_ns = std::max(content.optimizer->end_ns, event.end_ns);
}

StepContent StepContentFinder::ContentOf(const TraceHostEvent& step) const {
  StepContent content{.number = step.number, .window = {step.start_ns, step.end_ns}};
  CollectiveEvents collectives;
  const TraceHostEvent* scope = nullptr;
  AddedGradients additions;
  auto event =
      std::lower_bound(trace_.host.begin(), trace_.host.end(), step.start_ns,
                       [](const TraceHostEvent& e, int64_t start) { return e.start_ns < start; });
  for (; event != trace_.host.end() && event->start_ns < step.end_ns; ++event) {
    if (collectives.Take(*event)) continue;
    const bool is_gradient = event->kind == EventKind::kGradient;
    if (is_gradient) {
      const bool in_scope = scope != nullptr && event->end_ns <= scope->end_ns;
      content.gradients.push_back({.start_ns = event->start_ns,
                                   .end_ns = in_scope ? scope->end_ns : event->end_ns,
                                   .elements = event->number,
                                   .rows = event->group_size,
                                   .element_bytes = event->element_bytes});
      content.optimizer.reset();
    }
    if (event->kind == EventKind::kGradientScope) scope = &*event;
    additions.Take(*event, content.nodes);
    if (is_gradient || event->kind == EventKind::kGradientScope ||
        event->kind == EventKind::kBackward)
      content.backward_ns = std::min(content.backward_ns, event->start_ns);
    if (event->kind == EventKind::kCopyFromBucket)
      content.copies.push_back({event->start_ns, event->end_ns});
    if (event->kind == EventKind::kOptimizer) TakeOptimizer(*event, content);
    if (event->kind == EventKind::kSynchronization) {
      content.waited_ns = std::min(
          kLongest, content.waited_ns + std::min(kLongest, event->end_ns - event->start_ns));
    }
  }
  content.sent = collectives.Sent();
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
    if (MatchOf(content, group).has_value()) likely.push_back(group);
  }
  const bool is_told = !likely.empty();
  if (!is_told) likely.assign(groups.begin(), groups.end());
  if (likely.size() > 1 || !is_told) {
    std::erase_if(likely, [this](int32_t group) {
      return IsInsideReplica(trace_.groups[static_cast<size_t>(group)]);
    });
  }
  if (likely.size() > 1) {
    std::vector<std::string> names;
    for (const int32_t group : likely) names.push_back(NameOfGroup(group));
    return ContentFault(absl::StrCat(
        "its all-reduces are of the groups ", absl::StrJoin(names, ", "),
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
          (group.description.empty() && MatchOf(contents_.front(), chosen).has_value()));
}

absl::Status StepContentFinder::CheckKinds() const {
  for (const StepContent& content : contents_) {
    const auto other =
        std::find_if(content.sent.begin(), content.sent.end(), [](const SentTensor& tensor) {
          return tensor.kind != Collective::kAllReduce && tensor.kind != Collective::kBroadcast;
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

// Maps of unused parameters after the last bucket, beside which they run, and the last gradient;
// and all steps as the first, where threads ran what was launched one after the other in another
// order.
void StepContentFinder::PutInOrder() {
  std::vector<SentTensor> usual;
  for (StepContent& content : contents_) {
    const auto begin = content.sent.begin() + static_cast<ptrdiff_t>(content.first_bucket);
    const auto end = content.sent.begin() + static_cast<ptrdiff_t>(content.end_bucket);
    std::vector<int64_t> launches;
    const auto others = std::stable_partition(begin, end, [](const SentTensor& tensor) {
      return tensor.kind != Collective::kAllReduce || !tensor.is_whole;
    });
    for (auto each = begin; each != others; ++each) launches.push_back(each->launch_ns);
    for (auto each = others; each != end && !launches.empty(); ++each) {
      each->launch_ns =
          std::max({each->launch_ns, launches.back() + 1, content.gradients.back().end_ns});
    }
    if (usual.empty()) usual = content.sent;
    std::vector<SentTensor> ordered;
    for (const SentTensor& like : usual) {
      const auto same =
          std::find_if(content.sent.begin(), content.sent.end(), [&like](const SentTensor& each) {
            return each.kind == like.kind && each.elements == like.elements &&
                   each.group == like.group && each.is_whole == like.is_whole;
          });
      if (same == content.sent.end()) break;
      ordered.push_back(*same);
      content.sent.erase(same);
    }
    ordered.insert(ordered.end(), content.sent.begin(), content.sent.end());
    content.sent = std::move(ordered);
    for (size_t i = 0; i < launches.size(); ++i)
      content.sent[content.first_bucket + i].launch_ns = launches[i];
  }
}

void StepContentFinder::ChooseBuckets() {
  const StepContent& content = contents_.front();
  std::vector<bool> is_bucket(content.sent.size(), false);
  std::optional<BucketMatch> match = MatchOf(content, -1);
  const bool are_all_whole =
      std::all_of(content.sent.begin() + static_cast<ptrdiff_t>(content.first_bucket),
                  content.sent.begin() + static_cast<ptrdiff_t>(content.end_bucket),
                  [](const SentTensor& tensor) { return tensor.is_whole; });
  // A hook sends them so that makes whole numbers of gradients.
  if (are_all_whole) match = MatchOf(content, -1, true);
  if (match) {
    for (const size_t i : match->sent) is_bucket[i] = true;
  } else {
    const auto has_size = [](const SentTensor& tensor) { return tensor.elements >= 0; };
    const auto first = content.sent.begin() + static_cast<ptrdiff_t>(content.first_bucket);
    const auto end = content.sent.begin() + static_cast<ptrdiff_t>(content.end_bucket);
    const bool are_sizes_known = std::any_of(first, end, has_size);
    const bool has_scalar =
        std::any_of(content.gradients.begin(), content.gradients.end(),
                    [](const Gradient& gradient) { return gradient.elements == 1; });
    int64_t last_ns = INT64_MIN;  // the last bucket's launch
    for (size_t i = content.first_bucket; i < content.end_bucket; ++i) {
      const SentTensor& tensor = content.sent[i];
      const bool is_scalar = tensor.elements == 1 && !has_scalar;
      if (tensor.kind != Collective::kAllReduce || tensor.is_whole || is_scalar ||
          tensor.elements == 0 || has_size(tensor) != are_sizes_known)
        continue;
      // Without sizes, one that is launched after no gradient has none.
      const bool has_gradient = std::any_of(
          content.gradients.begin(), content.gradients.end(), [&](const Gradient& gradient) {
            return gradient.start_ns > last_ns && gradient.start_ns <= tensor.launch_ns;
          });
      if (!are_sizes_known && !has_gradient) continue;
      last_ns = tensor.launch_ns;
      is_bucket[i] = true;
    }
  }
  for (StepContent& each : contents_) {
    for (size_t i = 0; i < each.sent.size(); ++i) each.sent[i].is_bucket = is_bucket[i];
  }
}

void StepContentFinder::NoteOthers() {
  const StepContent& content = contents_.front();
  std::vector<std::string> others;
  for (size_t i = content.first_bucket; i < content.end_bucket; ++i) {
    const SentTensor& tensor = content.sent[i];
    if (tensor.is_bucket || tensor.kind != Collective::kAllReduce || tensor.elements == 0) continue;
    others.push_back(absl::StrCat(tensor.bytes(), " bytes",
                                  tensor.is_whole
                                      ? " (whole numbers, as a map of unused parameters)"
                                  : tensor.elements < 0 ? " (its size was not recorded)"
                                                        : ""));
  }
  if (!others.empty()) {
    notes_.push_back(absl::StrCat(
        "Found beside the buckets, and no gradients: ", others.size(), " all-reduce",
        others.size() == 1 ? "" : "s", " a step of ",
        absl::StrJoin(others.begin(),
                      others.begin() + std::min<ptrdiff_t>(8, others.end() - others.begin()), ", "),
        others.size() > 8 ? ", ..." : "", "; they stay collectives of their own."));
  }
  std::map<int32_t, std::pair<size_t, int64_t>> inner;
  for (const SentTensor& tensor : content.inner) {
    auto& [count, bytes] = inner[tensor.group];
    ++count;
    bytes += tensor.bytes();
  }
  for (const auto& [group, sum] : inner) {
    const int64_t devices = DevicesOfReplica(trace_, content.group);
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

std::vector<SentTensor> StepContent::buckets() const {
  std::vector<SentTensor> buckets;
  std::copy_if(sent.begin(), sent.end(), std::back_inserter(buckets),
               [](const SentTensor& tensor) { return tensor.is_bucket; });
  return buckets;
}

bool IsInsideReplica(const TraceGroup& group) {
  const std::string text = absl::AsciiStrToLower(group.description);
  if (absl::StrContains(text, "data_parallel")) return false;
  for (const char* const part : {"tensor", "pipeline", "context", "expert", "embedding"}) {
    if (absl::StrContains(text, part)) return true;
  }
  const std::vector<std::string> words = WordsOf(group);
  return !HasAny(words, {"dp", "ddp", "data", "replicate", "fsdp", "shard"}) &&
         HasAny(words, {"tp", "pp", "cp", "ep", "sp", "etp", "model", "mp"});
}

int64_t DevicesOfReplica(const PyTorchTrace& trace, int32_t gradients) {
  std::map<std::string, int64_t> dimensions;
  const TraceGroup none;
  const TraceGroup& reduced = gradients >= 0 ? trace.groups[static_cast<size_t>(gradients)] : none;
  int64_t job = trace.world_size;
  for (const TraceGroup& group : trace.groups) {
    if (group.description == "default_pg") job = std::max(job, group.size);
    const bool is_inside =
        IsInsideReplica(group) || (group.description.empty() && gradients >= 0 && group != reduced);
    if (!is_inside || group.size <= 1) continue;
    if (const std::string dimension = DimensionOf(group); !dimension.empty())
      dimensions[dimension] = std::max(dimensions[dimension], group.size);
  }
  if (dimensions.empty()) return 1;
  // Gradients that contexts reduce, too, are those of fewer replicas.
  const bool has_contexts = HasAny(WordsOf(reduced), {"cp", "context"});
  const int64_t contexts =
      has_contexts && dimensions.contains("context") ? dimensions["context"] : 1;
  int64_t devices = 1;
  for (const auto& [name, size] : dimensions)
    devices = std::min<int64_t>(devices * std::min<int64_t>(size, kMaxDevicesPerWorker),
                                kMaxDevicesPerWorker);
  if (reduced.size > 0 && job > reduced.size && job * contexts % reduced.size == 0)
    devices = std::min<int64_t>(job * contexts / reduced.size, kMaxDevicesPerWorker);
  return devices;
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
