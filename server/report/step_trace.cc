#include "server/report/step_trace.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

using nlohmann::json;

constexpr int kFirstWorker = 1;  // its process
// Objects: the trace, and in it an event.
constexpr int kEventDepth = 2;
constexpr size_t kMaxEventBytes = size_t{64} << 10;

absl::Status Unreadable(const std::string& why) {
  return MakeError(absl::StatusCode::kDataLoss, absl::StrCat("the trace cannot be read: ", why),
                   {.reason = "TRACE_UNREADABLE"});
}

int64_t NanosecondsOf(double microseconds) { return std::llround(microseconds * 1000); }

int64_t IntegerAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<int64_t>() : 0;
}

double NumberAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string TextAt(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

int32_t StepTrace::Texts::IndexOf(const std::string& text) {
  const auto [found, is_new] = indices.try_emplace(text, static_cast<int32_t>(all.size()));
  if (is_new) all.push_back(text);
  return found->second;
}

absl::Status StepTrace::Take(std::string_view piece) {
  for (const char c : piece) {
    if (depth_ >= kEventDepth || (depth_ == kEventDepth - 1 && c == '{' && !in_string_))
      object_ += c;
    if (object_.size() > kMaxEventBytes) return Unreadable("an event is too large");
    if (in_string_) {
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
      continue;
    }
    if (c == '"') in_string_ = true;
    if (c == '{') ++depth_;
    if (c != '}') continue;
    --depth_;
    if (depth_ < 0) return Unreadable("it ends twice");
    if (depth_ == 0) ended_ = true;
    if (depth_ != kEventDepth - 1) continue;
    if (absl::Status status = TakeEvent(); !status.ok()) return status;
    object_.clear();
  }
  return absl::OkStatus();
}

absl::Status StepTrace::TakeEvent() {
  // Most events are of other workers: to parse them all would take most of the time.
  constexpr std::string_view kProcess = "\"pid\":";
  const size_t at = object_.find(kProcess);
  if (at != std::string::npos && std::atoi(object_.c_str() + at + kProcess.size()) != kFirstWorker)
    return absl::OkStatus();
  const json event = json::parse(object_, nullptr, /*allow_exceptions=*/false);
  if (event.is_discarded()) return Unreadable("an event is not JSON");
  if (IntegerAt(event, "pid") != kFirstWorker) return absl::OkStatus();
  const json args = event.value("args", json::object());
  const auto thread = static_cast<int32_t>(IntegerAt(event, "tid"));
  if (TextAt(event, "ph") == "M") {
    if (TextAt(event, "name") == "thread_name") lanes_[thread] = TextAt(args, "name");
    return absl::OkStatus();
  }
  if (TextAt(event, "ph") != "X") return absl::OkStatus();
  // The part of a micro-batch, on a pipeline's device.
  const std::string part = TextAt(args, "part");
  const std::string kind = part.empty() ? TextAt(event, "cat") : part;
  const double start = NumberAt(event, "ts");
  const bool is_step = kind == "step";
  const int64_t bytes = IntegerAt(args, "bytes");
  (is_step ? steps_ : operations_)
      .push_back({.thread = thread,
                  .name = is_step ? 0 : names_.IndexOf(TextAt(event, "name")),
                  .kind = is_step ? 0 : kinds_.IndexOf(kind),
                  .step = static_cast<int32_t>(IntegerAt(args, "step")),
                  .start_ns = NanosecondsOf(start),
                  .end_ns = NanosecondsOf(start + NumberAt(event, "dur")),
                  .size_bytes = bytes > 0 ? bytes : IntegerAt(args, "size_bytes")});
  return absl::OkStatus();
}

absl::StatusOr<StepTimeline> StepTrace::StepNearest(double seconds) const {
  if (!ended_ || depth_ != 0) return Unreadable("it ends too early");
  if (steps_.empty())
    return MakeError(absl::StatusCode::kNotFound, "the trace has no whole step",
                     {.reason = "NO_STEP"});
  const double length_ns = seconds * 1e9;
  const auto distance = [length_ns](const Event& step) {
    return std::abs(static_cast<double>(step.end_ns - step.start_ns) - length_ns);
  };
  const Event& chosen =
      *std::min_element(steps_.begin(), steps_.end(),
                        [&](const Event& a, const Event& b) { return distance(a) < distance(b); });
  StepTimeline timeline{.step = chosen.step,
                        .steps_found = static_cast<int32_t>(steps_.size()),
                        .length_ns = chosen.end_ns - chosen.start_ns,
                        .lanes = {},
                        .names = {},
                        .kinds = kinds_.all,
                        .operations = {}};
  std::map<int32_t, int32_t> lane_of;
  for (const auto& [thread, name] : lanes_) {
    if (thread == chosen.thread || name.empty()) continue;
    lane_of[thread] = static_cast<int32_t>(timeline.lanes.size());
    timeline.lanes.push_back(name);
  }
  std::vector<Event> shown;
  for (const Event& event : operations_) {
    if (event.step == chosen.step && lane_of.contains(event.thread)) shown.push_back(event);
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const Event& a, const Event& b) { return a.start_ns < b.start_ns; });
  if (shown.size() > kMaxShownOperations) {
    timeline.operations_left_out = static_cast<int64_t>(shown.size() - kMaxShownOperations);
    shown.resize(kMaxShownOperations);
  }
  Texts names;
  for (const Event& event : shown) {
    timeline.operations.push_back(
        {.lane = lane_of[event.thread],
         .name = names.IndexOf(names_.all[static_cast<size_t>(event.name)]),
         .kind = event.kind,
         // A pipeline's first devices may begin a step before the last have ended the one before.
         .start_ns = std::max<int64_t>(0, event.start_ns - chosen.start_ns),
         .length_ns = event.end_ns - std::max(event.start_ns, chosen.start_ns),
         .size_bytes = event.size_bytes});
  }
  timeline.names = std::move(names.all);
  return timeline;
}

}  // namespace stepcast::server
