#include "core/importing/tensorflow/recorded_operations.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/tensorflow/recorded_rows.h"

namespace stepcast {

namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
constexpr int64_t kFar = kNone / 4;  // two of them do not overflow

bool OnWorkersClock(const Operation& operation) { return IsOnWorkersClock(operation.resource); }

}  // namespace

StepClock::StepClock(const std::vector<Operation>& operations, int32_t servers,
                     double bandwidth_bytes_per_second, KeptReadings kept)
    : operations_(operations),
      kept_(kept),
      upload_ns_(static_cast<size_t>(std::max(servers, 0)), 0),
      bounds_(upload_ns_.size()) {
  constexpr double kNsPerSecond = 1e9;
  for (const Operation& operation : operations) {
    if (operation.resource != Resource::kUplink) continue;
    const double ns =
        static_cast<double>(operation.size_bytes) / bandwidth_bytes_per_second * kNsPerSecond;
    int64_t& all = upload_ns_[static_cast<size_t>(operation.parameter_server)];
    all = ns < static_cast<double>(kFar - all) ? all + static_cast<int64_t>(ns) : kFar;
  }
}

// The bounds of each server's clock: by how much it may be moved forwards, at least and at most.
void StepClock::FindBounds(const RecordedStep& step) {
  std::fill(bounds_.begin(), bounds_.end(),
            Bounds{.least = -kNone, .most = kNone, .first_start = kNone});
  worker_start_ = kNone;
  worker_end_ = -kNone;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    if (OnWorkersClock(operation)) {
      worker_start_ = std::min(worker_start_, step.start_ns[i]);
      worker_end_ = std::max(worker_end_, step.end_ns[i]);
    } else {
      Bounds& server = bounds_[static_cast<size_t>(operation.parameter_server)];
      server.first_start = std::min(server.first_start, step.start_ns[i]);
    }
    if (!IsTransfer(operation.resource)) continue;
    Bounds& server = bounds_[static_cast<size_t>(operation.parameter_server)];
    for (const int32_t before : operation.waiting_for) {
      const auto maker = static_cast<size_t>(before);
      if (OnWorkersClock(operations_[maker]) == OnWorkersClock(operation)) continue;
      if (operation.resource == Resource::kDownlink) {
        server.most = std::min(server.most, step.end_ns[i] - step.end_ns[maker]);
      } else {
        server.least = std::max(server.least, step.end_ns[maker] - step.end_ns[i]);
      }
    }
  }
}

int64_t StepClock::ShiftOf(size_t server) const {
  const Bounds& bounds = bounds_[server];
  if (bounds.first_start == kNone || worker_start_ == kNone) return 0;
  // Without uploads nothing else says that a server's clock is behind.
  const int64_t least = upload_ns_[server] > 0 ? bounds.least : worker_start_ - bounds.first_start;
  if (least > 0) return least;
  if (bounds.most < 0) return std::max(bounds.most, least);
  if (bounds.most == kNone && least != -kNone &&
      -least > worker_end_ - worker_start_ + upload_ns_[server])
    return least;
  return 0;
}

void StepClock::Clamp(RecordedStep& step, size_t operation, int64_t earliest) {
  const int64_t moved = earliest - step.start_ns[operation];
  if (moved <= 0) return;
  step.start_ns[operation] = earliest;
  ++repairs_.clamped;
  repairs_.clamped_ns += moved;
  repairs_.most_clamped_ns = std::max(repairs_.most_clamped_ns, moved);
}

// The step begins at the first start on a clock that was right.
RepairedStep StepClock::MoveServers(RecordedStep& step) {
  bool moved = false;
  int64_t origin = worker_start_;
  std::vector<int64_t> shifts(bounds_.size());
  for (size_t server = 0; server < bounds_.size(); ++server) {
    shifts[server] = ShiftOf(server);
    // Unless the step has nothing of the worker's.
    if (kept_ == KeptReadings::kEnds && bounds_[server].first_start != kNone &&
        worker_start_ != kNone)
      shifts[server] = std::max(shifts[server], worker_start_ - bounds_[server].first_start);
    if (shifts[server] == 0) {
      origin = std::min(origin, bounds_[server].first_start);
      continue;
    }
    moved = true;
    ++repairs_.moved_clocks;
    if (std::abs(shifts[server]) > std::abs(repairs_.most_moved_ns))
      repairs_.most_moved_ns = shifts[server];
  }
  if (!moved) return {.begin_ns = origin, .shifts_ns = std::move(shifts)};
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (OnWorkersClock(operations_[i])) continue;
    const int64_t shift = shifts[static_cast<size_t>(operations_[i].parameter_server)];
    step.start_ns[i] += shift;
    step.end_ns[i] += shift;
  }
  return {.begin_ns = origin, .shifts_ns = std::move(shifts)};
}

