#include "core/importing/tensorflow/timeline_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
#include "core/importing/common/json_reader.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/common/units.h"
#include "core/model/fault_list.h"

namespace stepcast {

namespace {

constexpr int64_t kMaxEventsPerOperation = 4;
constexpr double kNsPerTimelineMicro = 1000;
constexpr int kMaxDepth = 64;

class TimelineReader : public JsonReader {
 public:
  explicit TimelineReader(const ProfileLimits& limits) : JsonReader(kMaxDepth), limits_(limits) {}

  absl::StatusOr<Timeline> ReadAll(ByteSource& source, StopCheck stop) {
    if (absl::Status status = Read(source, stop); !status.ok()) return status;
    if (!found_) return ImportFault(kAtRecording, "it has no traceEvents");
    return std::move(timeline_);
  }

 protected:
  int BeginObject() override {
    if (place() == kTop) return kDocument;
    if (place() == kEvent && key() == "args") return kArguments;
    if (place() != kEvents) return kPassOver;
    event_ = {};
    inputs_of_event_.clear();
    phase_.clear();
    name_.clear();
    not_numbers_.clear();
    has_process_ = has_start_ = false;
    return kEvent;
  }

  int BeginList() override {
    if (place() != kTop && (place() != kDocument || key() != "traceEvents")) return kPassOver;
    found_ = true;
    return kEvents;
  }

  void End() override {
    if (place() == kEvent) Keep();
  }

  void Text(std::string& value) override {
    if (place() == kEvent && key() == "ph") phase_ = value;
    if (place() == kEvent && key() == "name") name_ = value;
    if (place() == kEvent && (key() == "pid" || key() == "ts"))
      not_numbers_.append(not_numbers_.empty() ? "" : " and ").append(key());
    if (place() == kArguments) Argument(value);
  }

  void Number(double value, std::optional<int64_t> whole) override {
    if (place() != kEvent) return;
    if (key() == "pid" && whole) {
      event_.process = *whole;
      has_process_ = true;
    }
    if (key() != "ts" && key() != "dur") return;
    // The year 2096, in microseconds.
    constexpr double kLatest = 4e15;
    if (!std::isfinite(value) || std::abs(value) > kLatest)
      return FailAtByte(absl::StrCat(value, " is not a time"));
    // A whole number stays exact; a double has not all the nanoseconds of a date.
    const int64_t ns = whole ? *whole * static_cast<int64_t>(kNsPerTimelineMicro)
                             : std::llround(value * kNsPerTimelineMicro);
    (key() == "ts" ? event_.start_ns : event_.length_ns) = ns;
    has_start_ = has_start_ || key() == "ts";
  }

 private:
  enum Place { kDocument = 1, kEvents, kEvent, kArguments };

  void Argument(std::string& value) {
    const bool is_name = key() == "name";
    const bool is_input = key().starts_with("input");
    if (!is_name && key() != "op" && !is_input) return;
    if (value.size() > limits_.max_name_bytes)
      return FailAtByte(TooLong(value, "max_name_bytes", limits_.max_name_bytes));
    if (!is_input) {
      (is_name ? event_.node : event_.op) = std::move(value);
      return;
    }
    int number = 0;
    if (!absl::SimpleAtoi(AbslView(key().substr(5)), &number)) return;
    inputs_of_event_.emplace_back(number, std::move(value));
    if (++inputs_ > limits_.max_dependencies)
      Fail(OverLimit(inputs_, "max_dependencies", limits_.max_dependencies));
  }

  void Keep() {
    if (phase_ == "M" && name_ == "process_name" && has_process_) {
      timeline_.processes[event_.process] = std::move(event_.node);
      if (static_cast<int64_t>(timeline_.processes.size()) > limits_.max_operations)
        return Fail("more processes than max_operations");
    }
    if (phase_ != "X") return;
    std::sort(inputs_of_event_.begin(), inputs_of_event_.end());
    for (auto& [number, input] : inputs_of_event_) event_.inputs.push_back(std::move(input));
    if (!has_process_ || !has_start_) {
      return FailAtByte(not_numbers_.empty()
                            ? "an event without a pid or a ts"
                            : absl::StrCat("an event with a text as ", not_numbers_,
                                           ", which the timelines of TensorFlow 1 do not have"));
    }
    timeline_.events.push_back(std::move(event_));
    if (const auto count = static_cast<int64_t>(timeline_.events.size());
        count > kMaxEventsPerOperation * limits_.max_operations) {
      Fail(absl::StrCat(count, " events are above four times the limit max_operations = ",
                        limits_.max_operations));
    }
  }

  const ProfileLimits& limits_;
  Timeline timeline_;
  bool found_ = false;
  std::string phase_;
  std::string name_;
  std::string not_numbers_;  // keys of the event
  bool has_process_ = false;
  bool has_start_ = false;
  int64_t inputs_ = 0;
  TimelineEvent event_;
  std::vector<std::pair<int, std::string>>
      inputs_of_event_;  // by number, since the keys of an object have no order
};

}  // namespace

absl::StatusOr<Timeline> ReadTimeline(ByteSource& source, const ProfileLimits& limits,
                                      StopCheck stop) {
  return TimelineReader(limits).ReadAll(source, stop);
}

}  // namespace stepcast
