// A strategy for a job: operations that are computed as one, gradients that one collective carries,
// or that go to a parameter server as one tensor, and the parts that it is cut in; and the job that
// it makes of a profile.
//
// Source: dPRO (MLSys 2022), section 5: op fusion, tensor fusion and tensor partition.
// Threads: pure functions; values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/advise/fusion_costs.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/step_model.h"
#include "core/predict/device_use.h"

namespace stepcast {

// The gradients that go as one, by index of the profile's operations, in graph order, cut evenly in
// so many parts, which go one after the other. To parameter servers: with the updates of their
// parameters, and the downloads.
struct FusedTensors {
  std::vector<int32_t> gradients;
  int32_t partitions = 1;

  friend bool operator==(const FusedTensors&, const FusedTensors&) = default;
  friend auto operator<=>(const FusedTensors&,
                          const FusedTensors&) = default;  // NOLINT(modernize-use-nullptr)
};

struct Strategy {
  // Computations that are one, each list of at least two that follow each other on one stream.
  std::vector<std::vector<int32_t>> fused;
  // Every gradient of the profile in one group, in graph order.
  std::vector<FusedTensors> tensors;
  // To parameter servers: what the first layer needs goes first, there and back, as BytePS has it,
  // instead of in the scenario's order. Layers are in the order of the downloads at the begin of a
  // step; where there are none, against that of the uploads.
  bool by_layer = false;

  friend bool operator==(const Strategy&, const Strategy&) = default;
  friend auto operator<=>(const Strategy&,
                          const Strategy&) = default;  // NOLINT(modernize-use-nullptr)
};

// Every gradient by itself, whole, and nothing fused.
Strategy NothingFused(const Profile& profile);

// OK where the tensors of a job with parameter servers can be fused and cut: every upload names a
// parameter of its own, by which its download and updates are known. Else INVALID_ARGUMENT, naming
// the upload.
absl::Status CheckParameters(const Profile& profile);

struct AppliedStrategy {
  Profile profile;
  // Collectives as they stand in the profile; ranks of explicit orders; no other parts.
  Scenario scenario;
};

// The job with a strategy. Fused operations stand where the last of them stood and have its name; a
// collective waits for all that its gradients wait for, and stands where the last of them stood;
// its parts wait alike.
//
// An upload of several gradients is as such a collective. Of each of its parts, what the updates
// took together in even parts is one update, which stands where the last of them stood; what the
// downloads were is one download for each part, which stands where the first of them stood and
// whose rank is the lowest of theirs. On as many servers as recorded, groups and parts go, in graph
// order, each to the server with the fewest bytes, beside what stays where it was.
//
// Fails with INVALID_ARGUMENT where an operation would wait for itself, or a limit of profiles is
// passed. REQUIRES: the scenario is of collectives, whole and not sharded, or of servers and the
// profile of such as CheckParameters takes; the costs are known.
// Cost: linear in operations, dependencies and recorded times.
absl::StatusOr<AppliedStrategy> Apply(const Profile& profile, const Scenario& scenario,
                                      const Strategy& strategy, const FusionCosts& costs);

}  // namespace stepcast
