#include "core/importing/pytorch/pytorch_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
#include "core/importing/common/json_reader.h"
#include "core/importing/common/recording_import.h"

namespace stepcast {

namespace {

using HostKind = TraceHostEvent::Kind;

constexpr int64_t kMaxTraceRowsPerOperation = 4;
constexpr int kMaxTraceDepth = 64;
constexpr size_t kMaxTraceNameBytes = 128;           // of what is looked at of a name
constexpr int64_t kMostElements = int64_t{1} << 36;  // of a tensor
constexpr size_t kMaxDimensions = 8;                 // of a tensor

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

// "ReluBackward" of "ReluBackward1".
std::string_view WithoutDigit(std::string_view name) {
  if (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name;
}

bool HasPart(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Bytes by c10's names ("Float", "BFloat16") and by those that the profiler gives inputs ("float",
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

// Types by c10's and the profiler's names.
bool IsWholeType(std::string_view type) {
  return IsAny(type, {"int", "Int", "long", "Long", "long int", "short", "Short", "short int",
                      "Byte", "Char", "Bool", "unsigned char", "signed char", "bool"});
}

// A collective by its own name, by its annotation after the backend, or by its call after c10d.
std::optional<Collective> CollectiveNamed(std::string_view name) {
  // Calls that move nothing, or only say that workers are there.
  if (HasPart(name, "barrier") || StartsWithAny(name, {"wait", "init", "abort", "shutdown"}))
    return std::nullopt;
  if (StartsWithAny(name, {"allreduce", "all_reduce"})) return Collective::kAllReduce;
  if (StartsWithAny(name, {"broadcast", "_broadcast"})) return Collective::kBroadcast;
  if (StartsWithAny(name, {"allgather", "all_gather", "_allgather"})) return Collective::kAllGather;
  if (StartsWithAny(name, {"reduce_scatter", "_reduce_scatter"})) return Collective::kReduceScatter;
  return Collective::kUnspecified;
}

class PyTorchReader : public JsonReader {
 public:
  explicit PyTorchReader(const ProfileLimits& limits)
      : JsonReader(kMaxTraceDepth), max_rows_(kMaxTraceRowsPerOperation * limits.max_operations) {}

  absl::StatusOr<PyTorchTrace> ReadAll(ByteSource& source, StopCheck stop) {
    if (absl::Status status = Read(source, stop); !status.ok()) return status;
    if (!found_ && is_execution_trace_) {
      return ImportFault(kAtRecording,
                         "it is an execution trace (ExecutionTraceObserver), which has no times: "
                         "record with torch.profiler.profile and export_chrome_trace");
    }
    if (!found_) return ImportFault(kAtRecording, "it has no traceEvents");
    JoinLaunches();
    Sort();
    return std::move(trace_);
  }

 protected:
  int BeginObject() override {
    if (place() == kTop) return kDocument;
    if (place() == kEvents) {
      event_.Clear();
      return kEvent;
    }
    if (place() == kDevices) trace_.names_devices = true;
    if (place() == kDocument && key() == "distributedInfo") return kDistributedInfo;
    if (place() == kGroups) {
      event_.group = {};
      return kGroup;
    }
    return place() == kEvent && key() == "args" ? kArguments : kPassOver;
  }

  int BeginList() override {
    const bool in_document = place() == kDocument;
    if (place() == kTop || (in_document && key() == "traceEvents")) {
      found_ = true;
      return kEvents;
    }
    if (in_document && key() == "deviceProperties") return kDevices;
    if (place() == kDistributedInfo && key() == "pg_config") return kGroups;
    if (in_document && key() == "nodes") is_execution_trace_ = true;
    if (place() == kArguments && key() == "Input Dims") return kShapes;
    if (place() == kArguments && key() == "Input type") return kTypes;
    // A list of tensors has no shape of its own.
    if (place() != kShapes) return kPassOver;
    if (++event_.shapes == 1) event_.elements = 1;
    return event_.shapes <= kInputs ? kShape : kPassOver;
  }

  void End() override {
    if (place() == kEvent) Keep();
    if (place() == kGroup) PlaceOfGroup();
  }

  void Text(std::string& value) override {
    if (place() == kEvent && key() == "ph") event_.phase = value.size() == 1 ? value[0] : '?';
    if (place() == kEvent && (key() == "ts" || key() == "dur")) TimeInText(value);
    std::string* const kept = KeptText();
    if (kept != nullptr) kept->assign(value, 0, kMaxTraceNameBytes);
    if (place() == kArguments && kept == nullptr) NumberInText(value);
    if (place() == kTypes) {
      if (event_.types == 0) event_.type.assign(value, 0, kMaxTraceNameBytes);
      if (event_.types < kInputs) event_.element_bytes[event_.types] = BytesOfElement(value);
      ++event_.types;
    }
  }

  void TakeKey(const std::string& key, std::string& kept) override {
    kept.assign(key, 0, kMaxTraceNameBytes);
  }

  void Number(double value, std::optional<int64_t> whole) override {
    if (place() == kEvent && (key() == "ts" || key() == "dur")) return Time(value, whole);
    if (!whole) return;
    if (place() == kDistributedInfo && key() == "world_size") trace_.world_size = *whole;
    if (place() == kDistributedInfo && key() == "rank") trace_.rank = *whole;
    if (place() == kGroup && key() == "pg_name") event_.group.name = absl::StrCat(*whole);
    if (place() == kGroup && key() == "pg_size") event_.group.size = *whole;
    // The latest base with which all sums of times are int64.
    constexpr int64_t kLatestBase = 4'000'000'000'000'000'000;
    if (place() == kDocument && key() == "baseTimeNanoseconds")
      trace_.base_ns = std::clamp<int64_t>(*whole, 0, kLatestBase);
    if (place() == kShape) {
      std::vector<int64_t>& shape = event_.dimensions[event_.shapes - 1];
      if (shape.size() <= kMaxDimensions) shape.push_back(*whole);
      if (event_.shapes > 1) return;
      event_.elements = *whole < 0 || (*whole > 0 && event_.elements > kMostElements / *whole)
                            ? kMostElements + 1
                            : event_.elements * *whole;
    }
    if (place() != kArguments) return;
    if (key() == "correlation") {
      event_.correlation = *whole;
      event_.has_correlation = true;
    }
    if (key() == "In msg nelems") event_.collective_elements = *whole;
    if (key() == "Out msg nelems") event_.collective_outputs = *whole;
    if (key() == "Process Group Name") event_.group.name = absl::StrCat(*whole);
    if (key() == "Group size") event_.group.size = *whole;
    if (key() == "Sequence number") event_.sequence = *whole;
    if (key() == "Fwd thread id") event_.forward_thread = *whole;
  }

 private:
  static constexpr size_t kInputs = TensorOperation::kInputs;

  enum Place {
    kDocument = 1,
    kDistributedInfo,
    kGroups,  // of the process
    kGroup,
    kDevices,
    kEvents,
    kEvent,
    kArguments,
    kShapes,  // of an operation's inputs
    kShape,   // of one of the first
    kTypes
  };

  // An event as it is being read.
  struct Event {
    char phase = '?';
    bool has_start = false;
    bool has_correlation = false;
    size_t shapes = 0;
    size_t types = 0;
    int64_t start_ns = 0;
    int64_t length_ns = 0;
    int64_t correlation = 0;
    int64_t elements = -1;  // of the first input
    int64_t collective_elements = -1;
    int64_t collective_outputs = -1;
    int64_t sequence = -1;
    int64_t forward_thread = -1;
    std::array<std::vector<int64_t>, kInputs> dimensions;
    std::array<int16_t, kInputs> element_bytes = {};
    std::string name;
    std::string category;
    std::string type;  // of the first input
    std::string collective;
    std::string collective_type;
    TraceGroup group;

    void Clear() {
      phase = '?';
      has_start = has_correlation = false;
      shapes = types = 0;
      start_ns = length_ns = correlation = 0;
      elements = collective_elements = collective_outputs = sequence = forward_thread = -1;
      group.name.clear();
      group.description.clear();
      group.size = 0;
      for (std::vector<int64_t>& shape : dimensions) shape.clear();
      element_bytes = {};
      for (std::string* text : {&name, &category, &type, &collective, &collective_type})
        text->clear();
    }
  };

  struct Launch {
    int64_t correlation = 0;
    int64_t start_ns = 0;
  };

  // A time in a text, as Ascend's profiler writes them.
  void TimeInText(const std::string& text) {
    int64_t whole = 0;
    double value = 0;
    const bool is_whole = absl::SimpleAtoi(text, &whole);
    if (!absl::SimpleAtod(text, &value) || !std::isfinite(value))
      return FailAtByte(absl::StrCat(AbslView(key()), " is the text ", Quoted(text.substr(0, 64)),
                                     ", which is not a number"));
    Time(value, is_whole && std::abs(value) < 1e16 ? std::optional(whole) : std::nullopt);
  }

  // The place for the text of a key; none: it is not kept.
  std::string* KeptText() {
    if (place() == kEvent && key() == "name") return &event_.name;
    if (place() == kEvent && key() == "cat") return &event_.category;
    if (place() == kGroup && key() == "pg_name") return &event_.group.name;
    if (place() == kGroup && key() == "pg_desc") return &event_.group.description;
    if (place() != kArguments) return nullptr;
    if (key() == "Process Group Name") return &event_.group.name;
    if (key() == "Process Group Description") return &event_.group.description;
    if (key() == "Collective name") return &event_.collective;
    return key() == "dtype" ? &event_.collective_type : nullptr;
  }

  // A number of an event's arguments, likewise.
  void NumberInText(const std::string& text) {
    int64_t whole = 0;
    const bool may_be = !text.empty() && text[0] >= '0' && text[0] <= '9';
    if (may_be && absl::SimpleAtoi(text, &whole)) Number(static_cast<double>(whole), whole);
  }

  void Time(double value, std::optional<int64_t> whole) {
    // The year 2096, and thirteen years before and after it, so that all differences are int64.
    constexpr double kLast = 4e15;
    constexpr double kLongestMicros = 4e14;
    const bool is_time = key() == "ts" ? value >= -kLongestMicros && value <= kLast
                                       : std::abs(value) <= kLongestMicros;
    if (!is_time) return FailAtByte(absl::StrCat(value, " is not a time"));
    // A whole number stays exact; a double has not all the nanoseconds of a date.
    const double floor = std::floor(value);
    const int64_t ns =
        whole ? *whole * 1000
              : static_cast<int64_t>(floor) * 1000 + std::llround((value - floor) * 1000);
    (key() == "ts" ? event_.start_ns : event_.length_ns) = ns;
    event_.has_start = event_.has_start || key() == "ts";
  }

  void Keep() {
    if (event_.phase != 'X') return;
    ++trace_.events;
    if (!event_.has_start) return FailAtByte("an event without a ts");
    const std::string_view category = event_.category;
    trace_.has_categories = trace_.has_categories || !category.empty();
    event_.length_ns = std::max<int64_t>(event_.length_ns, 0);
    if (IsAny(category, {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}))
      return KeepDeviceWork();
    if (HasPart(category, "untime") || category == "cuda_driver") return KeepApiCall();
    if (IsAny(category, {"cpu_op", "user_annotation", "Operator"})) KeepHostEvent();
  }

  void KeepDeviceWork() {
    if (!event_.has_correlation) return;
    trace_.device.push_back(
        {.launch_ns = event_.correlation,  // until JoinLaunches
         .start_ns = event_.start_ns,
         .end_ns = event_.start_ns + event_.length_ns,
         .group = PlaceOfGroup(),
         .is_collective = !event_.collective.empty() || StartsWithAny(event_.name, {"nccl"})});
    CountRow();
  }

  void KeepApiCall() {
    const std::string_view name = event_.name;
    if (HasPart(name, "Synchronize")) return KeepHost(HostKind::kSynchronization);
    const bool launches = HasPart(name, "Launch") || HasPart(name, "Memcpy") ||
                          HasPart(name, "Memset") || HasPart(name, "memcpy") ||
                          HasPart(name, "memset");
    if (!launches || !event_.has_correlation) return;
    launches_.push_back({.correlation = event_.correlation, .start_ns = event_.start_ns});
    CountRow();
  }

  void KeepHostEvent() {
    constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
    constexpr std::string_view kGradient = "torch::autograd::AccumulateGrad";
    const std::string_view name = event_.name;
    if (IsAny(name, {"aten::add", "aten::add_"}) && event_.sequence < 0) return KeepAddition();
    if (StartsWithAny(name, {"aten::"})) return KeepTensors();
    if (IsFunction()) KeepTensors();
    if (name == kGradient) return KeepHost(HostKind::kGradient);
    if (StartsWithAny(name, {kEngine})) {
      const bool is_gradient = name.substr(kEngine.size()) == kGradient;
      return is_gradient ? KeepHost(HostKind::kGradientScope) : KeepBackward();
    }
    if (event_.sequence >= 0 && event_.category == "cpu_op" && HasPart(name, "Backward")) {
      event_.elements = event_.sequence;
      return KeepHost(HostKind::kFunction);
    }
    // Backward functions of 2021, when the engine had no event of its own.
    if (event_.category == "Operator" &&
        (EndsWith(name, "Backward") || EndsWith(WithoutDigit(name), "Backward")))
      return KeepBackward();
    if (StartsWithAny(name, {"ProfilerStep#"})) {
      if (!absl::SimpleAtoi(AbslView(name.substr(13)), &event_.elements)) event_.elements = -1;
      return KeepHost(HostKind::kStep);
    }
    if (StartsWithAny(name, {"Optimizer.step#"})) return KeepHost(HostKind::kOptimizer);
    if (StartsWithAny(name, {"enumerate(DataLoader)#"})) return KeepHost(HostKind::kDataLoading);
    if (HasPart(name, "ddp.reducer::copy_bucket_to_grad"))
      return KeepHost(HostKind::kCopyFromBucket);
    if (name == "record_param_comms") {
      event_.elements = std::max(event_.collective_elements, event_.collective_outputs);
      if (event_.elements > kMostElements)
        return FailAtByte(absl::StrCat("msg nelems of ", event_.elements, " are no buffer's"));
      event_.type = event_.collective_type;
      return KeepCollective(HostKind::kCollective, event_.collective);
    }
    if (StartsWithAny(name, {"c10d::"}))
      return KeepCollective(HostKind::kCollectiveCall, name.substr(6));
    if (name == "DistributedDataParallel.forward") return KeepHost(HostKind::kForwardPass);
    if (StartsWithAny(name, {"gloo:", "nccl:", "mpi:", "ucc:"})) {
      const std::string_view run = name.substr(name.find(':') + 1);
      const bool is_send = StartsWithAny(run, {"send"});
      if (!is_send && !StartsWithAny(run, {"recv"}))
        return KeepCollective(HostKind::kCollectiveRun, run);
      if (!std::exchange(trace_.has_transfers, true) && trace_.other_collective.empty())
        trace_.other_collective = run;
      KeepHost(is_send ? HostKind::kSend : HostKind::kReceive);
    }
  }

  void KeepAddition() {
    if (event_.shapes > 1 && event_.elements > 1 && event_.dimensions[0] == event_.dimensions[1])
      KeepHost(HostKind::kAddition);
  }

  void KeepBackward() {
    event_.elements = event_.sequence;
    KeepHost(HostKind::kBackward);
  }

  // True for a user's torch.autograd.Function, or one of a library, in the forward pass.
  bool IsFunction() const {
    const std::string_view name = event_.name;
    return event_.category != "user_annotation" && event_.sequence >= 0 &&
           event_.forward_thread <= 0 && event_.shapes > 0 && !HasPart(name, "Backward") &&
           !StartsWithAny(name, {"autograd::", "torch::autograd::", "c10d::", "nccl:", "gloo:"});
  }

  // Operations outside of autograd have no sequence number.
  void KeepTensors() {
    constexpr size_t kMostFunctions = 4096;
    TensorOperations& tensors = trace_.tensors;
    if (event_.sequence < 0 || tensors.are_too_many) return;
    const std::optional<uint8_t> rule = RuleOfTensorOperation(event_.name);
    int16_t function = -1;
    if (!rule) {
      if (event_.shapes == 0 || tensors.functions.size() > kMostFunctions) return;
      const auto [place, is_new] =
          functions_.try_emplace(event_.name, static_cast<int16_t>(tensors.functions.size()));
      if (is_new) tensors.functions.push_back(event_.name);
      function = place->second;
    }
    if (static_cast<int64_t>(tensors.operations.size()) >= max_rows_) {
      tensors = {.are_too_many = true};
      shapes_.clear();
      functions_.clear();
      return;
    }
    TensorOperation operation{.start_ns = event_.start_ns,
                              .end_ns = event_.start_ns + event_.length_ns,
                              .sequence = event_.sequence,
                              .element_bytes = event_.element_bytes,
                              .rule = rule.value_or(kUnknownTensorRule),
                              .function = function};
    for (size_t i = 0; i < kInputs; ++i) {
      const std::vector<int64_t>& shape = event_.dimensions[i];
      operation.shapes[i] =
          i < event_.shapes && shape.size() <= kMaxDimensions ? PlaceOf(shape) : -1;
    }
    tensors.operations.push_back(operation);
  }

  int32_t PlaceOf(const std::vector<int64_t>& shape) {
    const auto [place, is_new] =
        shapes_.try_emplace(shape, static_cast<int32_t>(trace_.tensors.shapes.size()));
    if (is_new) trace_.tensors.shapes.push_back(shape);
    return place->second;
  }

  void KeepCollective(HostKind kind, std::string_view name) {
    const std::optional<Collective> collective = CollectiveNamed(name);
    if (name.empty() || !collective) return;
    const bool is_of_replicas =
        *collective == Collective::kAllReduce || *collective == Collective::kBroadcast;
    if (!is_of_replicas && trace_.other_collective.empty()) trace_.other_collective = name;
    KeepHost(kind, *collective);
  }

  void KeepHost(HostKind kind, Collective collective = Collective::kUnspecified) {
    int64_t size = event_.group.size;
    if (kind == HostKind::kGradient)
      size = event_.dimensions[0].empty() ? 0 : event_.dimensions[0].front();
    trace_.host.push_back(
        {.start_ns = event_.start_ns,
         .end_ns = event_.start_ns + event_.length_ns,
         .number = event_.elements,
         .group_size = static_cast<int32_t>(std::clamp<int64_t>(size, 0, INT32_MAX)),
         .group = kind == HostKind::kCollective ? PlaceOfGroup() : -1,
         .element_bytes = BytesOfElement(event_.type),
         .is_whole = IsWholeType(event_.type),
         .kind = kind,
         .collective = collective});
    CountRow();
  }

  // Jobs have few. -1: not recorded.
  int32_t PlaceOfGroup() {
    constexpr size_t kMostGroups = 256;
    if (event_.group.name.empty()) return -1;
    std::vector<TraceGroup>& groups = trace_.groups;
    auto found = std::find_if(groups.begin(), groups.end(), [this](const TraceGroup& group) {
      return group.name == event_.group.name;
    });
    if (found == groups.end() && groups.size() == kMostGroups) return -1;
    if (found == groups.end()) found = groups.insert(found, event_.group);
    if (found->description.empty()) found->description = event_.group.description;
    if (found->size <= 0) found->size = event_.group.size;
    return static_cast<int32_t>(found - groups.begin());
  }

  void CountRow() {
    if (++rows_ > max_rows_) {
      Fail(
          "more than four times max_operations events of steps, gradients and kernels: record "
          "fewer steps");
    }
  }

  void JoinLaunches();
  void Sort();

  const int64_t max_rows_;
  PyTorchTrace trace_;
  bool found_ = false;
  bool is_execution_trace_ = false;
  Event event_;
  int64_t rows_ = 0;
  std::vector<Launch> launches_;
  absl::flat_hash_map<std::vector<int64_t>, int32_t> shapes_;  // places in trace_.tensors
  absl::flat_hash_map<std::string, int16_t> functions_;        // likewise
};

// Work and its launch share their correlation.
void PyTorchReader::JoinLaunches() {
  std::stable_sort(launches_.begin(), launches_.end(),
                   [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
  for (TraceDeviceWork& work : trace_.device) {
    const auto launch = std::lower_bound(
        launches_.begin(), launches_.end(), work.launch_ns,
        [](const Launch& a, int64_t correlation) { return a.correlation < correlation; });
    const bool is_known = launch != launches_.end() && launch->correlation == work.launch_ns;
    work.launch_ns = is_known ? launch->start_ns : -1;
  }
}

void PyTorchReader::Sort() {
  std::stable_sort(trace_.device.begin(), trace_.device.end(),
                   [](const TraceDeviceWork& a, const TraceDeviceWork& b) {
                     return std::pair(a.launch_ns, a.start_ns) < std::pair(b.launch_ns, b.start_ns);
                   });
  const auto is_before = [](const auto& a, const auto& b) {
    return std::pair(a.start_ns, -a.end_ns) < std::pair(b.start_ns, -b.end_ns);
  };
  std::stable_sort(trace_.tensors.operations.begin(), trace_.tensors.operations.end(), is_before);
  std::stable_sort(trace_.host.begin(), trace_.host.end(), is_before);
}

}  // namespace

absl::StatusOr<PyTorchTrace> ReadPyTorchTrace(ByteSource& source, const ProfileLimits& limits,
                                              StopCheck stop) {
  return PyTorchReader(limits).ReadAll(source, stop);
}

}  // namespace stepcast
