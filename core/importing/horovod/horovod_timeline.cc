#include "core/importing/horovod/horovod_timeline.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/common/time_spans.h"
#include "core/importing/horovod/horovod_reader.h"
#include "core/model/profile.h"

namespace stepcast {

namespace {

constexpr size_t kHorovodStepsLeftOut = 2;
constexpr int64_t kMaxTensorElements = int64_t{1} << 36;

int64_t BytesOfType(std::string_view type) {
  const std::pair<std::string_view, int64_t> bytes[] = {
      {"float64", 8},  {"int64", 8}, {"float32", 4}, {"int32", 4}, {"float16", 2}, {"uint16", 2},
      {"bfloat16", 2}, {"int16", 2}, {"uint8", 1},   {"int8", 1},  {"bool", 1},    {"byte", 1}};
  for (const auto& [name, size] : bytes) {
    if (type == name) return size;
  }
  return 0;
}

// Number for "[64, 3, 7, 7]"; -1: none.
int64_t ElementsOf(absl::string_view shape) {
  if (!absl::ConsumePrefix(&shape, "[") || !absl::ConsumeSuffix(&shape, "]")) return -1;
  int64_t elements = 1;
  for (const absl::string_view text : absl::StrSplit(shape, ',', absl::SkipWhitespace())) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(text, &size) || size < 0) return -1;
    if (size > 0 && elements > kMaxTensorElements / size) return -1;
    elements *= size;
  }
  return elements;
}

// A profile of what was read.
class HorovodImport {
 public:
  HorovodImport(std::vector<HorovodTensor> tensors, const RecordingOptions& options)
      : tensors_(std::move(tensors)), options_(options) {}

  absl::StatusOr<ImportedProfile> Make(const ProfileLimits& limits);
  void AddNote(std::string note) { notes_.push_back(std::move(note)); }

 private:
  absl::Status ChooseTensors();
  absl::Status FindSteps();
  std::vector<size_t> WholeSteps();
  std::vector<size_t> UsualSteps(const std::vector<int64_t>& ends,
                                 const std::vector<size_t>& whole);
  void AddOperations(ProfileDraft& draft) const;

  std::vector<HorovodTensor> tensors_;
  const RecordingOptions& options_;
  std::vector<std::string> notes_;
  std::vector<TensorTurn> turns_;  // of the tensors, in the order in which they were ready
  std::vector<StepRound> rounds_;
  // By step, when each tensor was ready, from where the step before has ended.
  std::vector<std::vector<int64_t>> ready_ns_;
};

bool IsWhole(const StepRound& round) { return round.is_whole; }

int64_t BytesOf(const HorovodTensor& tensor) {
  return ElementsOf(tensor.shape) * BytesOfType(tensor.type);
}

absl::Status CheckSize(const HorovodTensor& tensor) {
  const std::string name = absl::StrCat("the all-reduce of ", Quoted(tensor.name));
  if (tensor.type.empty() || tensor.shape.empty()) {
    return ImportFault(kAtRecording,
                       absl::StrCat(name,
                                    " ends without dtype and shape: record with a Horovod that "
                                    "writes both (0.16 and later)"));
  }
  if (BytesOfType(tensor.type) == 0) {
    return ImportFault(kAtRecording,
                       absl::StrCat(name, " has dtype ", Quoted(tensor.type),
                                    ", whose size is not known: Horovod's are float32, bfloat16, "
                                    "int64 and the like"));
  }
  if (ElementsOf(tensor.shape) < 1) {
    return ImportFault(kAtRecording,
                       absl::StrCat(name, " has shape ", Quoted(tensor.shape),
                                    ", which is not of 1 to ", kMaxTensorElements, " elements"));
  }
  return absl::OkStatus();
}

