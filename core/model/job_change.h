// A job that differs from the recorded one: another batch, several micro-batches a step, a faster
// device, smaller gradients. It is asked about with a profile as it would then have been recorded.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "core/model/profile.h"

namespace stepcast {

inline constexpr int32_t kMaxMicroBatchesOfStep = 1024;
inline constexpr double kMinGradientBytesFactor = 1e-3;

// The changes asked for; an empty one leaves the job as recorded.
struct JobChange {
  // Examples of a worker and step, or of each micro-batch with `accumulate`; 1 to 2^31 - 1.
  std::optional<int32_t> batch_size;
  // Share of forward and backward, 0 to 1, that does not grow with the batch. Empty: told by a
  // second recording, or 0, which is told as an assumption. Only with a batch.
  std::optional<double> fixed_fraction;
  // Examples of a step of all workers together, at least 1: each has as many of them, in as many
  // micro-batches as accumulate says. For SharedBatch; in place of batch_size.
  std::optional<int64_t> global_batch_size;
  // Micro-batches whose gradients add up before they are sent, 1 to kMaxMicroBatchesOfStep
  // (DistributedDataParallel's no_sync in all but the last). Only of profiles without sharded
  // parameters, and in scenarios that WhyNotAccumulated admits.
  std::optional<int32_t> accumulate;
  // Speed of the workers' devices over that of the recorded one: kMinComputeSpeedFactor to
  // kMaxComputeSpeedFactor. What devices wait for their hosts (device_idle_fraction) stays.
  std::optional<double> compute_speed_factor;
  // Bytes of gradients over the recorded ones, kMinGradientBytesFactor to 1: 0.5 for 16 bits in
  // place of 32.
  std::optional<double> gradient_bytes_factor;

  bool any() const { return *this != JobChange{}; }
  friend bool operator==(const JobChange&, const JobChange&) = default;
};

// An assumption that an answer rests on, told to people.
struct Assumption {
  std::string field;    // its path in the scenario, `all_reduce.latency_seconds`
  std::string value;    // with its unit
  std::string message;  // a sentence

  friend bool operator==(const Assumption&, const Assumption&) = default;
};

// A mean that two recordings draw: how far the relative error of the first one's mean is in it, and
// what the second one's mean adds, the standard error of a logarithm.
struct DrawnMean {
  double of_first = 1;
  double error_of_second = 0;
};

// A change, and what it rests on.
struct AppliedChange {
  JobChange change;
  std::vector<Assumption> told;
  DrawnMean mean;  // of what workers compute in a step
  // The operations that were recorded; those behind them are of micro-batches that were added.
  int32_t recorded_operations = 0;
};

// The profile of the changed job. Computation by its workers takes the recorded time x its factor,
// what follows in a step comes as much later or earlier, and what is kept or handed on grows with
// the batch. The optimizer does not: it is what has its pass, or waits for summed gradients.
//
// `second`: another recording of the same job, with another batch; null: none. Then an operation
// of either name takes c0 + c1 x batch by the means of both (not below 0), one that only the first
// has as much longer as all others together. Fails with INVALID_ARGUMENT, reason
// JOB_CHANGE_INVALID, and every fault, its path relative to the change. The profile says what was
// changed (Profile::change). Cost: linear in the recorded times, O(n log n) in a step's operations.
absl::StatusOr<Profile> ChangedProfile(const Profile& profile, const JobChange& change,
                                       const Profile* second, const ProfileLimits& limits = {});

// Waits for a host, by Profile's device_idle_fraction: of a lone worker's step in its stream 0, or
// none where that is not known.
struct HostShares {
  double data_loading = 0;    // of the step
  double idle_of_device = 0;  // of all but data loading: the device waits for its host
  double host_alone = 0;      // what the host takes beside the step, over it
};
HostShares HostSharesOf(const Profile& profile);
// The speed of a lone worker, over what it is, whose device is so many times as fast: waits for a
// host and for data stay.
double SpeedWithDevice(const Profile& profile, double device_speed);

// The share of a byte of gradients that is sent, by a hook that compresses and by a change.
double SentShareOf(const Profile& profile);
// The bytes of the parameters of gradients of which so many bytes are sent: nothing compresses
// them.
int64_t ParameterBytesOf(const Profile& profile, int64_t sent_bytes);

}  // namespace stepcast
