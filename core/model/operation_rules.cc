#include "core/model/operation_rules.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "core/base/quoted.h"
#include "core/model/dependency_cycle.h"
#include "core/model/limit_fault.h"

namespace stepcast {

namespace {

constexpr size_t kMaxCycleNames = 20;

class OperationRules {
 public:
  OperationRules(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults)
      : draft_(draft),
        limits_(limits),
        faults_(faults),
        operation_count_(static_cast<int64_t>(draft.operations.size())),
        servers_known_(draft.parameter_servers >= 1 &&
                       draft.parameter_servers <= limits.max_parameter_servers) {}

  void Check() {
    if (operation_count_ == 0) faults_.Add("operations", "a profile needs at least one operation");
    if (operation_count_ > limits_.max_operations) {
      faults_.Add("operations",
                  OverLimit(operation_count_, "max_operations", limits_.max_operations));
      return;
    }
    index_of_name_.reserve(draft_.operations.size());
    for (size_t i = 0; i < draft_.operations.size() && !faults_.full(); ++i) CheckOperation(i);
    CheckDependencies();
  }

 private:
  void CheckOperation(size_t index) {
    const Operation& operation = draft_.operations[index];
    CheckName(index, operation.name);
    const Resource resource = operation.resource;
    const bool known = IsTransfer(resource) || resource == Resource::kWorker ||
                       resource == Resource::kParameterServer;
    if (!known)
      faults_.Add(PathOf(index, "resource"),
                  absl::StrCat(static_cast<int>(resource), " is no known resource"));
    if (resource != Resource::kWorker) CheckServer(index, operation.parameter_server);
    CheckSize(index, operation);
    if (operation.parameter.size() > limits_.max_name_bytes) {
      faults_.Add(PathOf(index, "parameter"),
                  TooLong(operation.parameter, "max_name_bytes", limits_.max_name_bytes));
    }
  }

  void CheckName(size_t index, const std::string& name) {
    if (name.empty()) {
      faults_.Add(PathOf(index, "name"), "an operation needs a name");
    } else if (name.size() > limits_.max_name_bytes) {
      faults_.Add(PathOf(index, "name"), TooLong(name, "max_name_bytes", limits_.max_name_bytes));
    } else {
      const auto [earlier, is_new] = index_of_name_.try_emplace(name, index);
      if (!is_new)
        faults_.Add(PathOf(index, "name"),
                    absl::StrCat(Quoted(name), " is already the name of operations[",
                                 earlier->second, "]"));
    }
  }

  void CheckServer(size_t index, int32_t server) {
    if (server < 0 || (servers_known_ && server >= draft_.parameter_servers)) {
      faults_.Add(PathOf(index, "parameter_server"),
                  absl::StrCat(server, " is not the index of one of ", draft_.parameter_servers,
                               " parameter servers"));
    }
  }

  void CheckSize(size_t index, const Operation& operation) {
    const int64_t size = operation.size_bytes;
    if (size < 0) {
      faults_.Add(PathOf(index, "size_bytes"), absl::StrCat(size, " is a negative size"));
    } else if (IsTransfer(operation.resource) && size == 0) {
      faults_.Add(PathOf(index, "size_bytes"), "0: a transfer needs a size");
    } else if (!IsTransfer(operation.resource) && size > 0 &&
               operation.resource != Resource::kUnspecified) {
      faults_.Add(PathOf(index, "size_bytes"), absl::StrCat(size, ": only a transfer has a size"));
    } else if (size > limits_.max_transfer_bytes) {
      faults_.Add(PathOf(index, "size_bytes"),
                  OverLimit(size, "max_transfer_bytes", limits_.max_transfer_bytes));
    }
  }

  void CheckDependencies() {
    int64_t dependencies = 0;
    for (const Operation& operation : draft_.operations)
      dependencies += static_cast<int64_t>(operation.waiting_for.size());
    if (dependencies > limits_.max_dependencies) {
      faults_.Add("operations", absl::StrCat("all waiting_for together: ",
                                             OverLimit(dependencies, "max_dependencies",
                                                       limits_.max_dependencies)));
      return;
    }
    std::vector<Listed> listed(draft_.operations.size());
    for (size_t i = 0; i < draft_.operations.size() && !faults_.full(); ++i)
      CheckWaitingFor(i, listed);
    CheckCycle();
  }

  // The last listing of an index: at waiting_for[position] of `by`.
  struct Listed {
    size_t by = SIZE_MAX;
    size_t position = 0;
  };

  void CheckWaitingFor(size_t index, std::vector<Listed>& listed) {
    const std::vector<int32_t>& waiting_for = draft_.operations[index].waiting_for;
    for (size_t at = 0; at < waiting_for.size(); ++at) {
      const int64_t before = waiting_for[at];
      if (before < 0 || before >= operation_count_) {
        faults_.Add(
            PathOf(index, "waiting_for", at),
            absl::StrCat(before, " is not the index of one of ", operation_count_, " operations"));
        continue;
      }
      Listed& last = listed[static_cast<size_t>(before)];
      if (last.by == index) {
        faults_.Add(PathOf(index, "waiting_for", at),
                    absl::StrCat(before, " is already listed at waiting_for[", last.position, "]"));
      } else if (static_cast<size_t>(before) == index) {
        faults_.Add(
            PathOf(index, "waiting_for"),
            absl::StrCat("a cycle: ", Quoted(draft_.operations[index].name), " waits for itself"));
      }
      last = {.by = index, .position = at};
    }
  }

  void CheckCycle() {
    const std::vector<int32_t> cycle = FindDependencyCycle(draft_.operations);
    if (cycle.empty()) return;
    std::string names;
    for (size_t i = 0; i < cycle.size() && i < kMaxCycleNames; ++i)
      absl::StrAppend(&names, NameOf(cycle[i]), " waits for ");
    absl::StrAppend(&names, cycle.size() > kMaxCycleNames ? "..." : NameOf(cycle[0]));
    faults_.Add(PathOf(static_cast<size_t>(cycle[0]), "waiting_for"),
                absl::StrCat("a cycle of ", cycle.size(), " operations: ", names));
  }

  std::string NameOf(int32_t index) const {
    return Quoted(draft_.operations[static_cast<size_t>(index)].name);
  }

  static std::string PathOf(size_t operation, const char* field) {
    return absl::StrCat("operations[", operation, "].", field);
  }
  static std::string PathOf(size_t operation, const char* field, size_t at) {
    return absl::StrCat(PathOf(operation, field), "[", at, "]");
  }

  const ProfileDraft& draft_;
  const ProfileLimits& limits_;
  FaultList& faults_;
  const int64_t operation_count_;
  const bool servers_known_;  // else a server's index can only be too small
  absl::flat_hash_map<absl::string_view, size_t> index_of_name_;
};

}  // namespace

void CheckOperations(const ProfileDraft& draft, const ProfileLimits& limits, FaultList& faults) {
  OperationRules(draft, limits, faults).Check();
}

}  // namespace stepcast
