#include "tests/support/run_metadata_writer.h"

#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "tensorflow/graph.pb.h"
#include "tensorflow/run_metadata.pb.h"

namespace stepcast::testing {

namespace {

constexpr double kMebibyte = 1 << 20;
constexpr int32_t kFloat = 1;
// Fields that nothing here declares, serialised: a row's allocator use (6) and thread (10), and a
// recording's cost graph (2).
constexpr char kRowExtras[] =
    "\x32\x05\x0a\x03"
    "cpu"
    "\x50\x07";
constexpr char kCostGraph[] = "\x12\x04\x0a\x02\x0a\x00";

std::string WorkerDevice(const RunMetadataForm& form) {
  return absl::StrCat("/job:worker/replica:0/task:", form.worker,
                      form.gpu ? "/device:GPU:0" : "/device:CPU:0");
}
std::string ServerDevice(int32_t server) {
  return absl::StrCat("/job:ps/replica:0/task:", server, "/device:CPU:0");
}

bool OnServer(const Operation& operation) {
  return operation.resource == Resource::kParameterServer;
}

// One profile in one form.
class Writer {
 public:
  Writer(const Profile& profile, const RunMetadataForm& form)
      : profile_(profile), form_(form), operations_(profile.operations()) {}

  absl::Status Check() const {
    std::set<std::string> names;
    for (const Operation& operation : operations_) names.insert(operation.name);
    for (const Operation& operation : operations_) {
      if (names.count(operation.parameter) > 0)
        return absl::InvalidArgumentError(
            absl::StrCat(operation.parameter, " is an operation and a variable"));
      for (const int32_t before : operation.waiting_for) {
        if (Reaches(operations_[static_cast<size_t>(before)]) == Stands(operation)) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(operation.name, " waits for another machine's ",
                         operations_[static_cast<size_t>(before)].name));
      }
    }
    return absl::OkStatus();
  }

  std::string Step(size_t step) const {
    tensorflow::RunMetadata metadata;
    AddRows(profile_.steps()[step], static_cast<int64_t>(step), *metadata.add_step_stats());
    if (form_.partition_graphs) AddPartitions(metadata);
    metadata.MergeFromString(std::string(kCostGraph, sizeof(kCostGraph) - 1));
    return metadata.SerializeAsString();
  }

  std::string WholeGraph() const {
    tensorflow::GraphDef graph;
    std::set<std::string> variables;
    for (size_t i = 0; i < operations_.size(); ++i) {
      const Operation& operation = operations_[i];
      if (OnServer(operation) || operation.resource == Resource::kDownlink)
        AddVariable(operation, variables, graph);
      if (!IsTransfer(operation.resource)) {
        AddComputation(operation, graph);
      } else if (Sender(operation) != operation.parameter) {
        tensorflow::NodeDef& sender =
            AddNode(Sender(operation), "Identity", SendingDevice(operation), graph);
        if (operation.resource == Resource::kDownlink && !operation.parameter.empty())
          sender.add_input(operation.parameter);
        AddInputs(operation, sender);
      }
    }
    return graph.SerializeAsString();
  }

 private:
  // The machine where an operation waits, and the one where what it makes is: -1 for the worker,
  // else a server.
  static int32_t Stands(const Operation& operation) {
    return OnServer(operation) || operation.resource == Resource::kDownlink
               ? operation.parameter_server
               : -1;
  }
  static int32_t Reaches(const Operation& operation) {
    return OnServer(operation) || operation.resource == Resource::kUplink
               ? operation.parameter_server
               : -1;
  }
  std::string DeviceOf(int32_t machine) const {
    return machine < 0 ? WorkerDevice(form_) : ServerDevice(machine);
  }
  std::string SendingDevice(const Operation& operation) const {
    return DeviceOf(Stands(operation));
  }
  std::string ReceivingDevice(const Operation& operation) const {
    return DeviceOf(Reaches(operation));
  }

  // The node that a transfer's tensor is named after.
  std::string Sender(const Operation& transfer) const {
    const std::string name = transfer.name.substr(
        absl::StartsWith(transfer.name, "recv/") || absl::StartsWith(transfer.name, "send/") ? 5
                                                                                             : 0);
    const bool taken =
        form_.whole_graph && transfer.resource == Resource::kUplink && name == transfer.parameter;
    return taken ? absl::StrCat(name, "/gradient") : name;
  }
  std::string Tensor(size_t index) const {
    return absl::StrCat("edge_", index, "_", Sender(operations_[index]));
  }

