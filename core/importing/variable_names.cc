#include "core/importing/variable_names.h"

#include <algorithm>
#include <string>

namespace stepcast {

namespace {

// The variable of a download or of an operation on a server; empty: none.
std::string VariableName(const TensorflowGraph& graph, int32_t node) {
  const int32_t variable = node < 0 ? -1 : graph.VariableOf(node);
  return variable < 0 ? std::string() : graph.node(variable).name;
}

}  // namespace

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

}  // namespace stepcast
