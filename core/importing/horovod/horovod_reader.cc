#include "core/importing/horovod/horovod_reader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/common/json_reader.h"
#include "core/importing/common/recording_import.h"

namespace stepcast {

namespace {

constexpr int kMaxHorovodDepth = 16;

// A tensor that is being read.
struct HorovodOpenTensor : HorovodTensor {
  std::vector<std::string> open;  // activities
  std::optional<int64_t> ready_ns;
};

class HorovodReader : public JsonReader {
 public:
  explicit HorovodReader(const ProfileLimits& limits)
      : JsonReader(kMaxHorovodDepth), limits_(limits) {}

  absl::StatusOr<HorovodRecording> ReadAll(ByteSource& source, StopCheck stop) {
    if (absl::Status status = Read(source, stop); !status.ok()) return status;
    if (!found_) return ImportFault(kAtRecording, "it has no list of events");
    if (!other_.empty()) {
      return ImportFault(kAtRecording, absl::StrCat("it has the collective ", Quoted(other_),
                                                    ": only all-reduces, and broadcasts before "
                                                    "the training, are read"));
    }
    HorovodRecording recording{.is_open = ended_early()};
    for (auto& [process, tensor] : tensors_) {
      if (!tensor.uses.empty()) recording.tensors.push_back(std::move(tensor));
    }
    return recording;
  }

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

  void BeginActivity(HorovodOpenTensor& tensor) {
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

  void EndActivity(HorovodOpenTensor& tensor) {
    if (tensor.open.empty()) return;
    const std::string activity = std::move(tensor.open.back());
    tensor.open.pop_back();
    if (activity != "ALLREDUCE" || !tensor.ready_ns) return;
    tensor.uses.push_back({.ready_ns = *tensor.ready_ns, .end_ns = time_ns_});
    tensor.ready_ns.reset();
    if (!type_.empty()) tensor.type = type_;
    if (!shape_.empty()) tensor.shape = shape_;
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
  std::map<int64_t, HorovodOpenTensor> tensors_;  // by process
};

}  // namespace

absl::StatusOr<HorovodRecording> ReadHorovodTimeline(ByteSource& source,
                                                     const ProfileLimits& limits, StopCheck stop) {
  return HorovodReader(limits).ReadAll(source, stop);
}

namespace {

// A way to divide the turns up to one of them.
struct Division {
  int64_t whole = 0;
  size_t first = 0;     // turns before the first whole round
  double spans_ns = 0;  // summed over the whole rounds
  bool ends_in_whole = false;

  bool IsBetterThan(const Division& other) const {
    return std::tuple(-whole, first, spans_ns) <
           std::tuple(-other.whole, other.first, other.spans_ns);
  }
};

// By the number of turns before, the best division of them.
std::vector<Division> BestDivisions(const std::vector<TensorTurn>& turns, size_t tensors) {
  std::vector<Division> best(turns.size() + 1);
  std::vector<size_t> next(tensors, 0);  // behind the last turn of each
  size_t begin = 0;                      // of the longest run in which none is twice
  for (size_t end = 1; end <= turns.size(); ++end) {
    size_t& after = next[turns[end - 1].tensor];
    begin = std::max(begin, after);
    after = end;
    best[end] = best[end - 1];
    best[end].ends_in_whole = false;
    if (end - begin < tensors) continue;
    const size_t first = end - tensors;
    Division division = best[first];
    if (division.whole++ == 0) division.first = first;
    division.spans_ns +=
        static_cast<double>(turns[end - 1].ready_ns) - static_cast<double>(turns[first].ready_ns);
    division.ends_in_whole = true;
    if (!best[end].IsBetterThan(division)) best[end] = division;
  }
  return best;
}

}  // namespace

std::vector<StepRound> RoundsOf(const std::vector<TensorTurn>& turns, size_t tensors) {
  const std::vector<Division> best = BestDivisions(turns, tensors);
  std::vector<StepRound> whole;
  for (size_t end = turns.size(); end > 0;) {
    const size_t count = best[end].ends_in_whole ? tensors : 1;
    end -= count;
    if (best[end + count].ends_in_whole)
      whole.push_back({.first = end, .count = count, .is_whole = true});
  }
  std::reverse(whole.begin(), whole.end());
  whole.push_back({.first = turns.size()});
  std::vector<StepRound> rounds;
  std::vector<size_t> round_of(tensors, 0);  // the last with the tensor, from 1 on
  size_t at = 0;
  for (const StepRound& round : whole) {
    bool is_open = false;
    for (; at < round.first; ++at) {
      size_t& last = round_of[turns[at].tensor];
      if (!is_open || last == rounds.size()) rounds.push_back({.first = at});
      is_open = true;
      ++rounds.back().count;
      last = rounds.size();
    }
    if (round.is_whole) rounds.push_back(round);
    at += round.count;
  }
  return rounds;
}

}  // namespace stepcast
