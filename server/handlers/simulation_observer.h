// Observers of predictions: of the computations behind them, and of answers that were computed for
// another call. For metrics.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace stepcast::server {

// The ways in which the jobs of a call exchange their updates; kPipeline where all-reducing workers
// are replicas of a pipeline, kBoth where a call has scenarios of several ways.
enum class Communication : unsigned char { kParameterServers, kAllReduce, kBoth, kPipeline };
inline constexpr Communication kCommunications[] = {Communication::kParameterServers,
                                                    Communication::kAllReduce, Communication::kBoth,
                                                    Communication::kPipeline};

// Kinds of jobs that a method simulates, a bit a Communication.
using JobKinds = unsigned;
constexpr JobKinds KindBit(Communication communication) {
  return 1U << static_cast<unsigned>(communication);
}
inline constexpr JobKinds kNothingSimulated = 0;
inline constexpr JobKinds kOfServers = KindBit(Communication::kParameterServers);
inline constexpr JobKinds kOfAllReduces = KindBit(Communication::kAllReduce);
inline constexpr JobKinds kOfPipelines = KindBit(Communication::kPipeline);
// Any one of them: only a cluster or a list of scenarios has jobs of several.
inline constexpr JobKinds kOneKind = kOfServers | kOfAllReduces | kOfPipelines;
inline constexpr JobKinds kAllKinds = kOneKind | KindBit(Communication::kBoth);

struct SimulatingMethod {
  std::string_view name;
  JobKinds kinds = kNothingSimulated;
};

// A computation: the method of its call, and the kind of job.
struct SimulatedWork {
  std::string_view method;  // of a SimulatingMethod
  Communication communication = Communication::kParameterServers;
};

// An observer of every computation behind a prediction. For metrics.
class SimulationObserver {
 public:
  virtual ~SimulationObserver() = default;
  // Threads: called by any.
  virtual void OnSimulation(const SimulatedWork& work, absl::StatusCode code, double seconds,
                            int64_t simulated_operations) = 0;
  // So many predictions of an answer had not reached their steady state.
  virtual void OnUnsteady(const SimulatedWork& work, int64_t predictions) = 0;
};

// From a call before, or from one under way.
enum class SharedFrom : unsigned char { kCache, kFlight };

// An observer of answers that were computed for another call. For metrics.
class SharingObserver {
 public:
  virtual ~SharingObserver() = default;
  // `method` is of a SimulatingMethod. Threads: called by any.
  virtual void OnShared(std::string_view method, SharedFrom from) = 0;
};

}  // namespace stepcast::server
