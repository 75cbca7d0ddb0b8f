#include "server/security/principals.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "core/base/error.h"
#include "core/base/message_text.h"

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

TokenDigest DigestOf(std::string_view token) {
  TokenDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

std::optional<TokenDigest> ParseDigest(std::string_view hex) {
  TokenDigest digest;
  const bool is_hex = std::all_of(hex.begin(), hex.end(), [](char c) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
  if (!is_hex || hex.size() != 2 * digest.size()) return std::nullopt;
  const std::string bytes = absl::HexStringToBytes(std::string(hex));
  std::copy(bytes.begin(), bytes.end(), digest.begin());
  return digest;
}

bool IsSame(const TokenDigest& one, const TokenDigest& other) {
  return CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

namespace {

constexpr char kReason[] = "TOKENS_INVALID";

// True for text that may stand in a log and beside a metric without being escaped.
bool IsName(const std::string& name) {
  const auto is_plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("._-@/:").find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= Principals::kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), is_plain);
}

}  // namespace

class Principals::Reader {
 public:
  absl::StatusOr<Principals> Read(const YAML::Node& root) {
    // A file that was cut, or is not written yet, would lock everybody out.
    if (root.IsNull() || (root.IsSequence() && root.size() == 0)) {
      return FaultsError(kReason,
                         {{.field = "",
                           .description = "names nobody: one entry at least is needed, - {name: "
                                          "NAME, role: reader, token: TOKEN} for instance"}});
    }
    if (!root.IsSequence())
      return FaultsError(kReason,
                         {{.field = LineOf(root), .description = "must be a list of entries"}});
    if (root.size() > kMaxEntries) {
      return FaultsError(kReason,
                         {{.field = "",
                           .description = absl::StrCat("has ", root.size(), " entries, at most ",
                                                       kMaxEntries, " are allowed")}});
    }
    for (const auto& entry : root) ReadEntry(entry);
    if (!faults_.empty()) return FaultsError(kReason, std::move(faults_));
    return std::move(read_);
  }

 private:
  static std::string LineOf(const YAML::Node& node) { return absl::StrCat(node.Mark().line + 1); }

  void Blame(const YAML::Node& node, const std::string& why) {
    faults_.push_back({.field = LineOf(node), .description = why});
  }

  // key -> value; faults instead of what is not plain.
  std::map<std::string, std::string> Fields(const YAML::Node& entry) {
    static const auto& known =
        *new std::set<std::string>{"name", "role", "sha256", "token", "certificate"};
    std::map<std::string, std::string> fields;
    for (const auto& field : entry) {
      const std::string key = field.first.IsScalar() ? field.first.Scalar() : "";
      if (known.count(key) == 0) {
        Blame(field.first, "has a part that is none of name, role, sha256, token and certificate");
      } else if (!field.second.IsScalar() || !fields.emplace(key, field.second.Scalar()).second) {
        Blame(field.first, absl::StrCat(Quoted(key), " must have one plain value"));
      }
    }
    return fields;
  }

  void ReadEntry(const YAML::Node& entry) {
    if (!entry.IsMap()) return Blame(entry, "an entry must be a map with name, role and proof");
    std::map<std::string, std::string> fields = Fields(entry);
    const std::string name = fields["name"];
    const std::optional<Role> role = RoleOf(fields["role"]);
    if (!IsName(name))
      Blame(entry,
            absl::StrCat("name must be 1 to ", kMaxNameBytes, " letters, digits and ._-@/:"));
    if (!role) Blame(entry, "role must be reader, writer or admin");
    if (fields.count("sha256") + fields.count("token") + fields.count("certificate") != 1) {
      return Blame(entry, "must have one of sha256, token and certificate");
    }
    if (!IsName(name) || !role) return;
    const auto [known, is_new] = roles_.emplace(name, *role);
    if (!is_new && known->second != *role)
      return Blame(entry, absl::StrCat(Quoted(name), " has another role already"));
    AddProof(entry, fields,
             std::make_shared<const Principal>(Principal{.name = name, .role = *role}));
  }

  void AddProof(const YAML::Node& entry, const std::map<std::string, std::string>& fields,
                std::shared_ptr<const Principal> principal) {
    if (const auto certificate = fields.find("certificate"); certificate != fields.end()) {
      const bool is_good =
          !certificate->second.empty() &&
          read_.certificates_.emplace(certificate->second, std::move(principal)).second;
      if (!is_good) Blame(entry, "certificate must be a name that no other entry has");
      return;
    }
    const auto token = fields.find("token");
    if (token != fields.end() && token->second.size() < kMinTokenBytes) {
      return Blame(entry, absl::StrCat("token must have at least ", kMinTokenBytes, " bytes"));
    }
    const std::optional<TokenDigest> digest =
        token != fields.end() ? DigestOf(token->second) : ParseDigest(fields.at("sha256"));
    if (!digest) return Blame(entry, "sha256 must be 64 hexadecimal digits");
    if (!digests_.insert(*digest).second) return Blame(entry, "another entry has the same token");
    read_.tokens_.push_back({.digest = *digest, .principal = std::move(principal)});
  }

  Principals read_;
  std::vector<Fault> faults_;
  std::map<std::string, Role> roles_;
  std::set<TokenDigest> digests_;
};

absl::StatusOr<Principals> Principals::Parse(const std::string& text) {
  // The library reports what is not YAML by an exception.
  try {
    return Reader().Read(YAML::Load(text));
  } catch (const YAML::Exception& exception) {
    // Quotes of the text come after a colon.
    const std::string why = exception.msg.substr(0, exception.msg.find(':'));
    return FaultsError(kReason,
                       {{.field = absl::StrCat(exception.mark.line + 1), .description = why}});
  }
}

std::shared_ptr<const Principal> Principals::ByToken(std::string_view token) const {
  const TokenDigest digest = DigestOf(token);
  const Token* found = nullptr;
  for (const Token& each : tokens_) {
    if (IsSame(each.digest, digest)) found = &each;
  }
  return found == nullptr ? nullptr : found->principal;
}

std::shared_ptr<const Principal> Principals::ByCertificateName(std::string_view name) const {
  const auto found = certificates_.find(name);
  return found == certificates_.end() ? nullptr : found->second;
}

}  // namespace stepcast::server
