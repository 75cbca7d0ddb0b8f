// Parameter servers: the program of a worker's step, and the job they make.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "core/engine/job_graph.h"
#include "core/engine/program.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"

namespace stepcast {

// A job with parameter servers: asynchronous, synchronous or summing training, on lanes.
//
// Source: ICPE 2020, 3.2.1, 3.4 and 5. Every transfer's work is its size at the scenario's
// bandwidth, its parsing overhead is an operation of its own on the receiver right after it, and
// parameters are placed on the scenario's servers. Of a profile whose gradients are all-reduced,
// each parameter is downloaded at the begin of the step, and its gradient uploaded where it was
// reduced: what uses the parameter first in the forward (ForwardUses) waits for the download, what
// waited for the sum for the upload. What a server does with it takes no time but parsing. Where
// servers sum, a step of such a profile begins with its backward pass (WithoutStepBarrier), and
// each gradient is uploaded, then downloaded as soon as the uploads of all workers have ended; of a
// profile of servers, downloads wait for all workers as SumsOf says. Each worker has one compute
// lane, and for each server a lane for what it does for this worker, a downlink and an uplink.
// Threads: pure functions.

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

  // Lanes of a program that BuildProgram made.
  static ServerLanes Of(const Program& program) {
    return {.servers = program.lanes().CountOf(kDownlinks)};
  }
  // The resource that a lane stands for; LaneSpec::index is the server's.
  static Resource ResourceOf(const LaneSpec& lane);
  static Resource ResourceOf(const Program& program, OpIndex op) {
    return ResourceOf(program.lanes()[program.lane(op)]);
  }
};

// The times of a program's computations: those recorded, or a single step in which each takes its
// least recorded time (TicTac, 5).
enum class ProgramTimes : uint8_t { kRecorded, kLeast };

// Depends on the scenario's servers, bandwidth, parsing overhead, multiplexing, parts, and whether
// it sums only, not on its workers. Linear in the profile's size, and SumsOf. REQUIRES: scenario
// was resolved for this profile.
Program BuildProgram(const Profile& profile, const Scenario& scenario,
                     ProgramTimes times = ProgramTimes::kRecorded);
// The same. Failure: what `stop` returns, and that of CheckServers.
absl::StatusOr<Program> BuildProgram(const Profile& profile, const Scenario& scenario,
                                     ProgramTimes times, StopCheck stop);

// INVALID_ARGUMENT, reason SCENARIO_INVALID, field parameter_servers: the profile's gradients are
// all-reduced, and it does not say which computation needs which parameter (ForwardUses);
// synchronization: as SumsOf; partition_bytes: too many parts wait for parts. Else OK.
absl::Status CheckServers(const Profile& profile, const Scenario& scenario);

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
