#include "core/importing/pytorch/pytorch_steps.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/importing/common/recording_import.h"
#include "core/importing/common/time_spans.h"
#include "core/importing/pytorch/gradient_buckets.h"
#include "core/importing/pytorch/pytorch_content.h"
#include "core/importing/pytorch/pytorch_reader.h"
#include "core/model/multi_rank_recording.h"

namespace stepcast {

namespace {

constexpr int16_t kBytesOfFloat = 4;
// Elements of one tensor, so that bytes of all add up.
constexpr int64_t kMaxElements = int64_t{1} << 36;

// Gradients that are sent as one, or one alone.
struct SentUnit {
  size_t last_gradient = 0;
  size_t gradients = 1;
  int64_t bytes = 0;
};

// The end of a piece, on the host's clock.
struct PieceCut {
  int64_t host_ns = 0;
  TracedPiece piece;
  std::vector<int32_t> next_needs;  // collectives that the piece after it needs
};

struct StepCuts {
  std::vector<PieceCut> cuts;
  std::vector<TracedCollective> collectives;

  PieceCut& Add(int64_t host_ns, std::string name, Pass pass = Pass::kOther) {
    return cuts.emplace_back(
        PieceCut{.host_ns = host_ns, .piece = {.name = std::move(name), .pass = pass}});
  }
};

void SortByTime(std::vector<PieceCut>& cuts) {
  std::stable_sort(cuts.begin(), cuts.end(),
                   [](const PieceCut& a, const PieceCut& b) { return a.host_ns < b.host_ns; });
}

// A link of the forward pass that the backward pass comes to, from the ones after it.
struct LinkTurn {
  int64_t host_ns = 0;
  int32_t link = 0;
  int64_t last_node_ns = 0;  // when the last function of the links before began
};

absl::Status TraceFault(std::string description) {
  return ImportFault(kAtRecording, std::move(description));
}

class TracedStepsFinder {
 public:
  TracedStepsFinder(const PyTorchTrace& trace, const TracedForm& form)
      : trace_(trace), form_(form), loading_(DataLoadingOf(trace)) {
    found_.has_gpu = !trace.device.empty();
  }

  absl::StatusOr<TracedSteps> Find() {
    absl::StatusOr<std::vector<StepContent>> contents =
        FindStepContents(trace_, form_.gradient_group, found_.notes);
    if (!contents.ok()) return contents.status();
    contents_ = *std::move(contents);
    FindGroup();
    FindSaved();
    absl::Status status = CheckKernelGroups();
    if (status.ok()) status = ChooseUnits();
    if (status.ok()) status = AddSteps();
    if (!status.ok()) return status;
    DropEmptyPieces();
    if (!loading_.empty()) SplitOffDataLoading(found_);
    return std::move(found_);
  }

 private:
  void FindGroup();
  void FindSaved();
  void ChooseLinks(std::vector<std::vector<ForwardLink>> by_step);
  std::vector<LinkTurn> TurnsOf(const StepContent& content,
                                const std::vector<ForwardLink>& links) const;
  const std::vector<ForwardLink>& LinksOf(const StepContent& content) const {
    return links_[static_cast<size_t>(&content - contents_.data())];
  }
  void CutLinks(const StepContent& content, StepCuts& step) const;
  bool TakeCompression(const std::vector<Gradient>& gradients,
                       const std::vector<SentTensor>& buckets, bool are_known);
  const char* NoteSeveralPasses();
  absl::Status ChooseUnits();
  void SendGradients(const std::vector<Gradient>& gradients, const std::vector<SentTensor>& buckets,
                     const BucketMembers& members);
  void SendAsRecorded(const std::vector<SentTensor>& buckets, const char* why);
  std::vector<size_t> GradientsByLaunch() const;
  int64_t ReadyOf(const StepContent& content, size_t gradient) const;
  void CutOthers(const StepContent& content, StepCuts& step) const;
  std::vector<int32_t> CutGradients(const StepContent& content, StepCuts& step) const;
  void CutEnd(const StepContent& content, std::vector<int32_t> unmet, StepCuts& step) const;
  void CutInner(const StepContent& content, std::vector<PieceCut>& cuts) const;
  int64_t EndOfInner(const SentTensor& tensor) const;
  StepCuts CutsOf(const StepContent& content) const;
  absl::Status AddStep(const StepContent& content);
  absl::Status AddSteps();
  absl::Status TimeOnGpu(const StepContent& content, const std::vector<PieceCut>& cuts,
                         TracedStep& step);
  void TimeOnHost(const StepContent& content, const std::vector<PieceCut>& cuts, TracedStep& step);
  void KeepShortest(const std::vector<TimeSpan>& runs);
  bool IsSent(const TraceDeviceWork& work) const;
  absl::Status CheckKernelGroups() const;
  std::vector<TimeSpan> SentBetween(int64_t begin_ns, int64_t end_ns);
  void DropEmptyPieces();