std::vector<TensorTurn> TurnsOf(const std::vector<HorovodTensor>& tensors) {
  std::vector<TensorTurn> turns;
  for (size_t t = 0; t < tensors.size(); ++t) {
    for (const TensorUse& use : tensors[t].uses)
      turns.push_back({.tensor = t, .ready_ns = use.ready_ns, .end_ns = use.end_ns});
  }
  std::stable_sort(turns.begin(), turns.end(), [](const TensorTurn& a, const TensorTurn& b) {
    return a.ready_ns < b.ready_ns;
  });
  return turns;
}

// The uses that half of all bytes have, at least.
size_t UsualUses(const std::vector<HorovodTensor>& tensors) {
  std::map<size_t, double> bytes;
  double left = 0;
  for (const HorovodTensor& tensor : tensors) {
    const auto size = static_cast<double>(std::max<int64_t>(1, BytesOf(tensor)));
    bytes[tensor.uses.size()] += size;
    left += size / 2;
  }
  auto usual = bytes.begin();
  for (; (left -= usual->second) > 0 && std::next(usual) != bytes.end();) ++usual;
  return usual->first;
}

// Tensors that most steps have, where that makes most steps whole; else those of nearly all steps.
absl::Status HorovodImport::ChooseTensors() {
  const size_t usual = UsualUses(tensors_);
  std::vector<HorovodTensor> chosen;
  for (const size_t off : {usual, usual / 8, size_t{1}}) {
    std::vector<HorovodTensor> tried;
    for (const HorovodTensor& tensor : tensors_) {
      const size_t uses = tensor.uses.size();
      const size_t apart = std::max(uses, usual) - std::min(uses, usual);
      const bool is_in_most = 2 * uses > usual && uses < 2 * usual;
      if (apart <= 1 || (is_in_most && apart <= off)) tried.push_back(tensor);
    }
    std::vector<TensorTurn> turns = TurnsOf(tried);
    std::vector<StepRound> rounds = RoundsOf(turns, tried.size());
    const auto whole = [](const std::vector<StepRound>& in) {
      return std::count_if(in.begin(), in.end(), IsWhole);
    };
    if (!chosen.empty() && whole(rounds) <= whole(rounds_)) continue;
    chosen = std::move(tried);
    turns_ = std::move(turns);
    rounds_ = std::move(rounds);
    if (2 * static_cast<size_t>(whole(rounds_)) > usual) break;
  }
  for (const HorovodTensor& tensor : chosen) {
    if (absl::Status status = CheckSize(tensor); !status.ok()) return status;
  }
  if (chosen.size() < tensors_.size()) {
    AddNote(absl::StrCat("Left out: ", tensors_.size() - chosen.size(),
                         " tensors that are not reduced in most steps: metrics, for instance."));
  }
  tensors_ = std::move(chosen);
  return absl::OkStatus();
}

// Items of a note, of which the first alone are told where they are many.
std::string Listed(std::vector<std::string> items) {
  constexpr size_t kMostListed = 10;
  const size_t count = items.size();
  if (count > kMostListed) {
    items.resize(kMostListed);
    items.push_back(absl::StrCat("and ", count - kMostListed, " more"));
  }
  return absl::StrJoin(items, ", ");
}

// Places of the steps, behind the first ones, in which all tensors are reduced.
std::vector<size_t> HorovodImport::WholeSteps() {
  std::vector<size_t> whole;
  std::vector<std::string> odd;
  for (size_t s = kHorovodStepsLeftOut; s < rounds_.size(); ++s) {
    if (rounds_[s].is_whole) {
      whole.push_back(s);
    } else {
      odd.push_back(
          absl::StrCat("step ", s + 1, " (", rounds_[s].count, " of ", tensors_.size(), ")"));
    }
  }
  if (!odd.empty() && !whole.empty()) {
    AddNote(absl::StrCat("Left out: ", odd.size(), " of ", rounds_.size() - kHorovodStepsLeftOut,
                         " steps in which not all tensors are reduced: ", Listed(odd), "."));
  }
  return whole;
}