RepairedStep StepClock::Repair(RecordedStep& step) {
  FindBounds(step);
  RepairedStep repaired = MoveServers(step);
  const int64_t origin = repaired.begin_ns;
  for (size_t i = 0; i < operations_.size(); ++i) {
    const int64_t length = step.end_ns[i] - step.start_ns[i];
    step.start_ns[i] -= origin;
    Clamp(step, i, 0);
    step.end_ns[i] = step.start_ns[i] + length;
  }
  for (size_t i = 0; i < operations_.size(); ++i) {
    if (!IsTransfer(operations_[i].resource)) continue;
    int64_t earliest = 0;
    for (const int32_t before : operations_[i].waiting_for)
      earliest = std::max(earliest, step.end_ns[static_cast<size_t>(before)]);
    if (kept_ == KeptReadings::kEnds) earliest = std::min(earliest, step.end_ns[i]);
    Clamp(step, i, earliest);
    step.end_ns[i] = std::max(step.end_ns[i], step.start_ns[i]);
  }
  return repaired;
}

namespace {

// The same node's name at three lengths; the last is nobody else's.
enum class Length { kSender, kTensor, kDevices };

std::string NameAt(Length length, const RecordedRows& rows, const RecordedNode& node,
                   Resource resource) {
  const std::string& device = rows.devices()[static_cast<size_t>(node.device)].name;
  if (!node.is_transfer())
    return length == Length::kDevices ? absl::StrCat(node.name, "@", device) : node.name;
  const std::string_view sender = SenderOf(node.name);
  const absl::string_view tensor = length == Length::kSender
                                       ? absl::string_view(sender.data(), sender.size())
                                       : absl::string_view(node.name);
  const std::string name =
      absl::StrCat(resource == Resource::kDownlink ? "recv/" : "send/", tensor);
  return length == Length::kDevices
             ? absl::StrCat(name, "@", rows.devices()[static_cast<size_t>(node.source)].name, ">",
                            device)
             : name;
}

}  // namespace

void NameOperations(const RecordedRows& rows, const std::vector<int32_t>& recorded,
                    std::vector<Operation>& operations) {
  const auto name = [&](Length length, size_t i) {
    return NameAt(length, rows, rows.nodes()[static_cast<size_t>(recorded[i])],
                  operations[i].resource);
  };
  for (size_t i = 0; i < operations.size(); ++i) operations[i].name = name(Length::kSender, i);
  for (const Length length : {Length::kTensor, Length::kDevices}) {
    absl::flat_hash_map<std::string, int64_t> count;
    for (const Operation& operation : operations) ++count[operation.name];
    for (size_t i = 0; i < operations.size(); ++i) {
      if (count.at(operations[i].name) > 1) operations[i].name = name(length, i);
    }
  }
}

