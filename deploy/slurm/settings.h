// The settings of the Slurm plugin: /etc/slurm/stepcast.yaml, or the file that the environment's
// STEPCAST_SLURM_CONFIG names.
//
// A map of plain values; what is left out has its default. Errors: INVALID_ARGUMENT or NOT_FOUND,
// naming the file, the setting and, of what is no secret, its value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "stepcast/adviser.h"
#include "stepcast/client_options.h"
#include "stepcast/v1/recommendation.pb.h"

namespace stepcast::slurm {

// The use that is made of advice.
enum class Mode {
  kAdvise,  // it is told
  kSet,     // the range of nodes is narrowed to it, and that is told
};

// The rule by which a node has workers, where a comment does not say.
enum class NodeRule {
  kAuto,   // its GPUs where the job asks for some, else its tasks, else one
  kGpus,   // its GPUs; a job without gets no advice
  kTasks,  // its tasks, else one
  kFixed,  // workers_per_node
};

struct Settings {
  client::ClientOptions client;    // server, credentials
  client::AdviserOptions adviser;  // wait, call_timeout, keep
  Mode mode = Mode::kAdvise;
  NodeRule node_rule = NodeRule::kAuto;
  int32_t workers_per_node = 1;
  double intra_node_bandwidth_bytes_per_second = 0;  // of comments that name none; 0: not given
  bool raise_min = false;  // with kSet: the least number of nodes, too, to the least worth starting
  std::string objective = "knee";  // of comments that name none
  v1::Prices prices;
};

// A function that reads a file: of certificates, a key or a token.
using FileReader = absl::FunctionRef<absl::StatusOr<std::string>(const std::string& path)>;

// Settings in the file's text. Calls `read` for each file that it names.
absl::StatusOr<Settings> ParseSettings(const std::string& text, FileReader read);

absl::StatusOr<Settings> ReadSettings(const std::string& path);

}  // namespace stepcast::slurm