// Places of the steps that are kept, each of which lasts from where the one before has ended.
std::vector<size_t> HorovodImport::UsualSteps(const std::vector<int64_t>& ends,
                                              const std::vector<size_t>& whole) {
  constexpr int64_t kLongest = int64_t{1} << 60;
  const auto length = [&](size_t s) {
    return std::clamp<int64_t>(ends[s] - ends[s - 1], 0, kLongest);
  };
  std::vector<int64_t> lengths;
  if (rounds_[1].is_whole) lengths.push_back(length(1));
  for (const size_t s : whole) lengths.push_back(length(s));
  const int64_t median = MiddleOf(lengths);
  const int64_t longest = LongestUsual(lengths, median);
  std::vector<size_t> usual;
  std::vector<std::string> odd;
  for (const size_t s : whole) {
    if (length(s) <= longest) {
      usual.push_back(s);
    } else {
      odd.push_back(absl::StrFormat(
          "step %d (%.1f times the median)", s + 1,
          static_cast<double>(length(s)) / static_cast<double>(std::max<int64_t>(1, median))));
    }
  }
  if (!odd.empty()) {
    AddNote(absl::StrCat("Left out: ", odd.size(), " of ", whole.size(),
                         " steps that last far longer than the others, as one that evaluates, "
                         "saves a checkpoint or waits for data does: ",
                         Listed(odd), "."));
  }
  return usual;
}

absl::Status HorovodImport::FindSteps() {
  std::vector<size_t> whole = WholeSteps();
  if (whole.empty()) {
    return ImportFault(
        kAtRecording,
        absl::StrCat("it has ", std::count_if(rounds_.begin(), rounds_.end(), IsWhole),
                     " steps (all-reduces of each tensor after a NEGOTIATE_ALLREDUCE), of which "
                     "the first two are left out: record at least three, better twelve"));
  }
  std::vector<int64_t> ends;
  for (const StepRound& round : rounds_) {
    ends.push_back(ends.empty() ? INT64_MIN : ends.back());
    for (size_t at = round.first; at < round.first + round.count; ++at)
      ends.back() = std::max(ends.back(), turns_[at].end_ns);
  }
  std::vector<double> offsets(tensors_.size(), 0);
  double waited_ns = 0;
  for (const size_t s : UsualSteps(ends, whole)) {
    ready_ns_.emplace_back(tensors_.size(), 0);
    int64_t last_ns = ends[s - 1];
    for (size_t at = rounds_[s].first; at < rounds_[s].first + rounds_[s].count; ++at) {
      const TensorTurn& turn = turns_[at];
      const int64_t ready = std::max<int64_t>(0, turn.ready_ns - ends[s - 1]);
      ready_ns_.back()[turn.tensor] = ready;
      offsets[turn.tensor] += static_cast<double>(ready);
      last_ns = std::max(last_ns, turn.ready_ns);
    }
    waited_ns += static_cast<double>(std::max<int64_t>(0, ends[s] - last_ns));
  }
  std::vector<size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&offsets](size_t a, size_t b) { return offsets[a] < offsets[b]; });
  std::vector<HorovodTensor> ordered;
  ordered.reserve(order.size());
  for (const size_t t : order) ordered.push_back(std::move(tensors_[t]));
  tensors_ = std::move(ordered);
  for (std::vector<int64_t>& ready : ready_ns_) {
    std::vector<int64_t> sorted;
    sorted.reserve(order.size());
    for (const size_t t : order)
      sorted.push_back(std::max(ready[t], sorted.empty() ? 0 : sorted.back()));
    ready = std::move(sorted);
  }
  AddNote(absl::StrFormat(
      "Left out: the first two steps, and %.3f ms a step between the last tensor that was ready "
      "and "
      "the end of communication; what the optimizer takes is part of the next step's beginning.",
      waited_ns / kNsPerMs / static_cast<double>(ready_ns_.size())));
  return absl::OkStatus();
}

