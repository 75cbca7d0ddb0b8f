#include "core/importing/pytorch_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

#include "core/base/quoted.h"
#include "core/importing/json_bytes.h"
#include "core/importing/recording_options.h"
#include "core/importing/units.h"

namespace stepcast {

namespace {

using Json = nlohmann::json;
using HostKind = TraceHostEvent::Kind;

constexpr int64_t kMaxTraceRowsPerOperation = 4;
constexpr int kMaxTraceDepth = 64;
constexpr size_t kMaxTraceNameBytes = 128;  // of what is looked at of a name
constexpr int64_t kMostElements = int64_t{1} << 44;

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(), [text](std::string_view start) {
    return text.substr(0, start.size()) == start;
  });
}

bool IsAny(std::string_view text, std::initializer_list<std::string_view> others) {
  return std::find(others.begin(), others.end(), text) != others.end();
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool HasPart(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Of c10's names ("Float", "BFloat16") and of those that the profiler gives inputs ("float",
// "c10::BFloat16", "long int").
int16_t BytesOfElement(std::string_view type) {
  if (type.substr(0, 5) == "c10::") type.remove_prefix(5);
  if (IsAny(type, {"float", "Float", "int", "Int", "ComplexHalf"})) return 4;
  if (IsAny(type,
            {"double", "Double", "long", "Long", "long int", "ComplexFloat", "complex<float>"})) {
    return 8;
  }
  if (IsAny(type, {"BFloat16", "Half", "short", "Short", "short int"})) return 2;
  if (IsAny(type, {"complex<double>", "ComplexDouble"})) return 16;
  const bool is_byte =
      IsAny(type, {"Byte", "Char", "Bool", "unsigned char", "signed char", "bool"});
  return is_byte || StartsWithAny(type, {"Float8"}) ? 1 : 0;
}

// Of a collective's own name, of its annotation after the backend, and of its call after c10d.
std::optional<Collective> CollectiveNamed(std::string_view name) {
  // What moves nothing, or only says that workers are there.
  if (HasPart(name, "barrier") || StartsWithAny(name, {"wait", "init", "abort", "shutdown"}))
    return std::nullopt;
  if (StartsWithAny(name, {"allreduce", "all_reduce"})) return Collective::kAllReduce;
  if (StartsWithAny(name, {"broadcast", "_broadcast"})) return Collective::kBroadcast;
  return Collective::kUnspecified;
}

// The parser's event handler. A function that returns false ends the parsing.
class PyTorchTraceHandler {
 public:
  PyTorchTraceHandler(JsonBytes& bytes, const ProfileLimits& limits, PyTorchTrace& trace)
      : bytes_(bytes),
        max_rows_(kMaxTraceRowsPerOperation * limits.max_operations),
        trace_(trace) {}

  const absl::Status& status() const { return status_; }
  bool found() const { return found_; }
  bool is_execution_trace() const { return is_execution_trace_; }

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
    if (place_ == Place::kEvent) {
      if (key_ == "ph") event_.phase = value.size() == 1 ? value[0] : '?';
      if (key_ == "name") event_.name.assign(value, 0, kMaxTraceNameBytes);
      if (key_ == "cat") event_.category.assign(value, 0, kMaxTraceNameBytes);
    } else if (place_ == Place::kArguments && key_ == "Collective name") {
      event_.collective.assign(value, 0, kMaxTraceNameBytes);
    } else if (place_ == Place::kArguments && key_ == "dtype") {
      event_.collective_type.assign(value, 0, kMaxTraceNameBytes);
    } else if (place_ == Place::kTypes && event_.types++ == 0) {
      event_.type.assign(value, 0, kMaxTraceNameBytes);
    }
    return true;
  }

  bool key(std::string& value) {
    bytes_.EndToken();
    if (ignored_ == 0) key_.assign(value, 0, kMaxTraceNameBytes);
    return true;
  }

  bool start_object(size_t) {
    bytes_.EndToken();
    if (ignored_ > 0) return Ignore();
    if (place_ == Place::kTop) return Enter(Place::kDocument);
    if (place_ == Place::kEvents) {
      event_.Clear();
      return Enter(Place::kEvent);
    }
    if (place_ == Place::kDevices) trace_.names_devices = true;
    if (place_ == Place::kDocument && key_ == "distributedInfo")
      return Enter(Place::kDistributedInfo);
    return place_ == Place::kEvent && key_ == "args" ? Enter(Place::kArguments) : Ignore();
  }

  bool start_array(size_t) {
    bytes_.EndToken();
    if (ignored_ > 0) return Ignore();
    if (place_ == Place::kTop) list_alone_ = true;
    const bool in_document = place_ == Place::kDocument;
    if (list_alone_ && place_ == Place::kTop) return EnterEvents();
    if (in_document && key_ == "traceEvents") return EnterEvents();
    if (in_document && key_ == "deviceProperties") return Enter(Place::kDevices);
    if (in_document && key_ == "nodes") is_execution_trace_ = true;
    if (place_ == Place::kArguments && key_ == "Input Dims") return Enter(Place::kShapes);
    if (place_ == Place::kArguments && key_ == "Input type") return Enter(Place::kTypes);
    if (place_ == Place::kShapes && ++event_.shapes == 1) {
      event_.elements = 1;
      return Enter(Place::kShape);
    }
    return Ignore();
  }

  bool end_object() { return Leave(); }
  bool end_array() { return Leave(); }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) {
    return Fail(absl::StrCat("byte ", bytes_.position(), ": no JSON, or one that is cut short"));
  }
  // NOLINTEND(readability-identifier-naming)

  void Finish();

 private:
  enum class Place {
    kTop,
    kDocument,
    kDistributedInfo,
    kDevices,
    kEvents,
    kEvent,
    kArguments,
    kShapes,  // of an operation's inputs
    kShape,   // of the first one
    kTypes
  };

  // An event as it is being read.
  struct Event {
    char phase = '?';
    bool has_start = false;
    bool has_correlation = false;
    int32_t shapes = 0;
    int32_t types = 0;
    int64_t start_ns = 0;
    int64_t length_ns = 0;
    int64_t correlation = 0;
    int64_t elements = -1;  // of the first input
    int64_t collective_elements = -1;
    int64_t group_size = 0;
    std::string name;
    std::string category;
    std::string type;  // of the first input
    std::string collective;
    std::string collective_type;

    void Clear() {
      phase = '?';
      has_start = has_correlation = false;
      shapes = types = 0;
      start_ns = length_ns = correlation = group_size = 0;
      elements = collective_elements = -1;
      for (std::string* text : {&name, &category, &type, &collective, &collective_type})
        text->clear();
    }
  };

  struct Launch {
    int64_t correlation = 0;
    int64_t start_ns = 0;
  };

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

  bool EnterEvents() {
    found_ = true;
    return Enter(Place::kEvents);
  }

  bool Ignore() {
    return ++ignored_ <= kMaxTraceDepth ||
           Fail(absl::StrCat("byte ", bytes_.position(), ": nested more than ", kMaxTraceDepth,
                             " deep"));
  }

  bool Leave() {
    bytes_.EndToken();
    if (ignored_ > 0) {
      --ignored_;
      return true;
    }
    switch (place_) {
      case Place::kShape:
        return Enter(Place::kShapes);
      case Place::kShapes:
      case Place::kTypes:
        return Enter(Place::kArguments);
      case Place::kArguments:
        return Enter(Place::kEvent);
      case Place::kEvent:
        return Enter(Place::kEvents) && Keep();
      case Place::kDistributedInfo:
      case Place::kDevices:
        return Enter(Place::kDocument);
      case Place::kEvents:
        return Enter(list_alone_ ? Place::kTop : Place::kDocument);
      case Place::kDocument:
      case Place::kTop:
        break;
    }
    return Enter(Place::kTop);
  }

  bool Number(double value, std::optional<int64_t> whole) {
    bytes_.EndToken();
    if (ignored_ > 0) return true;
    if (place_ == Place::kEvent && (key_ == "ts" || key_ == "dur")) return Time(value, whole);
    if (!whole) return true;
    if (place_ == Place::kDistributedInfo && key_ == "world_size") trace_.world_size = *whole;
    if (place_ == Place::kShape) {
      event_.elements = *whole < 0 || (*whole > 0 && event_.elements > kMostElements / *whole)
                            ? kMostElements + 1
                            : event_.elements * *whole;
    }
    if (place_ != Place::kArguments) return true;
    if (key_ == "correlation") {
      event_.correlation = *whole;
      event_.has_correlation = true;
    }
    if (key_ == "In msg nelems") event_.collective_elements = *whole;
    if (key_ == "Group size") event_.group_size = *whole;
    return true;
  }

  bool Time(double value, std::optional<int64_t> whole) {
    // The year 2096, and thirteen years before and after it, so that all differences are int64.
    constexpr double kLast = 4e15;
    constexpr double kLongestMicros = 4e14;
    const bool is_time = key_ == "ts" ? value >= -kLongestMicros && value <= kLast
                                      : std::abs(value) <= kLongestMicros;
    if (!is_time) return Fail(absl::StrCat("byte ", bytes_.position(), ": ", value, " is no time"));
    // What is whole stays exact; a double has not all the nanoseconds of a date.
    const double floor = std::floor(value);
    const int64_t ns =
        whole ? *whole * 1000
              : static_cast<int64_t>(floor) * 1000 + std::llround((value - floor) * 1000);
    (key_ == "ts" ? event_.start_ns : event_.length_ns) = ns;
    event_.has_start = event_.has_start || key_ == "ts";
    return true;
  }

  bool Keep() {
    if (event_.phase != 'X') return true;
    ++trace_.events;
    if (!event_.has_start)
      return Fail(absl::StrCat("byte ", bytes_.position(), ": an event without a ts"));
    const std::string_view category = event_.category;
    trace_.has_categories = trace_.has_categories || !category.empty();
    event_.length_ns = std::max<int64_t>(event_.length_ns, 0);
    if (IsAny(category, {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}))
      return KeepDeviceWork();
    if (HasPart(category, "untime") || category == "cuda_driver") return KeepApiCall();
    if (IsAny(category, {"cpu_op", "user_annotation", "Operator"})) return KeepHostEvent();
    return true;
  }

  bool KeepDeviceWork() {
    if (!event_.has_correlation) return true;
    trace_.device.push_back(
        {.launch_ns = event_.correlation,  // until Finish
         .start_ns = event_.start_ns,
         .end_ns = event_.start_ns + event_.length_ns,
         .is_collective = !event_.collective.empty() || StartsWithAny(event_.name, {"nccl"})});
    return CountRow();
  }

  bool KeepApiCall() {
    const std::string_view name = event_.name;
    if (HasPart(name, "Synchronize")) return KeepHost(HostKind::kSynchronization);
    const bool launches = HasPart(name, "Launch") || HasPart(name, "Memcpy") ||
                          HasPart(name, "Memset") || HasPart(name, "memcpy") ||
                          HasPart(name, "memset");
    if (!launches || !event_.has_correlation) return true;
    launches_.push_back({.correlation = event_.correlation, .start_ns = event_.start_ns});
    return CountRow();
  }

  bool KeepHostEvent() {
    constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
    constexpr std::string_view kGradient = "torch::autograd::AccumulateGrad";
    const std::string_view name = event_.name;
    if (name == kGradient) return KeepHost(HostKind::kGradient);
    if (StartsWithAny(name, {kEngine})) {
      const bool is_gradient = name.substr(kEngine.size()) == kGradient;
      return KeepHost(is_gradient ? HostKind::kGradientScope : HostKind::kBackward);
    }
    // Of 2021, when the engine had no event of its own.
    if (event_.category == "Operator" &&
        (EndsWith(name, "Backward") || EndsWith(name, "Backward0")))
      return KeepHost(HostKind::kBackward);
    if (StartsWithAny(name, {"ProfilerStep#"})) {
      if (!absl::SimpleAtoi(AbslView(name.substr(13)), &event_.elements)) event_.elements = -1;
      return KeepHost(HostKind::kStep);
    }
    if (StartsWithAny(name, {"Optimizer.step#"})) return KeepHost(HostKind::kOptimizer);
    if (HasPart(name, "ddp.reducer::copy_bucket_to_grad"))
      return KeepHost(HostKind::kCopyFromBucket);
    if (name == "record_param_comms") {
      event_.elements = event_.collective_elements;
      event_.type = event_.collective_type;
      return KeepCollective(HostKind::kCollective, event_.collective);
    }
    if (StartsWithAny(name, {"c10d::"}))
      return KeepCollective(HostKind::kCollectiveCall, name.substr(6));
    if (StartsWithAny(name, {"gloo:", "nccl:", "mpi:", "ucc:"}))
      return KeepCollective(HostKind::kCollectiveRun, name.substr(name.find(':') + 1));
    return true;
  }

  bool KeepCollective(HostKind kind, std::string_view name) {
    const std::optional<Collective> collective = CollectiveNamed(name);
    if (name.empty() || !collective) return true;
    if (*collective == Collective::kUnspecified && trace_.other_collective.empty())
      trace_.other_collective = name;
    return KeepHost(kind, *collective);
  }

  bool KeepHost(HostKind kind, Collective collective = Collective::kUnspecified) {
    trace_.host.push_back(
        {.start_ns = event_.start_ns,
         .end_ns = event_.start_ns + event_.length_ns,
         .number = event_.elements,
         .group_size = static_cast<int32_t>(std::clamp<int64_t>(event_.group_size, 0, INT32_MAX)),
         .element_bytes = BytesOfElement(event_.type),
         .kind = kind,
         .collective = collective});
    return CountRow();
  }

  bool CountRow() {
    return ++rows_ <= max_rows_ ||
           Fail(absl::StrCat("more than four times max_operations events of steps, gradients and "
                             "kernels: record fewer steps"));
  }

  JsonBytes& bytes_;
  const int64_t max_rows_;
  PyTorchTrace& trace_;
  absl::Status status_;
  Place place_ = Place::kTop;
  int ignored_ = 0;  // brackets open of what is passed over
  bool list_alone_ = false;
  bool found_ = false;
  bool is_execution_trace_ = false;
  std::string key_;
  Event event_;
  int64_t rows_ = 0;
  std::vector<Launch> launches_;
};