  void AddRows(const RecordedStep& step, int64_t number, tensorflow::StepStats& stats) const {
    std::vector<tensorflow::DeviceStepStats*> servers;
    tensorflow::DeviceStepStats* worker = stats.add_dev_stats();
    worker->set_device(WorkerDevice(form_));
    for (int32_t server = 0; server < profile_.parameter_servers(); ++server) {
      servers.push_back(stats.add_dev_stats());
      servers.back()->set_device(ServerDevice(server));
    }
    for (size_t i = 0; i < operations_.size(); ++i) {
      const int32_t machine = Reaches(operations_[i]);
      tensorflow::NodeExecStats& row =
          *(machine < 0 ? worker : servers[static_cast<size_t>(machine)])->add_node_stats();
      const int64_t epoch_ns = (form_.epoch_us + number * form_.between_steps_us +
                                (machine < 0 ? 0 : form_.server_ahead_us)) *
                               1000;
      SetTimes(epoch_ns + step.start_ns[i], step.end_ns[i] - step.start_ns[i], row);
      IsTransfer(operations_[i].resource)
          ? DescribeTransfer(i, step.end_ns[i] - step.start_ns[i], row)
          : DescribeComputation(operations_[i], row);
      row.MergeFromString(std::string(kRowExtras, sizeof(kRowExtras) - 1));
    }
    if (form_.gpu) AddKernels(step, number, stats);
  }

  void SetTimes(int64_t start_ns, int64_t length_ns, tensorflow::NodeExecStats& row) const {
    const int64_t start_us = start_ns / 1000;
    const int64_t length_us = (start_ns + length_ns) / 1000 - start_us;
    row.set_all_start_micros(start_us);
    row.set_op_start_rel_micros(0);
    row.set_op_end_rel_micros(length_us);
    row.set_all_end_rel_micros(length_us);
    row.set_scheduled_micros(start_us);
    if (!form_.nanoseconds) return;
    row.set_all_start_nanos(start_ns);
    row.set_op_end_rel_nanos(length_ns);
    row.set_all_end_rel_nanos(length_ns);
    row.set_scheduled_nanos(start_ns);
  }

  static void DescribeComputation(const Operation& operation, tensorflow::NodeExecStats& row) {
    row.set_node_name(operation.name);
    row.set_timeline_label(absl::StrCat(operation.name, " = ", OpOf(operation), "()"));
    row.add_output()
        ->mutable_tensor_description()
        ->mutable_allocation_description()
        ->set_requested_bytes(1024);
  }

  // As TensorFlow's worker logs a tensor that it received.
  void DescribeTransfer(size_t index, int64_t length_ns, tensorflow::NodeExecStats& row) const {
    const Operation& transfer = operations_[index];
    const auto bytes = static_cast<double>(transfer.size_bytes);
    const std::string size = bytes >= 0.1 * kMebibyte
                                 ? absl::StrFormat("[%.1fMB] ", bytes / kMebibyte)
                                 : absl::StrCat("[", transfer.size_bytes, "B] ");
    const double megabits = 8 * bytes / (static_cast<double>(length_ns) * 1e-3);
    const std::string rate = megabits >= 1000 ? absl::StrFormat("[%.1fGb/s] ", megabits / 1000)
                                              : absl::StrFormat("[%fMb/s] ", megabits);
    row.set_node_name("RecvTensor");
    row.set_timeline_label(absl::StrCat(size, rate, Tensor(index), " from ",
                                        SendingDevice(transfer), " to ",
                                        ReceivingDevice(transfer)));
    row.add_output()
        ->mutable_tensor_description()
        ->mutable_allocation_description()
        ->set_requested_bytes(transfer.size_bytes);
  }

  // The row of an operation is then only its launching: the kernels have its times, once for all
  // streams and once for theirs.
  void AddKernels(const RecordedStep& step, int64_t number, tensorflow::StepStats& stats) const {
    tensorflow::DeviceStepStats& launches = *stats.mutable_dev_stats(0);
    const int64_t epoch_ns = (form_.epoch_us + number * form_.between_steps_us) * 1000;
    for (const char* device : {"/device:GPU:0/stream:all", "/device:GPU:0/stream:7"}) {
      tensorflow::DeviceStepStats& kernels = *stats.add_dev_stats();
      kernels.set_device(device);
      for (size_t i = 0; i < operations_.size(); ++i) {
        if (operations_[i].resource != Resource::kWorker || step.start_ns[i] == step.end_ns[i])
          continue;
        tensorflow::NodeExecStats& kernel = *kernels.add_node_stats();
        kernel.set_node_name(absl::StrCat(operations_[i].name, ":", OpOf(operations_[i])));
        SetTimes(epoch_ns + step.start_ns[i], step.end_ns[i] - step.start_ns[i], kernel);
      }
    }
    for (tensorflow::NodeExecStats& launch : *launches.mutable_node_stats()) {
      if (launch.node_name() != "RecvTensor") SetTimes(epoch_ns, 1000, launch);
    }
  }

  void AddPartitions(tensorflow::RunMetadata& metadata) const {
    for (int32_t machine = -1; machine < profile_.parameter_servers(); ++machine) {
      tensorflow::GraphDef& graph = *metadata.add_partition_graphs();
      std::set<std::string> variables;
      for (size_t i = 0; i < operations_.size(); ++i) {
        const Operation& operation = operations_[i];
        const bool stands = Stands(operation) == machine;
        if (stands && machine >= 0) AddVariable(operation, variables, graph);
        if (!IsTransfer(operation.resource) && stands) AddComputation(operation, graph);
        if (IsTransfer(operation.resource) && stands) AddSend(i, graph);
        if (IsTransfer(operation.resource) && Reaches(operation) == machine) {
          SetTensor(i, AddNode(Receiver(i), "_Recv", ReceivingDevice(operation), graph));
        }
      }
    }
  }

