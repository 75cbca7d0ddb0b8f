#include "core/importing/tensorflow/run_metadata_reader.h"

#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/message_text.h"
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

// Of `name = op(inputs)`, perhaps behind a size in brackets, the op; empty: the label is of another
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

}  // namespace stepcast
