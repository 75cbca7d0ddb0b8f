// The flags that describe a cluster: every field of Scenario but the number of workers.
//
// The one place of the program where the fields of a Scenario are set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/flags/presets.h"
#include "client/cli/session.h"

#include "stepcast/v1/scenario.pb.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stepcast::client {

inline constexpr char kAllReduceGroup[] = "All-reduce (default: as recorded)";
inline constexpr char kScenarioGroup[] = "Scenario (default: as recorded)";

// Refuses a number of workers of 0, which a request takes for none given.
void RefuseZero(CLI::Option& workers);

class ScenarioFlags {
 public:
  enum class Order { kChosenByUser, kChosenByService };
  enum class Offsets { kAllowed, kForbidden };

  // This outlives the parse.
  void Declare(CLI::App& app, Order order, Offsets offsets);

  // The scenario that the flags describe.
  v1::Scenario scenario() const;
  // The same with so many workers.
  v1::Scenario With(int32_t workers) const;
  // The same without an order of transfers.
  v1::Scenario WithoutOrder(int32_t workers) const;
  // The number of workers in the groups; none: no group was given.
  std::optional<int64_t> GroupedWorkers() const;

  // Workers of a node, by the flags or the cluster; 1 where neither says it.
  int32_t WorkersPerNode() const;
  // The numbers of workers to ask about where none is asked for: 1 to 16; with several workers a
  // node those that fill nodes, up to eight nodes.
  std::vector<int32_t> DefaultCounts() const;

  // Tells people which cluster's figures are in force, and how a rate was understood; quiet where
  // the output is JSON.
  void Explain(const Session& session) const;

 private:
  // All that flags say, but for recorded_kind_only.
  v1::Scenario Asked() const;
  enum class Streams { kWhole, kWindow, kRoundRobin };

  // Throws CLI::ValidationError where flags of streams contradict each other.
  void CheckStreams() const;
  // The counts that divide a batch of all workers, where one was given.
  std::vector<int32_t> CountsThatDivide(std::vector<int32_t> counts) const;
  // A message from a file of JSON. Throws CLI::ValidationError where it is none.
  static void ReadMessage(const char* flag, const std::string& path,
                          google::protobuf::Message& message);
  // REQUIRES: declared before all other flags, which replace what the file says.
  void DeclareFile(CLI::App& app);
  void DeclareLinks(CLI::App& app);
  void DeclareSharing(CLI::App& app);
  void DeclareMultiplexing(CLI::App& app);
  void DeclareWorkers(CLI::App& app, Offsets offsets);
  void DeclareOrder(CLI::App& app);
  // REQUIRES: a cluster was given.
  std::string ClusterText() const;

  void DeclareCollectives(CLI::App& app);
  // Each adds its options: what a collective takes, how gradients are fused, and all else.
  void DeclareCollectiveTimes(CLI::App& app, std::vector<CLI::Option*>& options);
  void DeclareFusion(CLI::App& app, std::vector<CLI::Option*>& options);
  void DeclareSlowdowns(CLI::App& app, std::vector<CLI::Option*>& options);
  // Throws CLI::ValidationError where flags of both kinds of job were given.
  void CheckKind(const CLI::App& app) const;
  // Throws the same where gradients would be fused in two ways.
  static void CheckFusion(const CLI::App& app);
  // Throws the same where a flag is of links that the job has not, or that make no difference.
  void CheckPlaces(const CLI::App& app) const;

  v1::ParameterServers& servers() {
    asks_servers_ = true;
    return *scenario_.mutable_parameter_servers();
  }
  v1::AllReduce& collectives() {
    asks_collectives_ = true;
    return *scenario_.mutable_all_reduce();
  }

  v1::Scenario scenario_;  // but for how streams share a connection
  std::optional<Streams> streams_;
  std::optional<int64_t> window_bytes_;
  std::optional<int64_t> quantum_bytes_;
  std::string bandwidth_text_;
  std::string told_;  // of the change's flags
  std::optional<ClusterPreset> cluster_;
  bool asks_servers_ = false;
  bool asks_collectives_ = false;
  bool names_kind_ = false;  // by --servers or --all-reduce, which alone may change it
};

}  // namespace stepcast::client
