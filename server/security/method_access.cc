#include "server/security/method_access.h"

#include <algorithm>
#include <array>

namespace stepcast::server {

namespace {

constexpr std::array<Role, 3> kRoles{Role::kReader, Role::kWriter, Role::kAdmin};

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kReader:
      return "reader";
    case Role::kWriter:
      return "writer";
    case Role::kAdmin:
      return "admin";
  }
  return "";
}

std::optional<Role> RoleOf(std::string_view name) {
  for (const Role role : kRoles) {
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

const std::vector<MethodAccess>& MethodAccessTable() {
  static const auto& table = *new std::vector<MethodAccess>{
      {"google.longrunning.Operations/CancelOperation", Access::kWriter},
      {"google.longrunning.Operations/DeleteOperation", Access::kWriter},
      {"google.longrunning.Operations/GetOperation", Access::kReader},
      {"google.longrunning.Operations/ListOperations", Access::kReader},
      {"google.longrunning.Operations/WaitOperation", Access::kReader},
      // Balancers and orchestrators have no credentials, and learn nothing but whether the server
      // serves.
      {"grpc.health.v1.Health/Check", Access::kAnybody},
      {"grpc.health.v1.Health/Watch", Access::kAnybody},
      {"grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Access::kKnown},
      {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Access::kKnown},
      {"stepcast.v1.AdminService/GetServerInfo", Access::kAdmin},
      {"stepcast.v1.AdminService/ListRunning", Access::kAdmin},
      {"stepcast.v1.AdminService/Ping", Access::kKnown},
      {"stepcast.v1.AdminService/SetLogLevel", Access::kAdmin},
      {"stepcast.v1.JobService/StartJob", Access::kWriter},
      {"stepcast.v1.PredictionService/AllocateWorkers", Access::kReader},
      {"stepcast.v1.PredictionService/CompareModels", Access::kReader},
      {"stepcast.v1.PredictionService/DiagnoseJob", Access::kReader},
      {"stepcast.v1.PredictionService/FitCollectives", Access::kReader},
      {"stepcast.v1.PredictionService/FitContention", Access::kReader},
      {"stepcast.v1.PredictionService/FitParsingOverhead", Access::kReader},
      {"stepcast.v1.PredictionService/FitRuns", Access::kReader},
      {"stepcast.v1.PredictionService/GenerateTrace", Access::kReader},
      {"stepcast.v1.PredictionService/OptimizeCommunication", Access::kReader},
      {"stepcast.v1.PredictionService/OptimizeJob", Access::kReader},
      {"stepcast.v1.PredictionService/OptimizeOrder", Access::kReader},
      {"stepcast.v1.PredictionService/PredictThroughput", Access::kReader},
      {"stepcast.v1.PredictionService/RecommendLayout", Access::kReader},
      {"stepcast.v1.PredictionService/RecommendWorkers", Access::kReader},
      {"stepcast.v1.ProfileService/CreateProfile", Access::kWriter},
      {"stepcast.v1.ProfileService/DeleteProfile", Access::kWriter},
      {"stepcast.v1.ProfileService/GetProfile", Access::kReader},
      {"stepcast.v1.ProfileService/ImportProfile", Access::kWriter},
      {"stepcast.v1.ProfileService/ListProfiles", Access::kReader},
      {"stepcast.v1.ProfileService/UpdateProfile", Access::kWriter},
      {"stepcast.v1.ProfileService/UploadProfile", Access::kWriter},
  };
  return table;
}

Access AccessOf(std::string_view service, std::string_view method) {
  // The order of service/method, without putting the two together: this is asked of every call.
  const auto is_before = [&](const MethodAccess& row) {
    const size_t slash = row.method.find('/');
    const int order = row.method.substr(0, slash).compare(service);
    return order != 0 ? order < 0 : row.method.substr(slash + 1) < method;
  };
  const std::vector<MethodAccess>& table = MethodAccessTable();
  const auto found = std::partition_point(table.begin(), table.end(), is_before);
  const bool is_row =
      found != table.end() && found->method.size() == service.size() + 1 + method.size() &&
      found->method[service.size()] == '/' && found->method.substr(0, service.size()) == service &&
      found->method.substr(service.size() + 1) == method;
  return is_row ? found->access : Access::kKnown;
}

std::optional<Role> RoleFor(Access access) {
  switch (access) {
    case Access::kAnybody:
    case Access::kKnown:
      return std::nullopt;
    case Access::kReader:
      return Role::kReader;
    case Access::kWriter:
      return Role::kWriter;
    case Access::kAdmin:
      return Role::kAdmin;
  }
  return Role::kAdmin;
}

}  // namespace stepcast::server