namespace {

// The variable of a download or of an operation on a server; empty: none.
std::string VariableName(const TensorflowGraph& graph, int32_t node) {
  const int32_t variable = node < 0 ? -1 : graph.VariableOf(node);
  return variable < 0 ? std::string() : graph.node(variable).name;
}

// Sets the parameter of each operation of a server that is, hands on, reads or updates a variable,
// of each download that carries one, and of each upload that the update of exactly one variable
// waits for. Returns the number of transfers without one. `recorded`: parallel to the operations.
int64_t NameParameters(const TensorflowGraph& graph, const GraphDependencies& dependencies,
                       const std::vector<int32_t>& recorded, std::vector<Operation>& operations) {
  for (size_t i = 0; i < operations.size(); ++i) {
    if (operations[i].resource != Resource::kDownlink &&
        operations[i].resource != Resource::kParameterServer)
      continue;
    operations[i].parameter = VariableName(graph, dependencies.graph_node(recorded[i]));
  }
  std::vector<bool> several(operations.size(), false);
  for (size_t i = 0; i < operations.size(); ++i) {
    const std::string& variable = operations[i].parameter;
    if (operations[i].resource != Resource::kParameterServer || variable.empty()) continue;
    for (const int32_t before : operations[i].waiting_for) {
      Operation& upload = operations[static_cast<size_t>(before)];
      if (upload.resource != Resource::kUplink || several[static_cast<size_t>(before)]) continue;
      several[static_cast<size_t>(before)] =
          !upload.parameter.empty() && upload.parameter != variable;
      upload.parameter = several[static_cast<size_t>(before)] ? "" : variable;
    }
  }
  return std::count_if(operations.begin(), operations.end(), [](const Operation& operation) {
    return IsTransfer(operation.resource) && operation.parameter.empty();
  });
}

Resource ResourceOf(const RecordedNode& node, const TensorflowDevice& device) {
  const bool server = device.role == DeviceRole::kServer;
  if (node.is_transfer()) return server ? Resource::kUplink : Resource::kDownlink;
  return server ? Resource::kParameterServer : Resource::kWorker;
}

class Maker {
 public:
  Maker(RecordedRows& rows, const TensorflowGraph& graph, const StepChoice& choice,
        const Platform& platform, const ProfileLimits& limits, KeptReadings kept)
      : rows_(rows),
        graph_(graph),
        choice_(choice),
        platform_(platform),
        limits_(limits),
        kept_(kept) {}

  absl::StatusOr<RecordedOperations> Make() {
    for (size_t i = 0; i < choice_.nodes.size(); ++i) {
      if (choice_.nodes[i]) recorded_.push_back(static_cast<int32_t>(i));
    }
    for (const int32_t node : recorded_) {
      if (absl::Status status = AddOperation(rows_.nodes()[static_cast<size_t>(node)]);
          !status.ok())
        return status;
    }
    NameOperations(rows_, recorded_, made_.operations);
    GraphDependencies dependencies(rows_, graph_, choice_.nodes, limits_);
    if (absl::Status status = Connect(dependencies); !status.ok()) return status;
    made_.without_parameter = NameParameters(graph_, dependencies, recorded_, made_.operations);
    TakeSteps();
    Sort();
    return std::move(made_);
  }

 private:
  absl::Status AddOperation(const RecordedNode& node) {
    const TensorflowDevice& device = rows_.device_of(node);
    Operation& operation = made_.operations.emplace_back();
    operation.resource = ResourceOf(node, device);
    const TensorflowDevice& source =
        node.is_transfer() ? rows_.devices()[static_cast<size_t>(node.source)].device : device;
    const TensorflowDevice& server = device.role == DeviceRole::kServer ? device : source;
    if (operation.resource != Resource::kWorker) operation.parameter_server = server.task;
    if (server.task < 0)
      return ImportFault(kAtRecording, absl::StrCat("a device of ", Quoted(server.job),
                                                    " whose task is not a number"));
    if (operation.resource != Resource::kWorker && server.task >= limits_.max_parameter_servers) {
      return ImportFault(kAtRecording, OverLimit(int64_t{server.task} + 1, "max_parameter_servers",
                                                 limits_.max_parameter_servers));
    }
    if (operation.resource != Resource::kWorker)
      made_.parameter_servers = std::max(made_.parameter_servers, server.task + 1);
    if (absl::Status status = CheckWorker(device.role == DeviceRole::kServer ? source : device);
        !status.ok())
      return status;
    return node.is_transfer() ? SetSize(node, operation) : absl::OkStatus();
  }

  // A profile is of one worker.
  absl::Status CheckWorker(const TensorflowDevice& device) {
    if (device.role != DeviceRole::kWorker) return absl::OkStatus();
    if (worker_ == nullptr) {
      worker_ = &device;
      made_.worker_job = device.job;
      made_.worker_task = device.task;
    }
    if (worker_->same_machine(device)) return absl::OkStatus();
    return ImportFault(
        kAtRecording,
        absl::StrCat("it is of several workers, ", worker_->job, " ", worker_->task, " and ",
                     device.job, " ", device.task, " among them, where a profile is of one"));
  }

