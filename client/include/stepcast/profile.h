// A training profile, as the service takes and returns it.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/profile.proto. The structs are
// plain values and check nothing: the service does. Threads: as any value.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::client {

// The kinds of resource an operation runs on.
enum class Resource : int32_t {
  kUnspecified = 0,      // refused in an operation
  kDownlink = 1,         // a transfer from a parameter server to the worker
  kWorker = 2,           // a computation of the worker
  kUplink = 3,           // a transfer from the worker to a parameter server
  kParameterServer = 4,  // a computation of a parameter server for this worker
};

// DOWNLINK, WORKER, UPLINK, PARAMETER_SERVER; RESOURCE_UNSPECIFIED for any other value.
std::string_view ResourceName(Resource resource);

// Time a receiver needs to parse a tensor: seconds_per_byte * size + seconds.
struct ParsingOverhead {
  double seconds_per_byte = 0;
  double seconds = 0;

  friend bool operator==(const ParsingOverhead&, const ParsingOverhead&) = default;
};

// The machines and the network of a recording.
struct Platform {
  double bandwidth_bytes_per_second = 0;  // payload, of one link, in each direction; required
  ParsingOverhead parsing_overhead;
  int64_t window_bytes =
      0;  // what a stream may send before others get their turn; 0: streams are sent whole

  friend bool operator==(const Platform&, const Platform&) = default;
};

// One operation of a step.
struct Operation {
  std::string name;  // unique within the profile
  Resource resource = Resource::kUnspecified;
  int32_t parameter_server = 0;      // index
  int64_t size_bytes = 0;            // of a transfer; 0 for computations
  std::vector<int32_t> waiting_for;  // indices of operations, earlier or later
  std::string parameter;  // the variable that a download, its upload and its update belong to

  friend bool operator==(const Operation&, const Operation&) = default;
};

// When each operation ran in one recorded step; both vectors are parallel to the operations.
struct Step {
  std::vector<int64_t> start_ns;  // from the start of the step
  std::vector<int64_t> end_ns;

  friend bool operator==(const Step&, const Step&) = default;
};

// What one worker did in a few training steps.
struct Profile {
  std::string name;  // output: `profiles/{profile}`
  std::string display_name;
  std::string model;
  std::string framework;
  std::map<std::string, std::string> labels;
  int32_t batch_size = 0;  // examples per worker and step
  Platform platform;
  int32_t parameter_servers = 0;  // 0 means 1
  std::vector<Operation> operations;
  std::vector<Step> steps;
  std::string digest;  // output: SHA-256 (hex) of the content without name, display name and labels
  std::string etag;    // output
  std::optional<std::chrono::sys_time<std::chrono::nanoseconds>> create_time;  // output
  int64_t size_bytes = 0;       // output: of the stored content
  int32_t operation_count = 0;  // output, also where `operations` is left out
  int32_t step_count = 0;       // output, also where `steps` is left out
  std::string owner;            // output: the client who stored it first; empty: one without a name

  friend bool operator==(const Profile&, const Profile&) = default;
};

}  // namespace stepcast::client
