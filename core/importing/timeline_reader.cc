#include "core/importing/timeline_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include "core/base/quoted.h"
#include "core/importing/json_bytes.h"
#include "core/importing/recording_options.h"
#include "core/model/fault_list.h"

namespace stepcast {

namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxEventsPerOperation = 4;
constexpr double kNsPerTimelineMicro = 1000;
constexpr int kMaxDepth = 64;

// The parser's event handler. A function that returns false ends the parsing.
class EventHandler {
 public:
  EventHandler(JsonBytes& bytes, const ProfileLimits& limits, Timeline& timeline)
      : bytes_(bytes), limits_(limits), timeline_(timeline) {}

  const absl::Status& status() const { return status_; }

  // NOLINTBEGIN(readability-identifier-naming): the parser's names.
  bool null() { return Scalar(); }
  bool boolean(bool) { return Scalar(); }
  bool number_integer(Json::number_integer_t value) {
    return Number(static_cast<double>(value), value);
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return Number(static_cast<double>(value),
                  static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  }
  bool number_float(Json::number_float_t value, const std::string&) {
    return Number(value, std::nullopt);
  }
  bool binary(Json::binary_t&) { return Scalar(); }

  bool string(std::string& value) {
    bytes_.EndToken();
    if (ignored_ > 0) return true;
    if (place_ == Place::kEvent && key_ == "ph") phase_ = value;
    if (place_ == Place::kEvent && key_ == "name") name_ = value;
    return place_ == Place::kArguments ? Argument(value) : true;
  }

  bool key(std::string& value) {
    bytes_.EndToken();
    key_ = value;
    return true;
  }

  bool start_object(size_t) {
    bytes_.EndToken();
    if (ignored_ > 0) return Ignore();
    if (place_ == Place::kTop) return Enter(Place::kDocument);
    if (place_ == Place::kEvents) {
      event_ = {};
      inputs_of_event_.clear();
      phase_.clear();
      name_.clear();
      has_process_ = has_start_ = false;
      return Enter(Place::kEvent);
    }
    return place_ == Place::kEvent && key_ == "args" ? Enter(Place::kArguments) : Ignore();
  }

  bool start_array(size_t) {
    bytes_.EndToken();
    if (ignored_ > 0) return Ignore();
    list_alone_ = place_ == Place::kTop;
    const bool events = list_alone_ || (place_ == Place::kDocument && key_ == "traceEvents");
    found_ = found_ || events;
    return events ? Enter(Place::kEvents) : Ignore();
  }

  bool end_object() { return Leave(); }
  bool end_array() { return Leave(); }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) {
    return Fail(absl::StrCat("byte ", bytes_.position(), ": no JSON, or one that is cut short"));
  }
  // NOLINTEND(readability-identifier-naming)

  bool found() const { return found_; }

 private:
  enum class Place { kTop, kDocument, kEvents, kEvent, kArguments };

  bool Fail(std::string description) {
    if (status_.ok()) status_ = ImportFault(kAtRecording, std::move(description));
    return false;
  }

  bool Scalar() {
    bytes_.EndToken();
    return true;
  }

  bool Enter(Place place) {
    place_ = place;
    return true;
  }

  bool Ignore() {
    return ++ignored_ <= kMaxDepth || Fail(absl::StrCat("byte ", bytes_.position(),
                                                        ": nested more than ", kMaxDepth, " deep"));
  }

  bool Leave() {
    bytes_.EndToken();
    if (ignored_ > 0) {
      --ignored_;
      return true;
    }
    if (place_ == Place::kArguments) return Enter(Place::kEvent);
    if (place_ == Place::kEvent) return Enter(Place::kEvents) && Keep();
    return Enter(place_ == Place::kEvents && !list_alone_ ? Place::kDocument : Place::kTop);
  }

