#include "core/importing/tensorflow/tensorflow_readers.h"

#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/common/json_reader.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/tensorflow/recorded_rows.h"
#include "core/importing/tensorflow/tensorflow_graph.h"
#include "tensorflow/run_metadata.pb.h"

namespace stepcast {

namespace {

constexpr int64_t kNsPerMicro = 1000;
// Beyond any clock; what is larger is cut so that no product overflows, and refused later.
constexpr int64_t kFarMicros = int64_t{1} << 52;

int64_t Micros(int64_t micros) { return std::clamp(micros, -kFarMicros, kFarMicros) * kNsPerMicro; }
int64_t Nanos(int64_t nanos) {
  return std::clamp(nanos, -kFarMicros * kNsPerMicro, kFarMicros * kNsPerMicro);
}

struct Times {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// From the start of a node's scheduling to its very end, as TensorFlow's own timeline shows it.
// Nanoseconds are more exact where they are there.
Times TimesOf(const tensorflow::NodeExecStats& row) {
  if (row.all_start_nanos() > 0) {
    const int64_t length =
        row.all_end_rel_nanos() != 0 ? row.all_end_rel_nanos() : row.op_end_rel_nanos();
    return {.start_ns = Nanos(row.all_start_nanos()),
            .end_ns = Nanos(row.all_start_nanos()) + Nanos(length)};
  }
  const int64_t length =
      row.all_end_rel_micros() != 0 ? row.all_end_rel_micros() : row.op_end_rel_micros();
  return {.start_ns = Micros(row.all_start_micros()),
          .end_ns = Micros(row.all_start_micros()) + Micros(length)};
}

// The node that launched a kernel: of `retval detail@@name:op#annotation` or, without a label of
// that form, of the row's name `name:op`.
std::string_view LauncherOf(const tensorflow::NodeExecStats& row) {
  std::string_view name = row.node_name();
  const std::string_view label = row.timeline_label();
  const size_t start = label.find("@@");
  const size_t end = label.find('#', start == std::string_view::npos ? 0 : start);
  if (start != std::string_view::npos && end != std::string_view::npos && start + 2 < end)
    name = label.substr(start + 2, end - start - 2);
  return name.substr(0, name.find(':'));
}

// The op of `name = op(inputs)`, perhaps behind a size in brackets; empty: the label is of another
// form.
std::string_view OpOf(std::string_view label) {
  const size_t equals = label.find(" = ");
  if (equals == std::string_view::npos) return {};
  const std::string_view rest = label.substr(equals + 3);
  return rest.substr(0, rest.find('('));
}

class Reader {
 public:
  Reader(WireReader& wire, RecordedRows& rows, TensorflowGraph& graph, PassedOver& passed_over)
      : wire_(wire), rows_(rows), graph_(graph), passed_over_(passed_over) {}

  absl::Status Read() {
    return wire_.ReadAll([this](uint32_t tag) -> absl::Status {
      if (tag == Nested(tensorflow::RunMetadata::kStepStatsFieldNumber)) return ReadStep();
      if (tag == Nested(tensorflow::RunMetadata::kPartitionGraphsFieldNumber))
        return ReadNestedGraph(wire_, graph_);
      return wire_.Skip(tag);
    });
  }

 private:
  absl::Status ReadStep() {
    if (absl::Status status = rows_.BeginStep(); !status.ok()) return status;
    counted_ = false;
    absl::Status read = wire_.ReadNested([this](uint32_t tag) -> absl::Status {
      if (tag != Nested(tensorflow::StepStats::kDevStatsFieldNumber)) return wire_.Skip(tag);
      device_ = -1;
      return wire_.ReadNested([this](uint32_t field) { return ReadDevice(field); });
    });
    if (!read.ok()) return read;
    if (counted_) return rows_.EndStep();
    ++passed_over_.empty_steps;
    return absl::OkStatus();
  }