  void AddSend(size_t index, tensorflow::GraphDef& graph) const {
    const Operation& transfer = operations_[index];
    tensorflow::NodeDef& send = AddNode(absl::StrCat(Sender(transfer), "/_S", index), "_Send",
                                        SendingDevice(transfer), graph);
    SetTensor(index, send);
    if (transfer.resource == Resource::kDownlink && !transfer.parameter.empty())
      send.add_input(transfer.parameter);
    AddInputs(transfer, send);
  }

  std::string Receiver(size_t index) const {
    return absl::StrCat(Sender(operations_[index]), "/_R", index);
  }

  void SetTensor(size_t index, tensorflow::NodeDef& node) const {
    SetText("tensor_name", Tensor(index), node);
    SetText("send_device", SendingDevice(operations_[index]), node);
    SetText("recv_device", ReceivingDevice(operations_[index]), node);
  }

  static void SetText(const char* key, const std::string& text, tensorflow::NodeDef& node) {
    tensorflow::AttrEntry& entry = *node.add_attr();
    entry.set_key(key);
    entry.mutable_value()->set_s(text);
  }

  static std::string OpOf(const Operation& operation) {
    if (!OnServer(operation)) return "Conv2D";
    return operation.parameter.empty() ? "AddN" : "ApplyGradientDescent";
  }

  static tensorflow::NodeDef& AddNode(const std::string& name, const std::string& op,
                                      const std::string& device, tensorflow::GraphDef& graph) {
    tensorflow::NodeDef& node = *graph.add_node();
    node.set_name(name);
    node.set_op(op);
    node.set_device(device);
    return node;
  }

  void AddVariable(const Operation& operation, std::set<std::string>& written,
                   tensorflow::GraphDef& graph) const {
    if (operation.parameter.empty() || !written.insert(operation.parameter).second) return;
    tensorflow::NodeDef& node =
        AddNode(operation.parameter, "VariableV2", ServerDevice(operation.parameter_server), graph);
    tensorflow::AttrEntry& shape = *node.add_attr();
    shape.set_key("shape");
    shape.mutable_value()->mutable_shape()->add_dim()->set_size((operation.size_bytes + 3) / 4);
    tensorflow::AttrEntry& type = *node.add_attr();
    type.set_key("dtype");
    type.mutable_value()->set_type(kFloat);
  }

  void AddComputation(const Operation& operation, tensorflow::GraphDef& graph) const {
    tensorflow::NodeDef& node =
        AddNode(operation.name, OpOf(operation), SendingDevice(operation), graph);
    if (OnServer(operation) && !operation.parameter.empty()) node.add_input(operation.parameter);
    AddInputs(operation, node);
  }

  // By turns as data, as a second output, and only to wait for; those come last, as in TensorFlow.
  void AddInputs(const Operation& operation, tensorflow::NodeDef& node) const {
    std::vector<std::string> control;
    for (size_t at = 0; at < operation.waiting_for.size(); ++at) {
      const auto before = static_cast<size_t>(operation.waiting_for[at]);
      const Operation& maker = operations_[before];
      const bool received = IsTransfer(maker.resource);
      const std::string name = !received           ? maker.name
                               : form_.whole_graph ? Sender(maker)
                                                   : Receiver(before);
      if (at % 3 == 2) {
        control.push_back(absl::StrCat("^", name));
      } else {
        node.add_input(at % 3 == 1 && !received ? absl::StrCat(name, ":1") : name);
      }
    }
    for (const std::string& input : control) node.add_input(input);
  }

  const Profile& profile_;
  const RunMetadataForm& form_;
  const std::vector<Operation>& operations_;
};

}  // namespace

absl::StatusOr<std::string> WriteRunMetadata(const Profile& profile, size_t step,
                                             const RunMetadataForm& form) {
  const Writer writer(profile, form);
  if (absl::Status status = writer.Check(); !status.ok()) return status;
  return writer.Step(step);
}

absl::StatusOr<std::string> WriteRunMetadata(const Profile& profile, const RunMetadataForm& form) {
  const Writer writer(profile, form);
  if (absl::Status status = writer.Check(); !status.ok()) return status;
  std::string all;
  for (size_t step = 0; step < profile.steps().size(); ++step) all += writer.Step(step);
  return all;
}

absl::StatusOr<std::string> WriteWholeGraph(const Profile& profile, const RunMetadataForm& form) {
  RunMetadataForm whole = form;
  whole.whole_graph = true;
  const Writer writer(profile, whole);
  if (absl::Status status = writer.Check(); !status.ok()) return status;
  return writer.WholeGraph();
}

}  // namespace stepcast::testing
