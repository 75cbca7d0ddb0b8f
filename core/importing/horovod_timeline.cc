#include "core/importing/horovod_timeline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "core/base/error.h"
#include "core/base/quoted.h"
#include "core/importing/json_reader.h"
#include "core/importing/step_lengths.h"
#include "core/importing/units.h"
#include "core/model/fault_list.h"
#include "core/model/profile.h"

namespace stepcast {

namespace {

constexpr size_t kHorovodStepsLeftOut = 2;
constexpr int kMaxHorovodDepth = 16;
constexpr int64_t kMaxTensorElements = int64_t{1} << 36;

// One all-reduce of a tensor.
struct TensorUse {
  int64_t ready_ns = 0;
  int64_t end_ns = 0;
};

struct HorovodTensor {
  std::string name;
  std::string type;
  int64_t elements = -1;  // -1: not recorded
  std::vector<TensorUse> uses;
  // As it is being read.
  std::vector<std::string> open;  // activities
  std::optional<int64_t> ready_ns;
};

int64_t BytesOfType(std::string_view type) {
  const std::pair<std::string_view, int64_t> bytes[] = {
      {"float64", 8},  {"int64", 8}, {"float32", 4}, {"int32", 4}, {"float16", 2}, {"uint16", 2},
      {"bfloat16", 2}, {"int16", 2}, {"uint8", 1},   {"int8", 1},  {"bool", 1},    {"byte", 1}};
  for (const auto& [name, size] : bytes) {
    if (type == name) return size;
  }
  return 0;
}

// Of "[64, 3, 7, 7]"; -1: none.
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

class HorovodReader : public JsonReader {
 public:
  explicit HorovodReader(const ProfileLimits& limits)
      : JsonReader(kMaxHorovodDepth), limits_(limits) {}