  absl::Status ReadDevice(uint32_t tag) {
    if (tag == Nested(tensorflow::DeviceStepStats::kDeviceFieldNumber)) {
      if (absl::Status status = wire_.ReadBytes(text_); !status.ok()) return status;
      const absl::StatusOr<int32_t> device = rows_.Device(text_);
      if (device.ok()) device_ = *device;
      return device.status();
    }
    if (tag != Nested(tensorflow::DeviceStepStats::kNodeStatsFieldNumber)) return wire_.Skip(tag);
    if (device_ < 0) return wire_.Fail("rows of a device before its name");
    if (absl::Status status = wire_.ReadMessage(row_); !status.ok()) return status;
    return AddRow();
  }

  absl::Status AddRow() {
    const TensorflowDevice& device = rows_.devices()[static_cast<size_t>(device_)].device;
    if (device.rows == DeviceRows::kCopies) {
      ++passed_over_.copy_rows;
      return absl::OkStatus();
    }
    if (device.rows == DeviceRows::kKernels) return AddNode(LauncherOf(row_));
    if (row_.node_name() == "RecvTensor" || row_.node_name() == "RecvBuf") return AddTransfer();
    if (device.role == DeviceRole::kOther) {
      ++passed_over_.other_job_rows;
      return absl::OkStatus();
    }
    const TensorflowGraph::Kind kind = TensorflowGraph::KindOf(OpOf(row_.timeline_label()));
    if (kind == TensorflowGraph::Kind::kSend || kind == TensorflowGraph::Kind::kReceive) {
      ++passed_over_.transfer_nodes;
      return absl::OkStatus();
    }
    counted_ = true;
    return AddNode(row_.node_name());
  }

  absl::Status AddNode(std::string_view name) {
    const absl::StatusOr<int32_t> node = rows_.Node(name, device_);
    if (!node.ok()) return node.status();
    const Times times = TimesOf(row_);
    return rows_.AddRow(*node, times.start_ns, times.end_ns);
  }

  absl::Status AddTransfer() {
    const std::optional<TransferLabel> label = ParseTransferLabel(row_.timeline_label());
    if (!label)
      return wire_.Fail(absl::StrCat("a received tensor whose label is ",
                                     Quoted(row_.timeline_label()),
                                     ", not `tensor from device to device`"));
    const absl::StatusOr<int32_t> source = rows_.Device(label->source);
    const absl::StatusOr<int32_t> destination = rows_.Device(label->destination);
    if (!source.ok() || !destination.ok())
      return source.ok() ? destination.status() : source.status();
    const DeviceRole from = rows_.devices()[static_cast<size_t>(*source)].device.role;
    const DeviceRole to = rows_.devices()[static_cast<size_t>(*destination)].device.role;
    if (from == to || from == DeviceRole::kOther || to == DeviceRole::kOther) {
      ++passed_over_.other_transfers;
      return absl::OkStatus();
    }
    const absl::StatusOr<int32_t> node = rows_.Node(label->tensor, *destination, *source);
    if (!node.ok()) return node.status();
    SetSize(*node, *label);
    counted_ = true;
    const Times times = TimesOf(row_);
    return rows_.AddRow(*node, times.start_ns, times.end_ns);
  }

  void SetSize(int32_t node, const TransferLabel& label) {
    int64_t bytes = 0;
    bool said = false;
    for (const tensorflow::NodeOutput& output : row_.output()) {
      if (!output.tensor_description().has_allocation_description()) continue;
      const auto& allocation = output.tensor_description().allocation_description();
      bytes = std::max({bytes, allocation.requested_bytes(),
                        allocation.requested_bytes() > 0 ? 0 : allocation.allocated_bytes()});
      said = true;
    }
    // A tensor of no bytes is written as an allocation without any fields, so it counts as said.
    if (said) return rows_.SetSize(node, bytes, /*rounded=*/false);
    if (label.bytes) rows_.SetSize(node, *label.bytes, label.rounded);
  }

  WireReader& wire_;
  RecordedRows& rows_;
  TensorflowGraph& graph_;
  PassedOver& passed_over_;
  int32_t device_ = -1;
  bool counted_ = false;  // the step has a row that counts
  std::string text_;
  tensorflow::NodeExecStats row_;
};

}  // namespace

absl::Status ReadRunMetadata(WireReader& reader, RecordedRows& rows, TensorflowGraph& graph,
                             PassedOver& passed_over) {
  return Reader(reader, rows, graph, passed_over).Read();
}

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
