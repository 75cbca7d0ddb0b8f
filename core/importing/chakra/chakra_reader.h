// The nodes of a Chakra execution trace, read one by one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/importing/common/byte_source.h"
#include "core/model/profile.h"

namespace stepcast {

struct ChakraNode {
  // By their numbers in the schema.
  enum class Type : uint8_t {
    kInvalid,
    kMetadata,
    kMemoryLoad,
    kMemoryStore,
    kComputation,
    kSend,
    kReceive,
    kCollective,
  };
  static constexpr Type kLastType = Type::kCollective;

  int64_t id = 0;  // 0 is one, too
  std::string name;
  Type type = Type::kInvalid;
  std::vector<int64_t> data_dependencies;  // ids; control dependencies say who called, and are none
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  bool on_host = false;          // is_cpu_op; where it is missing the node is a device's
  int64_t collective_type = -1;  // comm_type, by its number in the schema; -1: missing
  int64_t size_bytes = -1;       // comm_size; -1: missing
  int64_t stream = 0;
};

// Protobuf messages that each follow their length, the first of them GlobalMetadata, or JSON with
// the nodes as `workload_graph` or `nodes`, whose keys may be spelled in any of the ways seen
// (data_deps, dataDeps, DataDeps; runtime for duration_micros). Names keep their printable ASCII.
// Failure: INVALID_ARGUMENT, reason IMPORT_INVALID, at `recording`, where the bytes are neither, or
// a limit is passed; what the source or `stop` fails with.
// Source: mlcommons/chakra, schema/protobuf/et_def.proto, version 0.0.4.
absl::StatusOr<std::vector<ChakraNode>> ReadChakraTrace(ByteSource& source,
                                                        const ProfileLimits& limits,
                                                        StopCheck stop);

}  // namespace stepcast