  absl::Status SetSize(const RecordedNode& node, Operation& operation) {
    if (node.size_bytes < 0)
      return ImportFault(kAtRecording,
                         absl::StrCat("nothing says how many bytes ", Quoted(node.name), " has"));
    operation.size_bytes = std::max<int64_t>(node.size_bytes, 1);
    made_.empty_transfers += node.size_bytes == 0 ? 1 : 0;
    return absl::OkStatus();
  }

  absl::Status Connect(GraphDependencies& dependencies) {
    absl::StatusOr<std::vector<std::vector<int32_t>>> found = dependencies.Find();
    if (!found.ok()) return found.status();
    std::vector<int32_t> place(rows_.nodes().size(), -1);
    for (size_t i = 0; i < recorded_.size(); ++i)
      place[static_cast<size_t>(recorded_[i])] = static_cast<int32_t>(i);
    for (size_t i = 0; i < recorded_.size(); ++i) {
      std::vector<int32_t>& waiting_for = made_.operations[i].waiting_for;
      waiting_for = std::move((*found)[static_cast<size_t>(recorded_[i])]);
      for (int32_t& before : waiting_for) before = place[static_cast<size_t>(before)];
    }
    return absl::OkStatus();
  }

  void TakeSteps() {
    StepClock clock(made_.operations, made_.parameter_servers, platform_.bandwidth_bytes_per_second,
                    kept_);
    for (const size_t index : choice_.steps) {
      RecordedStep from = std::exchange(rows_.steps()[index], {});
      RecordedStep& step = made_.steps.emplace_back();
      for (const int32_t node : recorded_) {
        step.start_ns.push_back(from.start_ns[static_cast<size_t>(node)]);
        step.end_ns.push_back(from.end_ns[static_cast<size_t>(node)]);
      }
      made_.clocks_of_steps.push_back(clock.Repair(step));
    }
    made_.clocks = clock.repairs();
  }

  void Sort() {
    const RecordedStep& first = made_.steps.front();
    std::vector<int32_t> order(recorded_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int32_t i) {
      const auto at = static_cast<size_t>(i);
      return std::tie(first.start_ns[at], first.end_ns[at], made_.operations[at].name);
    };
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return key(a) < key(b); });
    std::vector<int32_t> place(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      place[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
    made_.operations = Reordered(std::move(made_.operations), order);
    for (Operation& operation : made_.operations) {
      for (int32_t& before : operation.waiting_for) before = place[static_cast<size_t>(before)];
      std::sort(operation.waiting_for.begin(), operation.waiting_for.end());
    }
    for (RecordedStep& step : made_.steps) {
      step.start_ns = Reordered(std::move(step.start_ns), order);
      step.end_ns = Reordered(std::move(step.end_ns), order);
    }
  }

  template <typename Value>
  static std::vector<Value> Reordered(std::vector<Value> values,
                                      const std::vector<int32_t>& order) {
    std::vector<Value> sorted;
    sorted.reserve(values.size());
    for (const int32_t from : order) sorted.push_back(std::move(values[static_cast<size_t>(from)]));
    return sorted;
  }

  RecordedRows& rows_;
  const TensorflowGraph& graph_;
  const StepChoice& choice_;
  const Platform& platform_;
  const ProfileLimits& limits_;
  const KeptReadings kept_;
  std::vector<int32_t> recorded_;  // by operation, as long as they are not sorted
  const TensorflowDevice* worker_ = nullptr;
  RecordedOperations made_;
};

}  // namespace

absl::StatusOr<RecordedOperations> MakeOperations(RecordedRows& rows, const TensorflowGraph& graph,
                                                  const StepChoice& choice,
                                                  const Platform& platform,
                                                  const ProfileLimits& limits, KeptReadings kept) {
  return Maker(rows, graph, choice, platform, limits, kept).Make();
}

}  // namespace stepcast