  bool IsAlone() const { return found_.group_size == 1; }

  const PyTorchTrace& trace_;
  const TracedForm& form_;
  const std::vector<TimeSpan> loading_;  // of data, on the host
  bool shows_inner_ = false;
  std::vector<StepContent> contents_;
  std::vector<std::vector<ForwardLink>> links_;  // by step; empty: not known
  std::vector<SentUnit> units_;
  std::vector<TimeSpan> sent_;       // of all steps; empty: not found yet, or none
  size_t counted_ = 0;               // of the GPU's work
  int64_t computed_ns_ = INT64_MIN;  // the end of what was counted
  TracedSteps found_;
};

void TracedStepsFinder::FindGroup() {
  const bool has_inner = !contents_.front().inner.empty();
  found_.group_size = has_inner ? 0 : trace_.world_size;
  for (const SentTensor& tensor : contents_.front().sent)
    found_.group_size = std::max<int64_t>(found_.group_size, tensor.group_size);
  found_.devices_per_worker = ShapeOfReplica(trace_, contents_.front().group).devices;
}

// Nothing is known where a recorded tensor is too large for any device.
void TracedStepsFinder::FindSaved() {
  std::vector<std::vector<ForwardLink>> links;
  for (const StepContent& content : contents_) {
    absl::flat_hash_set<int64_t> parameters;
    for (const Gradient& gradient : content.gradients) parameters.insert(gradient.elements);
    SavedTensors saved = FindSavedTensors(trace_.tensors, content.window.start_ns,
                                          content.backward_ns, content.nodes, parameters);
    links.push_back(saved.links);
    if (links.size() == 1 || saved.bytes > found_.saved.bytes) found_.saved = std::move(saved);
  }
  if (found_.saved.bytes > kMaxKeptBytes) found_.saved = {};
  if (form_.cuts_forward) {
    ChooseLinks(std::move(links));
  } else {
    found_.saved.links.clear();
  }
  if (trace_.tensors.are_too_many) {
    found_.notes.emplace_back(
        "Left out: the shapes of operations, which are more than four times max_operations, so "
        "what the forward pass keeps is not known.");
  }
}

// None where steps differ, or where a step has several forward passes.
void TracedStepsFinder::ChooseLinks(std::vector<std::vector<ForwardLink>> by_step) {
  constexpr char kUnknown[] = "Pipelines cannot be asked of this profile: ";
  std::vector<ForwardLink>& links = found_.saved.links;
  const auto is_like = [&links](const std::vector<ForwardLink>& other) {
    return std::equal(links.begin(), links.end(), other.begin(), other.end(),
                      [](const ForwardLink& a, const ForwardLink& b) { return a.name == b.name; });
  };
  const char* why = nullptr;
  if (links.empty()) {
    why =
        "no operation of its forward pass has a sequence number and the shapes of its inputs; "
        "record "
        "with record_shapes=True";
  } else if (!std::all_of(by_step.begin(), by_step.end(), is_like)) {
    why = "the operations of its steps' forward passes differ; record steps that are alike";
  } else if (links.size() < 2) {
    why = "its forward pass has no place where one tensor alone goes on";
  }
  for (size_t i = 0; why == nullptr && i < by_step.size(); ++i) {
    if (TurnsOf(contents_[i], by_step[i]).empty())
      why = "its steps have several forward passes; record one micro-batch a step";
  }
  if (why != nullptr) {
    links.clear();
    found_.notes.push_back(absl::StrCat(kUnknown, why, "."));
    return;
  }
  for (const std::vector<ForwardLink>& other : by_step) {
    for (size_t i = 0; i < links.size(); ++i)
      links[i].output_bytes = std::max(links[i].output_bytes, other[i].output_bytes);
  }
  links_ = std::move(by_step);
}

// By time; empty where the backward pass undoes something else, as another forward pass.
std::vector<LinkTurn> TracedStepsFinder::TurnsOf(const StepContent& content,
                                                 const std::vector<ForwardLink>& links) const {
  std::vector<LinkTurn> turns;
  auto link = static_cast<int32_t>(links.size()) - 1;
  int64_t last_ns = INT64_MIN;
  for (const BackwardNode& node : content.nodes) {
    const auto after = std::partition_point(
        links.begin(), links.end(),
        [&node](const ForwardLink& each) { return each.first_sequence <= node.sequence; });
    const auto undone = static_cast<int32_t>(std::max<ptrdiff_t>(after - links.begin(), 1) - 1);
    // Another forward pass, which came after the first one's.
    if (undone > link && undone + 1 == static_cast<int32_t>(links.size())) return {};
    if (undone < link) {
      turns.push_back({.host_ns = node.start_ns, .link = undone, .last_node_ns = last_ns});
      link = undone;
    }
    last_ns = node.start_ns;
  }
  return turns;
}

// Pieces of the forward pass by link, each of which begins with one that has its name; those of the
// backward pass end where the next link's begins, if no gradient has ended one since the functions
// of the link.
void TracedStepsFinder::CutLinks(const StepContent& content, StepCuts& step) const {
  const std::vector<ForwardLink>& links = LinksOf(content);
  const auto name = [&links](const char* part, int32_t link) {
    return absl::StrCat(part, link, "/", links[static_cast<size_t>(link)].name);
  };
  const auto last = static_cast<int32_t>(links.size()) - 1;
  step.Add(links.front().start_ns, "until_forward");
  for (size_t i = 1; i < links.size(); ++i) step.Add(links[i].start_ns, "forward", Pass::kForward);
  SortByTime(step.cuts);
  const std::vector<LinkTurn> turns = TurnsOf(content, links);
  auto turn = turns.begin();
  std::vector<PieceCut> added;
  int64_t before_ns = INT64_MIN;
  int32_t link = -1;  // that has begun
  int32_t undone = last;
  for (PieceCut& cut : step.cuts) {
    TracedPiece& piece = cut.piece;
    if (cut.host_ns > links.front().start_ns && cut.host_ns <= content.backward_ns &&
        piece.group.empty()) {
      const auto after = std::partition_point(
          links.begin(), links.end(),
          [&cut](const ForwardLink& each) { return each.start_ns < cut.host_ns; });
      const auto at = static_cast<int32_t>(after - links.begin()) - 1;
      const bool ends_link = piece.pass == Pass::kForward;
      if (at > link) {
        piece.name = name("forward/", at);
        piece.link = link = at;
        piece.pass = Pass::kForward;
      } else if (ends_link) {
        piece.name = name("rest_of_forward/", at);
        piece.pass = Pass::kOther;
      }
    }
    if (piece.pass != Pass::kBackward) continue;
    for (; turn != turns.end() && turn->host_ns < cut.host_ns; ++turn) {
      if (before_ns <= turn->last_node_ns) {
        added.push_back(
            {.host_ns = turn->host_ns,
             .piece = {
                 .name = name("backward_of/", undone), .pass = Pass::kBackward, .link = undone}});
      }
      before_ns = INT64_MIN;
      undone = turn->link;
    }
    piece.link = undone;
    before_ns = cut.host_ns;
  }
  step.cuts.insert(step.cuts.end(), added.begin(), added.end());
}

// By bucket, the gradients up to its launch that are in no bucket before.
std::vector<size_t> TracedStepsFinder::GradientsByLaunch() const {
  const StepContent& content = contents_.front();
  std::vector<size_t> counts;
  size_t next = 0;
  for (const SentTensor& bucket : content.buckets()) {
    const size_t first = next;
    while (next < content.gradients.size() &&
           content.gradients[next].start_ns <= bucket.launch_ns) {
      ++next;
    }
    counts.push_back(next - first);
  }
  return next == content.gradients.size() ? counts : std::vector<size_t>();
}

// Elements of the tensors that have a size.
template <typename Tensor>
std::vector<int64_t> KnownElements(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> elements;
  for (const Tensor& tensor : tensors) {
    if (tensor.elements >= 1 && tensor.elements <= kMaxElements)
      elements.push_back(tensor.elements);
  }
  return elements;
}

int64_t SentBytesOf(const Gradient& gradient, int16_t bucket_element_bytes) {
  const int16_t bytes = bucket_element_bytes > 0 ? bucket_element_bytes : gradient.element_bytes;
  return gradient.elements * (bytes > 0 ? bytes : kBytesOfFloat);
}

void TracedStepsFinder::SendGradients(const std::vector<Gradient>& gradients,
                                      const std::vector<SentTensor>& buckets,
                                      const BucketMembers& members) {
  size_t next = members.skipped;
  for (size_t b = 0; b < buckets.size(); ++b) {
    int64_t bytes = 0;
    for (size_t i = 0; i < members.counts[b]; ++i, ++next) {
      units_.push_back(
          {.last_gradient = next, .bytes = SentBytesOf(gradients[next], buckets[b].element_bytes)});
      bytes += units_.back().bytes;
    }
    found_.bucket_bytes.push_back(bytes);
  }
  found_.bucket_gradients = members.counts;
  if (members.skipped > 0) {
    found_.notes.push_back(absl::StrCat("Left out: ", members.skipped,
                                        " gradients that are only accumulated, and in no "
                                        "bucket."));
  }
}

void TracedStepsFinder::SendAsRecorded(const std::vector<SentTensor>& buckets, const char* why) {
  const std::vector<size_t> counts = GradientsByLaunch();
  size_t next = 0;
  for (size_t b = 0; b < buckets.size(); ++b) {
    next += counts.empty() ? 0 : counts[b];
    units_.push_back({.last_gradient = std::max<size_t>(next, 1) - 1,
                      .gradients = counts.empty() ? 0 : counts[b],
                      .bytes = buckets[b].bytes()});
    found_.bucket_bytes.push_back(buckets[b].bytes());
  }
  found_.bucket_gradients = counts;
  found_.notes.push_back(absl::StrCat("Assumed: each of the ", buckets.size(),
                                      " recorded buckets is sent as it is, since ", why,
                                      "; other buckets cannot be asked for."));
}

// False where not all gradients are compressed alike.
bool TracedStepsFinder::TakeCompression(const std::vector<Gradient>& gradients,
                                        const std::vector<SentTensor>& buckets, bool are_known) {
  const std::optional<double> share = SentShare(gradients, buckets);
  if (!share) return false;
  if (!are_known) return true;
  found_.sent_share = *share;
  found_.notes.push_back(absl::StrFormat(
      "Found a hook that compresses gradients: %.4g bytes are sent of each of theirs. Limits of "
      "buckets are of the gradients, times of what is sent.",
      *share));
  return true;
}

// The reason why buckets are sent as they are.
const char* TracedStepsFinder::NoteSeveralPasses() {
  found_.notes.push_back(absl::StrCat(
      "Found ", contents_.front().later_passes_ns.size() + 1,
      " backward passes a step that send gradients: what follows one waits for what it sent, and "
      "the gradients of each count as those of parameters of its own."));
  return "each of several backward passes of a step, as of two models or two losses, sends its own";
}

absl::Status TracedStepsFinder::ChooseUnits() {
  const StepContent& content = contents_.front();
  const std::vector<Gradient>& gradients = content.gradients;
  const std::vector<int64_t> elements = KnownElements(gradients);
  const bool has_type = std::all_of(gradients.begin(), gradients.end(),
                                    [](const Gradient& each) { return each.element_bytes > 0; });
  const bool has_shapes = elements.size() == gradients.size();
  const std::vector<SentTensor> buckets = content.buckets();
  const std::vector<int64_t> bucket_elements = KnownElements(buckets);
  const bool has_bucket_sizes = bucket_elements.size() == buckets.size();
  if (!has_shapes && (buckets.empty() || !has_bucket_sizes)) {
    return TraceFault(
        "its gradients have no sizes (Input Dims of torch::autograd::AccumulateGrad): record with "
        "record_shapes=True");
  }
  std::optional<BucketMembers> members;
  if (has_shapes && !buckets.empty()) {
    if (has_bucket_sizes) {
      members = FindBucketMembers(elements, bucket_elements);
    } else if (std::vector<size_t> counts = GradientsByLaunch(); !counts.empty()) {
      members = BucketMembers{.counts = std::move(counts)};
    }
  }
  if (!buckets.empty() && !members && !has_bucket_sizes)
    return TraceFault("its all-reduces have no sizes: record with record_shapes=True");
  if (has_shapes && !members) {
    if (absl::Status status = CheckHook(content); !status.ok()) return status;
  }
  const char* why =
      has_shapes ? "they do not add up from gradients in the order in which these became ready"
                 : "the gradients' sizes were not recorded (record_shapes=True)";
  if (!content.later_passes_ns.empty()) {
    members.reset();
    why = NoteSeveralPasses();
  }
  if (has_type && has_bucket_sizes && AreCompressed(gradients, buckets) &&
      !TakeCompression(gradients, buckets, members.has_value())) {
    members.reset();
    why = "they are sent in other types than the gradients', and not all in one that is smaller";
  }
  if (buckets.empty()) {
    for (size_t i = 0; i < gradients.size(); ++i)
      units_.push_back({.last_gradient = i, .bytes = SentBytesOf(gradients[i], 0)});
  } else if (members) {
    SendGradients(gradients, buckets, *members);
  } else {
    SendAsRecorded(buckets, why);
  }
  if (has_shapes && (buckets.empty() || members)) {
    for (const SentUnit& unit : units_) found_.gradient_bytes.push_back(unit.bytes);
    if (!has_type && buckets.empty())
      found_.notes.emplace_back("Assumed: gradients have 4 bytes an element.");
  }
  return absl::OkStatus();
}

// On the host's clock: what was launched before it must have ended.
int64_t TracedStepsFinder::ReadyOf(const StepContent& content, size_t gradient) const {
  const Gradient& ready = content.gradients[gradient];
  if (content.first_bucket == content.end_bucket)
    return found_.has_gpu ? ready.start_ns : ready.end_ns;
  const bool is_last = gradient + 1 == content.gradients.size();
  const auto end = content.sent.begin() + static_cast<ptrdiff_t>(content.end_bucket);
  auto launch = std::lower_bound(
      content.sent.begin() + static_cast<ptrdiff_t>(content.first_bucket), end, ready.start_ns,
      [](const SentTensor& s, int64_t start) { return s.launch_ns < start; });
  while (launch != end && !launch->is_bucket) ++launch;
  const bool is_its_own =
      launch != end && (is_last || launch->launch_ns < content.gradients[gradient + 1].start_ns);
  return is_its_own ? launch->launch_ns : ready.end_ns;
}

// All-reduces of other things than gradients, and broadcasts: what follows waits for each.
void TracedStepsFinder::CutOthers(const StepContent& content, StepCuts& step) const {
  std::map<Collective, size_t> counts;
  for (const SentTensor& tensor : content.sent) {
    if (tensor.is_bucket || tensor.elements == 0) continue;
    std::string name = NameOfCollective(tensor.kind, counts[tensor.kind]++);
    const bool is_within_backward = tensor.launch_ns >= content.backward_ns &&
                                    tensor.launch_ns < content.gradients.back().start_ns;
    PieceCut& before = step.Add(tensor.launch_ns, absl::StrCat("until_", name),
                                is_within_backward ? Pass::kBackward : Pass::kOther);
    before.piece.launches.push_back(static_cast<int32_t>(step.collectives.size()));
    before.next_needs = before.piece.launches;
    step.collectives.push_back(
        {.name = std::move(name), .kind = tensor.kind, .size_bytes = tensor.bytes()});
  }
}

// Their collectives.
std::vector<int32_t> TracedStepsFinder::CutGradients(const StepContent& content,
                                                     StepCuts& step) const {
  const std::vector<SentTensor> buckets = content.buckets();
  const bool by_bucket = !found_.bucket_bytes.empty() && found_.gradient_bytes.empty();
  step.Add(std::min(content.backward_ns, ReadyOf(content, units_.front().last_gradient)), "forward",
           Pass::kForward);
  std::vector<int32_t> units;
  size_t pass = 0;
  size_t first_of_pass = 0;
  for (size_t u = 0; u < units_.size(); ++u) {
    const int64_t ready =
        by_bucket ? buckets[u].launch_ns : ReadyOf(content, units_[u].last_gradient);
    // All that follows a backward pass waits for what it has sent.
    const std::vector<int64_t>& later = content.later_passes_ns;
    for (; u > 0 && pass < later.size() && later[pass] <= ready; first_of_pass = u) {
      step.cuts.back().next_needs.assign(units.begin() + static_cast<ptrdiff_t>(first_of_pass),
                                         units.end());
      step.Add(later[pass++], absl::StrCat("until_backward/", u));
    }
    units.push_back(static_cast<int32_t>(step.collectives.size()));
    step.Add(ready, absl::StrCat("backward/", u), Pass::kBackward)
        .piece.launches.push_back(units.back());
    step.collectives.push_back({.name = absl::StrCat(by_bucket ? "bucket/" : "gradient/", u),
                                .size_bytes = units_[u].bytes,
                                .is_gradient = true});
  }
  return units;
}

// Copies out of buckets, optimizer and rest; `unmet` are the collectives that they need.
void TracedStepsFinder::CutEnd(const StepContent& content, std::vector<int32_t> unmet,
                               StepCuts& step) const {
  const auto copies = content.last_copies();
  if (copies != content.copies.end()) {
    step.Add(copies->start_ns, "backward/end", Pass::kBackward);
    const size_t sent_gradients =
        std::accumulate(units_.begin(), units_.end(), size_t{0},
                        [](size_t sum, const SentUnit& unit) { return sum + unit.gradients; });
    if (static_cast<ptrdiff_t>(sent_gradients) == content.copies.end() - copies) {
      size_t next = 0;
      for (size_t u = 0; u < units_.size(); ++u) {
        if (units_[u].gradients == 0) continue;
        next += units_[u].gradients;
        step.Add(copies[static_cast<ptrdiff_t>(next) - 1].end_ns, absl::StrCat("copy/", u),
                 Pass::kOptimizer)
            .piece.needs = {unmet[u]};
      }
      unmet.clear();
    } else {
      step.Add(content.copies.back().end_ns, "copy", Pass::kOptimizer).piece.needs =
          std::exchange(unmet, {});
    }
  }
  if (content.optimizer) {
    step.Add(content.optimizer->start_ns, "until_optimizer", Pass::kOptimizer);
    step.Add(content.optimizer->end_ns, "optimizer", Pass::kOptimizer).piece.needs =
        std::exchange(unmet, {});
  }
  step.Add(content.window.end_ns, "rest").piece.needs = unmet;
}

// On the host's clock: the end of its run, or on a GPU the launch of its kernel; -1: not recorded.
int64_t TracedStepsFinder::EndOfInner(const SentTensor& tensor) const {
  constexpr ptrdiff_t kMostLaunches = 64;  // between a collective and its kernel
  if (!found_.has_gpu) return tensor.run.end_ns > tensor.launch_ns ? tensor.run.end_ns : -1;
  const auto first = std::partition_point(
      trace_.device.begin(), trace_.device.end(),
      [&](const TraceDeviceWork& work) { return work.launch_ns < tensor.launch_ns; });
  const auto last = first + std::min(kMostLaunches, trace_.device.end() - first);
  const auto kernel = std::find_if(first, last, [&](const TraceDeviceWork& work) {
    return work.is_collective && work.group == tensor.group;
  });
  return kernel == last ? -1 : kernel->launch_ns + 1;
}

// Collectives inside a replica: what runs after one waits for it. One that lasts beyond the next
// cut is shown until there.
void TracedStepsFinder::CutInner(const StepContent& content, std::vector<PieceCut>& cuts) const {
  SortByTime(cuts);
  std::vector<PieceCut> added;
  for (size_t i = 0; i < content.inner.size(); ++i) {
    const SentTensor& tensor = content.inner[i];
    if (tensor.kind == Collective::kUnspecified || tensor.elements <= 0) continue;
    const auto next = std::partition_point(cuts.begin(), cuts.end(), [&](const PieceCut& cut) {
      return cut.host_ns <= tensor.launch_ns;
    });
    int64_t end_ns = EndOfInner(tensor);
    if (end_ns < 0) continue;
    if (next != cuts.end()) end_ns = std::min(end_ns, next->host_ns);
    if (i + 1 < content.inner.size()) end_ns = std::min(end_ns, content.inner[i + 1].launch_ns);
    const TraceGroup& group = trace_.groups[static_cast<size_t>(tensor.group)];
    const bool is_described = !group.description.empty() && group.description != kDataParallelGroup;
    const std::string name = is_described ? group.description : absl::StrCat("group ", group.name);
    const bool is_within_backward = tensor.launch_ns >= content.backward_ns &&
                                    tensor.launch_ns < content.gradients.back().start_ns;
    added.push_back({.host_ns = tensor.launch_ns,
                     .piece = {.name = absl::StrCat("until/", name, "/", i),
                               .pass = is_within_backward ? Pass::kBackward : Pass::kOther}});
    added.push_back({.host_ns = end_ns,
                     .piece = {.name = absl::StrCat(name, "/", i),
                               .collective = tensor.kind,
                               .size_bytes = tensor.bytes(),
                               .group = name}});
  }
  cuts.insert(cuts.end(), added.begin(), added.end());
}

StepCuts TracedStepsFinder::CutsOf(const StepContent& content) const {
  StepCuts step;
  CutOthers(content, step);
  CutEnd(content, CutGradients(content, step), step);
  if (shows_inner_) CutInner(content, step.cuts);
  if (!links_.empty()) CutLinks(content, step);
  SortByTime(step.cuts);
  // Collectives are numbered as they are launched.
  std::vector<int32_t> place(step.collectives.size(), 0);
  std::vector<TracedCollective> ordered;
  for (PieceCut& each : step.cuts) {
    for (int32_t& launched : each.piece.launches) {
      place[static_cast<size_t>(launched)] = static_cast<int32_t>(ordered.size());
      ordered.push_back(step.collectives[static_cast<size_t>(launched)]);
      launched = static_cast<int32_t>(ordered.size()) - 1;
    }
  }
  for (size_t i = 0; i < step.cuts.size(); ++i) {
    std::vector<int32_t>& needs = step.cuts[i].piece.needs;
    for (int32_t& needed : needs) needed = place[static_cast<size_t>(needed)];
    if (i == 0) continue;
    for (const int32_t needed : step.cuts[i - 1].next_needs)
      needs.push_back(place[static_cast<size_t>(needed)]);
  }
  step.collectives = std::move(ordered);
  return step;
}

// Collectives inside a replica that come in another order in each step are left in the
// computation.
absl::Status TracedStepsFinder::AddSteps() {
  absl::Status status;
  for (const bool shows_inner : {true, false}) {
    shows_inner_ = shows_inner && !contents_.front().inner.empty();
    status = absl::OkStatus();
    for (size_t i = 0; i < contents_.size() && status.ok(); ++i) status = AddStep(contents_[i]);
    if (status.ok() || !shows_inner_) return status;
    found_.steps.clear();
    counted_ = 0;
    computed_ns_ = INT64_MIN;
  }
  return status;
}

absl::Status TracedStepsFinder::AddStep(const StepContent& content) {
  StepCuts cuts = CutsOf(content);
  std::vector<TracedPiece> pieces;
  if (found_.has_gpu) pieces.push_back({.name = "host"});
  for (const PieceCut& cut : cuts.cuts) pieces.push_back(cut.piece);
  if (found_.steps.empty()) {
    found_.pieces = std::move(pieces);
    found_.collectives = std::move(cuts.collectives);
    found_.shortest_collective_ns.assign(found_.collectives.size(), 0);
  } else if (pieces != found_.pieces || cuts.collectives != found_.collectives) {
    return TraceFault(absl::StrCat(StepName(content.number),
                                   " has its gradients, collectives, copies and optimizer in "
                                   "another order, or of other sizes, than ",
                                   StepName(contents_.front().number),
                                   ": record steps that are alike, one p.step() for each"));
  }
  TracedStep step{.number = content.number};
  if (found_.has_gpu) {
    if (absl::Status status = TimeOnGpu(content, cuts.cuts, step); !status.ok()) return status;
  } else {
    TimeOnHost(content, cuts.cuts, step);
  }
  found_.steps.push_back(std::move(step));
  return absl::OkStatus();
}

// The k-th run is the k-th collective's, where there are as many.
void TracedStepsFinder::KeepShortest(const std::vector<TimeSpan>& runs) {
  if (runs.size() != found_.collectives.size()) return;
  for (size_t i = 0; i < runs.size(); ++i) {
    int64_t& shortest = found_.shortest_collective_ns[i];
    const int64_t length = runs[i].end_ns - runs[i].start_ns;
    shortest = shortest == 0 ? length : std::min(shortest, length);
  }
}

// True for a collective of the gradients' group; others are part of a replica's computation.
bool TracedStepsFinder::IsSent(const TraceDeviceWork& work) const {
  return work.is_collective &&
         (contents_.front().inner.empty() || work.group == contents_.front().group);
}

absl::Status TracedStepsFinder::CheckKernelGroups() const {
  const bool are_told =
      contents_.front().inner.empty() ||
      std::all_of(trace_.device.begin(), trace_.device.end(), [](const TraceDeviceWork& work) {
        return !work.is_collective || work.group >= 0;
      });
  if (are_told) return absl::OkStatus();
  return TraceFault(
      "it has collectives of several groups, and its kernels do not say of which they are (Process "
      "Group Name): record with PyTorch 2.4 or later");
}

// The spans in which collectives of any step ran on the GPU, as far as they overlap a time.
std::vector<TimeSpan> TracedStepsFinder::SentBetween(int64_t begin_ns, int64_t end_ns) {
  if (sent_.empty()) {
    for (const TraceDeviceWork& work : trace_.device) {
      if (IsSent(work)) sent_.push_back({work.start_ns, work.end_ns});
    }
    sent_ = UnionOf(std::move(sent_));
  }
  auto first = std::partition_point(sent_.begin(), sent_.end(), [begin_ns](const TimeSpan& span) {
    return span.end_ns <= begin_ns;
  });
  const auto last = std::partition_point(
      first, sent_.end(), [end_ns](const TimeSpan& span) { return span.start_ns < end_ns; });
  return {first, last};
}

absl::Status TracedStepsFinder::TimeOnGpu(const StepContent& content,
                                          const std::vector<PieceCut>& cuts, TracedStep& step) {
  const auto launched_before = [this](int64_t host_ns) {
    return std::partition_point(
        trace_.device.begin(), trace_.device.end(),
        [host_ns](const TraceDeviceWork& work) { return work.launch_ns < host_ns; });
  };
  const auto first = launched_before(content.window.start_ns);
  const auto last = launched_before(content.window.end_ns);
  std::vector<TimeSpan> computing;
  std::vector<TimeSpan> sending;
  for (auto work = first; work != last; ++work)
    (IsSent(*work) ? sending : computing).push_back({work->start_ns, work->end_ns});
  if (computing.empty()) {
    return TraceFault(absl::StrCat(StepName(content.number),
                                   " launched nothing that ran on the GPU: record with "
                                   "ProfilerActivity.CPU and ProfilerActivity.CUDA, and end the "
                                   "recording after the last step has"));
  }
  if (!IsAlone()) KeepShortest(sending);
  const int64_t first_ns =
      std::min_element(computing.begin(), computing.end(),
                       [](const TimeSpan& a, const TimeSpan& b) { return a.start_ns < b.start_ns; })
          ->start_ns;
  // The step begins where the one before it has ended.
  for (; counted_ < static_cast<size_t>(first - trace_.device.begin()); ++counted_) {
    const TraceDeviceWork& work = trace_.device[counted_];
    if (!IsSent(work) && work.launch_ns >= 0) computed_ns_ = std::max(computed_ns_, work.end_ns);
  }
  const int64_t begin_ns = computed_ns_ == INT64_MIN ? first_ns : computed_ns_;
  int64_t end_ns = begin_ns;
  for (const TimeSpan& span : computing) end_ns = std::max(end_ns, span.end_ns);
  const std::vector<TimeSpan> busy = UnionOf(computing);
  std::vector<TimeSpan> waits;
  if (!IsAlone()) waits = BothOf(GapsOf(busy, begin_ns, end_ns), SentBetween(begin_ns, end_ns));
  LengthBefore waited(waits);
  const auto from_begin = [&](int64_t at_ns) {
    return std::max<int64_t>(0, at_ns - begin_ns) - waited.At(at_ns);
  };
  step.exposed_ns = LengthOf(waits);
  step.busy_ns = LengthOf(BothOf(busy, {{begin_ns, end_ns}}));
  step.span_ns = from_begin(first_ns);
  step.first_data_ns = DataLoadingBetween(loading_, begin_ns, first_ns);
  step.host_ns =
      std::max<int64_t>(0, content.window.end_ns - content.window.start_ns - content.waited_ns);
  step.ends_ns.push_back(step.span_ns);
  int64_t done_ns = std::max(first_ns, begin_ns);
  auto work = first;
  for (const PieceCut& cut : cuts) {
    for (; work != last && work->launch_ns < cut.host_ns; ++work) {
      if (!IsSent(*work)) done_ns = std::max(done_ns, work->end_ns);
    }
    step.ends_ns.push_back(from_begin(done_ns));
  }
  return absl::OkStatus();
}

void TracedStepsFinder::TimeOnHost(const StepContent& content, const std::vector<PieceCut>& cuts,
                                   TracedStep& step) {
  const int64_t begin_ns = content.window.start_ns;
  std::vector<TimeSpan> runs;
  std::vector<TimeSpan> first_runs;  // before the backward pass; the host waits for each
  for (const SentTensor& tensor : content.sent) {
    if (tensor.elements != 0) runs.push_back(tensor.run);
    if (tensor.launch_ns < content.backward_ns) first_runs.push_back(tensor.run);
  }
  std::vector<TimeSpan> waits;
  if (!IsAlone()) {
    KeepShortest(runs);
    waits = std::move(first_runs);
    // After the last gradient of a backward pass the host copies, or waits.
    std::vector<int64_t> ends = content.later_passes_ns;
    ends.push_back(content.optimizer ? content.optimizer->start_ns : content.window.end_ns);
    for (const int64_t to_ns : ends) {
      const auto after = std::partition_point(
          content.gradients.begin(), content.gradients.end(),
          [to_ns](const Gradient& gradient) { return gradient.start_ns < to_ns; });
      const int64_t from_ns = after == content.gradients.begin() ? to_ns : std::prev(after)->end_ns;
      const std::vector<TimeSpan> idle =
          BothOf(GapsOf(UnionOf(content.copies), from_ns, std::max(from_ns, to_ns)), UnionOf(runs));
      waits.insert(waits.end(), idle.begin(), idle.end());
    }
    waits = UnionOf(std::move(waits));
  }
  step.exposed_ns = LengthOf(waits);
  step.first_data_ns = DataLoadingBetween(loading_, begin_ns, cuts.front().host_ns);
  if (cuts.size() > 1)
    step.last_data_ns = DataLoadingBetween(loading_, cuts.end()[-2].host_ns, cuts.back().host_ns);
  LengthBefore waited(waits);
  for (const PieceCut& cut : cuts) {
    const int64_t end_ns = std::max<int64_t>(0, cut.host_ns - begin_ns) - waited.At(cut.host_ns);
    step.ends_ns.push_back(std::max(end_ns, step.ends_ns.empty() ? 0 : step.ends_ns.back()));
  }
}

// A piece that takes no time in any step is none, but for a link of the forward pass and the first
// piece with gradients of a link that it undoes: what it needs the next one needs, and what it
// launches is ready after the one before it.
void TracedStepsFinder::DropEmptyPieces() {
  std::vector<TracedPiece> pieces;
  std::vector<size_t> kept;
  std::vector<int32_t> needs;
  for (size_t p = 0; p < found_.pieces.size(); ++p) {
    TracedPiece& piece = found_.pieces[p];
    needs.insert(needs.end(), piece.needs.begin(), piece.needs.end());
    const bool takes_time =
        std::any_of(found_.steps.begin(), found_.steps.end(), [p](const TracedStep& step) {
          return step.ends_ns[p] > (p == 0 ? 0 : step.ends_ns[p - 1]);
        });
    const bool is_of_link =
        piece.link >= 0 && (piece.pass == Pass::kForward ||
                            (!piece.launches.empty() && pieces.back().link != piece.link));
    if (takes_time || is_of_link || (pieces.empty() && !piece.launches.empty())) {
      piece.needs = std::exchange(needs, {});
      pieces.push_back(std::move(piece));
      kept.push_back(p);
    } else if (!pieces.empty()) {
      std::vector<int32_t>& launches = pieces.back().launches;
      launches.insert(launches.end(), piece.launches.begin(), piece.launches.end());
    }
  }
  for (TracedStep& step : found_.steps) {
    std::vector<int64_t> ends;
    ends.reserve(kept.size());
    for (const size_t p : kept) ends.push_back(step.ends_ns[p]);
    step.ends_ns = std::move(ends);
  }
  found_.pieces = std::move(pieces);
}

}  // namespace

absl::StatusOr<TracedSteps> FindTracedSteps(const PyTorchTrace& trace, const TracedForm& form) {
  return TracedStepsFinder(trace, form).Find();
}

}  // namespace stepcast
