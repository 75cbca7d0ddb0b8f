// Parameter servers: the placement of parameters on them, and the job they make.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/bandwidth.h"
#include "core/base/stop_check.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// The server of each operation, by its index; 0 for WORKER operations.
//
// On the recorded number of servers: as recorded. On another: each parameter goes, in graph order
// of its first operation that is not WORKER, to the server with the fewest bytes so far, the lowest
// index among equals (ICPE 2020, section 5, Fig. 23); of all-reduced gradients from the last to the
// first. A parameter's bytes are those of its downloads, or of its uploads if it has none.
// REQUIRES: servers >= 1; on another number than recorded every transfer and PARAMETER_SERVER
// operation names its parameter.
std::vector<int32_t> PlaceParameters(const Profile& profile, int32_t servers);

// A job with parameter servers: asynchronous or synchronous training as a program on lanes.
//
// Source: ICPE 2020, 3.2.1, 3.4 and 5. Every transfer's work is its size at the scenario's
// bandwidth, its parsing overhead is an operation of its own on the receiver right after it, and
// parameters are placed on the scenario's servers. Of a profile whose gradients are all-reduced,
// each parameter is downloaded at the begin of the step, and its gradient uploaded where it was
// reduced: what uses the parameter first in the forward (ForwardUses) waits for the download, what
// waited for the sum for the upload. What a server does with it takes no time but parsing. Each
// worker has one compute lane, and for each server a lane for what it does for this worker, a
// downlink and an uplink. Threads: pure functions.

// The lanes of a worker, by the number of servers.
struct ServerLanes {
  int32_t servers = 1;

  // Networks of the job.
  static constexpr int32_t kDownlinks = 0;
  static constexpr int32_t kUplinks = 1;

  static constexpr LaneIndex kWorker = 0;
  LaneIndex Server(int32_t server) const { return 1 + server; }
  LaneIndex Downlink(int32_t server) const { return 1 + servers + server; }
  LaneIndex Uplink(int32_t server) const { return 1 + 2 * servers + server; }

  LaneIndex count() const { return 1 + 3 * servers; }
  Lanes Specs() const;

  // Of a program that BuildProgram made.
  static ServerLanes Of(const Program& program) {
    return {.servers = program.lanes().CountOf(kDownlinks)};
  }
  // The resource that a lane stands for; LaneSpec::index is the server's.
  static Resource ResourceOf(const LaneSpec& lane);
  static Resource ResourceOf(const Program& program, OpIndex op) {
    return ResourceOf(program.lanes()[program.lane(op)]);
  }
};

// A transfer as its stream's window cuts it, in bytes: ICPE 2020, 3.2.2. A stream no larger than
// the window is one service; what is left of another goes in one more, or in turns of the quantum.
struct StreamServices {
  int64_t first = 0;   // the whole, where there is but one service
  int64_t middle = 0;  // each service between the first and the last
  int64_t last = 0;    // the last service, of several
  int32_t count = 1;

  // `quantum_bytes` 0: all that is left in one. REQUIRES: size_bytes > 0.
  static StreamServices Whole(int64_t size_bytes) { return {.first = size_bytes}; }
  static StreamServices Windowed(int64_t size_bytes, int64_t window_bytes, int64_t quantum_bytes);
  static StreamServices Of(int64_t size_bytes, const Multiplexing& multiplexing);

  // REQUIRES: 0 <= service < count.
  int64_t BytesOf(int32_t service) const {
    return service == 0 ? first : service + 1 < count ? middle : last;
  }
  TransferWork WorkOn(const Bandwidth& link) const;
};

// The times of a program's computations: those recorded, or a single step in which each takes its
// least recorded time (TicTac, 5).
enum class ProgramTimes : uint8_t { kRecorded, kLeast };

// Depends on the scenario's servers, bandwidth, parsing overhead and multiplexing only, not on its
// workers. Linear in the profile's size. REQUIRES: scenario was resolved for this profile.
Program BuildProgram(const Profile& profile, const Scenario& scenario,
                     ProgramTimes times = ProgramTimes::kRecorded);
// The same. Failure: what `stop` returns, and that of CheckServers.
absl::StatusOr<Program> BuildProgram(const Profile& profile, const Scenario& scenario,
                                     ProgramTimes times, StopCheck stop);

// INVALID_ARGUMENT, reason SCENARIO_INVALID, field parameter_servers: the profile's gradients are
// all-reduced, and it does not say which computation needs which parameter (ForwardUses). Else OK.
absl::Status CheckServers(const Profile& profile);

// True if both have the same program, of one profile. REQUIRES: resolved.
bool HaveSameProgram(const Scenario& a, const Scenario& b);

// Ranks by recorded end, of every recorded step; equal ends, equal ranks. REQUIRES: the program is
// this profile's, with recorded times.
std::vector<int32_t> RecordedRanks(const Profile& profile, const Program& program);

// The scenario's job: its workers' speeds and links, how links are shared, and whether steps end
// together. REQUIRES: the program is this scenario's.
JobGraph JobOf(std::shared_ptr<const Program> program, std::shared_ptr<const Ranking> ranking,
               const Scenario& scenario);

}  // namespace stepcast