// A piece of computation that takes no time in any step is none.
void HorovodImport::AddOperations(ProfileDraft& draft) const {
  draft.steps.resize(ready_ns_.size());
  const auto add = [&draft](Operation operation, const auto& times) {
    draft.operations.push_back(std::move(operation));
    for (size_t s = 0; s < draft.steps.size(); ++s) {
      const auto [start, end] = times(s);
      draft.steps[s].start_ns.push_back(start);
      draft.steps[s].end_ns.push_back(end);
    }
    return static_cast<int32_t>(draft.operations.size()) - 1;
  };
  int32_t before = -1;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    const auto from = [&](size_t s) { return t == 0 ? 0 : ready_ns_[s][t - 1]; };
    bool takes_time = before < 0;
    for (size_t s = 0; s < ready_ns_.size(); ++s)
      takes_time = takes_time || ready_ns_[s][t] > from(s);
    if (takes_time) {
      Operation piece{.name = absl::StrCat("until/", tensors_[t].name),
                      .resource = Resource::kWorker};
      if (before >= 0) piece.waiting_for = {before};
      before = add(std::move(piece), [&](size_t s) { return std::pair(from(s), ready_ns_[s][t]); });
    }
    add({.name = tensors_[t].name,
         .resource = Resource::kCollective,
         .size_bytes = BytesOf(tensors_[t]),
         .waiting_for = {before},
         .parameter = tensors_[t].name,
         .collective = Collective::kAllReduce},
        [&](size_t s) { return std::pair(ready_ns_[s][t], ready_ns_[s][t]); });
  }
}

absl::StatusOr<ImportedProfile> HorovodImport::Make(const ProfileLimits& limits) {
  if (tensors_.empty()) {
    return ImportFault(kAtRecording,
                       "it has no ALLREDUCE of a tensor after its NEGOTIATE_ALLREDUCE: record a "
                       "training job with HOROVOD_TIMELINE");
  }
  absl::Status status = ChooseTensors();
  if (status.ok()) status = FindSteps();
  if (!status.ok()) return status;
  ProfileDraft draft{.display_name = options_.model,
                     .model = options_.model,
                     .framework = std::string(kHorovodFramework),
                     .batch_size = options_.batch_size,
                     .platform = options_.platform};
  AddOperations(draft);
  int64_t bytes = 0;
  for (const Operation& operation : draft.operations) bytes += operation.size_bytes;
  notes_.insert(notes_.begin(), absl::StrFormat("Found %d steps of %d tensors, %d bytes in all.",
                                                draft.steps.size(), tensors_.size(), bytes));
  notes_.emplace_back(
      "Found no computation but when tensors were ready: forward, backward and optimizer are told "
      "apart by PyTorch's profiler only.");
  absl::StatusOr<Profile> profile = Profile::Create(std::move(draft), limits);
  if (!profile.ok()) return AsImportFaults(profile.status());
  return ImportedProfile{.profile = *std::move(profile), .notes = std::move(notes_)};
}

}  // namespace

absl::StatusOr<ImportedProfile> ImportHorovodTimeline(ByteSource& recording,
                                                      const HorovodTimelineOptions& options,
                                                      const ProfileLimits& limits, StopCheck stop) {
  FaultList faults;
  CheckRecordingOptions(options.recording, limits, faults);
  if (!faults.empty()) return FaultsError("IMPORT_INVALID", std::move(faults).Take());
  absl::StatusOr<HorovodRecording> read = ReadHorovodTimeline(recording, limits, stop);
  if (!read.ok()) return read.status();
  HorovodImport import(std::move(read->tensors), options.recording);
  if (read->is_open)
    import.AddNote("Put right: the list has no end, as a job that was stopped leaves it.");
  return import.Make(limits);
}

}  // namespace stepcast