  bool Number(double value, std::optional<int64_t> whole) {
    bytes_.EndToken();
    if (ignored_ > 0 || place_ != Place::kEvent) return true;
    if (key_ == "pid" && whole) {
      event_.process = *whole;
      has_process_ = true;
    }
    if (key_ != "ts" && key_ != "dur") return true;
    // The year 2096, in microseconds.
    constexpr double kLatest = 4e15;
    if (!std::isfinite(value) || std::abs(value) > kLatest)
      return Fail(absl::StrCat("byte ", bytes_.position(), ": ", value, " is no time"));
    // What is whole stays exact; a double has not all the nanoseconds of a date.
    const int64_t ns = whole ? *whole * static_cast<int64_t>(kNsPerTimelineMicro)
                             : std::llround(value * kNsPerTimelineMicro);
    (key_ == "ts" ? event_.start_ns : event_.length_ns) = ns;
    has_start_ = has_start_ || key_ == "ts";
    return true;
  }

  bool Argument(std::string& value) {
    if (value.size() > limits_.max_name_bytes) {
      return !NeedsName() ||
             Fail(absl::StrCat("byte ", bytes_.position(), ": ",
                               TooLong(value, "max_name_bytes", limits_.max_name_bytes)));
    }
    if (key_ == "name" || key_ == "op") {
      (key_ == "name" ? event_.node : event_.op) = std::move(value);
      return true;
    }
    if (!absl::StartsWith(key_, "input")) return true;
    int number = 0;
    if (!absl::SimpleAtoi(absl::string_view(key_).substr(5), &number)) return true;
    inputs_of_event_.emplace_back(number, std::move(value));
    if (++inputs_ > limits_.max_dependencies)
      return Fail(OverLimit(inputs_, "max_dependencies", limits_.max_dependencies));
    return true;
  }

  bool NeedsName() const {
    return key_ == "name" || key_ == "op" || absl::StartsWith(key_, "input");
  }

  bool Keep() {
    if (phase_ == "M" && name_ == "process_name" && has_process_) {
      timeline_.processes[event_.process] = std::move(event_.node);
      if (static_cast<int64_t>(timeline_.processes.size()) > limits_.max_operations)
        return Fail("more processes than max_operations");
    }
    if (phase_ != "X") return true;
    std::sort(inputs_of_event_.begin(), inputs_of_event_.end());
    for (auto& [number, input] : inputs_of_event_) event_.inputs.push_back(std::move(input));
    if (!has_process_ || !has_start_)
      return Fail(absl::StrCat("byte ", bytes_.position(), ": an event without a pid or a ts"));
    timeline_.events.push_back(std::move(event_));
    if (const auto count = static_cast<int64_t>(timeline_.events.size());
        count > kMaxEventsPerOperation * limits_.max_operations) {
      return Fail(absl::StrCat(count, " events are above four times the limit max_operations = ",
                               limits_.max_operations));
    }
    return true;
  }

  JsonBytes& bytes_;
  const ProfileLimits& limits_;
  Timeline& timeline_;
  absl::Status status_;
  Place place_ = Place::kTop;
  int ignored_ = 0;  // brackets open of what is passed over
  bool list_alone_ = false;
  bool found_ = false;
  std::string key_;
  std::string phase_;
  std::string name_;
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
  JsonBytes bytes(source, stop);
  Timeline timeline;
  EventHandler handler(bytes, limits, timeline);
  const bool parsed = Json::sax_parse(bytes.begin(), JsonBytes::end(), &handler);
  if (absl::IsResourceExhausted(bytes.status()) && !handler.status().ok()) {
    return ImportFault(kAtRecording,
                       absl::StrCat("byte ", bytes.position(), ": ", bytes.status().message()));
  }
  if (!bytes.status().ok()) return bytes.status();
  if (!parsed) return handler.status();
  if (!handler.found()) return ImportFault(kAtRecording, "it has no traceEvents");
  return timeline;
}

}  // namespace stepcast