  absl::StatusOr<std::vector<HorovodTensor>> ReadAll(ByteSource& source, StopCheck stop) {
    if (absl::Status status = Read(source, stop); !status.ok()) return status;
    if (!found_) return ImportFault(kAtRecording, "it has no list of events");
    if (!other_.empty()) {
      return ImportFault(kAtRecording, absl::StrCat("it has the collective ", Quoted(other_),
                                                    ": only all-reduces, and broadcasts before "
                                                    "the training, are read"));
    }
    std::vector<HorovodTensor> tensors;
    for (auto& [process, tensor] : tensors_) {
      if (!tensor.uses.empty()) tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

  // True where the list ended without its bracket, as a job that was stopped leaves it.
  bool is_open() const { return ended_early(); }

 protected:
  int BeginObject() override {
    if (place() == kTop) Fail("a list of events is expected, as Horovod writes");
    if (place() == kEvent && key() == "args") return kArguments;
    if (place() != kEvents) return kPassOver;
    for (std::string* text : {&phase_, &name_, &argument_name_, &type_, &shape_}) text->clear();
    process_ = -1;
    has_time_ = false;
    return kEvent;
  }

  int BeginList() override {
    if (place() != kTop) return kPassOver;
    found_ = true;
    return kEvents;
  }

  void End() override {
    if (place() == kEvent) Keep();
  }

  // An event that is cut short is left out.
  bool MayEnd() const override { return place() != kTop; }

  void Text(std::string& value) override {
    if (place() == kEvent && key() == "ph") phase_ = value;
    if (place() == kEvent && key() == "name") name_ = value;
    if (place() != kArguments) return;
    if (key() == "name") argument_name_ = value;
    if (key() == "dtype") type_ = value;
    if (key() == "shape") shape_ = value;
  }

  void Number(double value, std::optional<int64_t>) override {
    if (place() != kEvent) return;
    constexpr double kLast = 4e15;  // microseconds
    if (key() == "pid" && std::abs(value) < kLast) process_ = std::llround(value);
    if (key() != "ts") return;
    if (!(std::abs(value) <= kLast)) return FailAtByte(absl::StrCat(value, " is not a time"));
    time_ns_ = static_cast<int64_t>(std::floor(value)) * 1000 +
               std::llround((value - std::floor(value)) * 1000);
    has_time_ = true;
  }

 private:
  enum Place { kEvents = 1, kEvent, kArguments };

  void Keep() {
    if (phase_ == "M") {
      if (name_ == "process_name" && !argument_name_.empty()) NameTensor();
      return;
    }
    const auto found = tensors_.find(process_);
    if (found == tensors_.end() || (phase_ != "B" && phase_ != "E" && phase_ != "X")) return;
    if (!has_time_) return FailAtByte("an event without a ts");
    phase_ == "E" ? EndActivity(found->second) : BeginActivity(found->second);
  }

  void NameTensor() {
    if (argument_name_.size() > limits_.max_name_bytes)
      return Fail(TooLong(argument_name_, "max_name_bytes", limits_.max_name_bytes));
    tensors_[process_].name = argument_name_;
    const auto count = static_cast<int64_t>(tensors_.size());
    if (count > limits_.max_operations)
      Fail(OverLimit(count, "max_operations", limits_.max_operations));
  }

  void BeginActivity(HorovodTensor& tensor) {
    if (phase_ == "X") {
      // This worker's own request, where it is the one that all others send theirs to.
      const bool negotiates =
          !tensor.open.empty() && absl::StartsWith(tensor.open.back(), "NEGOTIATE_");
      if (negotiates && name_ == "0") tensor.ready_ns = time_ns_;
      return;
    }
    if (name_ == "NEGOTIATE_ALLREDUCE") tensor.ready_ns = time_ns_;
    const bool is_other = absl::StartsWith(name_, "NEGOTIATE_") && name_ != "NEGOTIATE_ALLREDUCE" &&
                          name_ != "NEGOTIATE_BROADCAST";
    if (is_other && other_.empty()) other_ = name_.substr(10);
    tensor.open.push_back(name_);
    if (tensor.open.size() > kMaxHorovodDepth) Fail("activities nested too deep");
  }

  void EndActivity(HorovodTensor& tensor) {
    if (tensor.open.empty()) return;
    const std::string activity = std::move(tensor.open.back());
    tensor.open.pop_back();
    if (activity != "ALLREDUCE" || !tensor.ready_ns) return;
    tensor.uses.push_back({.ready_ns = *tensor.ready_ns, .end_ns = time_ns_});
    tensor.ready_ns.reset();
    if (!type_.empty()) tensor.type = type_;
    if (!shape_.empty()) tensor.elements = ElementsOf(shape_);
    if (++uses_ > limits_.max_recorded_times)
      Fail(OverLimit(uses_, "max_recorded_times", limits_.max_recorded_times));
  }

  const ProfileLimits& limits_;
  bool found_ = false;
  std::string other_;  // the first collective that is neither all-reduce nor broadcast
  std::string phase_;
  std::string name_;
  std::string argument_name_;
  std::string type_;
  std::string shape_;
  int64_t process_ = -1;
  bool has_time_ = false;
  int64_t time_ns_ = 0;
  int64_t uses_ = 0;
  std::map<int64_t, HorovodTensor> tensors_;  // by process
};

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
  std::vector<size_t> UsualSteps(const std::vector<int64_t>& ends);
  void AddOperations(ProfileDraft& draft) const;

  std::vector<HorovodTensor> tensors_;
  const RecordingOptions& options_;
  std::vector<std::string> notes_;
  // By step, when each tensor was ready, from where the step before has ended.
  std::vector<std::vector<int64_t>> ready_ns_;
};

// Those that every step has.
absl::Status HorovodImport::ChooseTensors() {
  size_t most = 0;
  for (const HorovodTensor& tensor : tensors_) most = std::max(most, tensor.uses.size());
  std::vector<HorovodTensor> chosen;
  size_t left_out = 0;
  size_t steps = most;
  for (HorovodTensor& tensor : tensors_) {
    if (tensor.uses.size() + 1 < most) {
      ++left_out;
      continue;
    }
    steps = std::min(steps, tensor.uses.size());
    const int64_t bytes = tensor.elements * BytesOfType(tensor.type);
    if (tensor.elements < 1 || bytes < 1) {
      return ImportFault(kAtRecording,
                         absl::StrCat("the all-reduce of ", Quoted(tensor.name),
                                      " ends without dtype and shape: record with a Horovod that "
                                      "writes both (0.16 and later)"));
    }
    chosen.push_back(std::move(tensor));
  }
  tensors_ = std::move(chosen);
  if (steps <= kHorovodStepsLeftOut) {
    return ImportFault(kAtRecording,
                       absl::StrCat("it has ", steps,
                                    " steps (all-reduces of each tensor after a "
                                    "NEGOTIATE_ALLREDUCE), of which the first two are left "
                                    "out: record at least three, better twelve"));
  }
  for (HorovodTensor& tensor : tensors_) tensor.uses.resize(steps);
  if (left_out > 0) {
    AddNote(absl::StrCat("Left out: ", left_out,
                         " tensors that are not reduced in every step: metrics, for instance."));
  }
  return absl::OkStatus();
}

// Places of the steps that are kept, each of which lasts from where the one before has ended.
std::vector<size_t> HorovodImport::UsualSteps(const std::vector<int64_t>& ends) {
  constexpr int64_t kLongest = int64_t{1} << 60;
  std::vector<int64_t> lengths;
  for (size_t s = 1; s < ends.size(); ++s)
    lengths.push_back(std::clamp<int64_t>(ends[s] - ends[s - 1], 0, kLongest));
  const int64_t median = MiddleOf(lengths);
  const int64_t longest = LongestUsual(lengths, median);
  std::vector<size_t> usual;
  std::vector<std::string> odd;
  for (size_t s = kHorovodStepsLeftOut; s < ends.size(); ++s) {
    if (lengths[s - 1] <= longest) {
      usual.push_back(s);
    } else {
      odd.push_back(absl::StrFormat(
          "step %d (%.1f times the median)", s + 1,
          static_cast<double>(lengths[s - 1]) / static_cast<double>(std::max<int64_t>(1, median))));
    }
  }
  if (!odd.empty()) {
    AddNote(absl::StrCat("Left out: ", odd.size(), " of ", ends.size() - kHorovodStepsLeftOut,
                         " steps that last far longer than the others, as one that evaluates, "
                         "saves a checkpoint or waits for data does: ",
                         absl::StrJoin(odd, ", "), "."));
  }
  return usual;
}

absl::Status HorovodImport::FindSteps() {
  const size_t steps = tensors_.front().uses.size();
  std::vector<int64_t> ends(steps, INT64_MIN);
  for (const HorovodTensor& tensor : tensors_) {
    for (size_t s = 0; s < steps; ++s) ends[s] = std::max(ends[s], tensor.uses[s].end_ns);
  }
  std::vector<double> offsets(tensors_.size(), 0);
  double waited_ns = 0;
  for (const size_t s : UsualSteps(ends)) {
    ready_ns_.emplace_back();
    int64_t last_ns = ends[s - 1];
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const int64_t ready = std::max<int64_t>(0, tensors_[t].uses[s].ready_ns - ends[s - 1]);
      ready_ns_.back().push_back(ready);
      offsets[t] += static_cast<double>(ready);
      last_ns = std::max(last_ns, tensors_[t].uses[s].ready_ns);
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
         .size_bytes = tensors_[t].elements * BytesOfType(tensors_[t].type),
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
                     .framework = "horovod",
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
  HorovodReader reader(limits);
  absl::StatusOr<std::vector<HorovodTensor>> tensors = reader.ReadAll(recording, stop);
  if (!tensors.ok()) return tensors.status();
  HorovodImport import(*std::move(tensors), options.recording);
  if (reader.is_open())
    import.AddNote("Put right: the list has no end, as a job that was stopped leaves it.");
  return import.Make(limits);
}

}  // namespace stepcast