// Work and its launch share their correlation.
void PyTorchTraceHandler::Finish() {
  std::stable_sort(launches_.begin(), launches_.end(),
                   [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
  for (TraceDeviceWork& work : trace_.device) {
    const auto launch = std::lower_bound(
        launches_.begin(), launches_.end(), work.launch_ns,
        [](const Launch& a, int64_t correlation) { return a.correlation < correlation; });
    const bool is_known = launch != launches_.end() && launch->correlation == work.launch_ns;
    work.launch_ns = is_known ? launch->start_ns : -1;
  }
  std::stable_sort(trace_.device.begin(), trace_.device.end(),
                   [](const TraceDeviceWork& a, const TraceDeviceWork& b) {
                     return std::pair(a.launch_ns, a.start_ns) < std::pair(b.launch_ns, b.start_ns);
                   });
  std::stable_sort(trace_.host.begin(), trace_.host.end(),
                   [](const TraceHostEvent& a, const TraceHostEvent& b) {
                     return std::pair(a.start_ns, -a.end_ns) < std::pair(b.start_ns, -b.end_ns);
                   });
}

}  // namespace

absl::StatusOr<PyTorchTrace> ReadPyTorchTrace(ByteSource& source, const ProfileLimits& limits,
                                              StopCheck stop) {
  JsonBytes bytes(source, stop);
  PyTorchTrace trace;
  PyTorchTraceHandler handler(bytes, limits, trace);
  const bool parsed = Json::sax_parse(bytes.begin(), JsonBytes::end(), &handler);
  if (absl::IsResourceExhausted(bytes.status()) && !handler.status().ok()) {
    return ImportFault(kAtRecording,
                       absl::StrCat("byte ", bytes.position(), ": ", bytes.status().message()));
  }
  if (!bytes.status().ok()) return bytes.status();
  if (!parsed) return handler.status();
  if (!handler.found() && handler.is_execution_trace()) {
    return ImportFault(kAtRecording,
                       "it is an execution trace (ExecutionTraceObserver), which has no times: "
                       "record with torch.profiler.profile and export_chrome_trace");
  }
  if (!handler.found()) return ImportFault(kAtRecording, "it has no traceEvents");
  handler.Finish();
  return trace;
}

}  // namespace stepcast
