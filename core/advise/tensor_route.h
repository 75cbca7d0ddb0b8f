// The way of gradients to the other workers, as far as strategies differ by it: in collectives, or
// to parameter servers and back. It is asked for once of a scenario; nothing else of strategies
// asks which one a job has.
//
// Threads: none of their own. A route is of one profile and scenario, which must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "core/advise/strategy.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/predict/throughput.h"

namespace stepcast {

// An operation of a job with a strategy: what it is made of, and the part of it that it is.
struct WrittenOperation {
  enum class Made : uint8_t { kAsIs, kFused, kGradient, kUpdate, kDownload };

  Made made = Made::kAsIs;
  std::vector<int32_t> operations;  // of the profile
  int32_t part = 0;
  int32_t parts = 1;
};

class TensorRoute {
 public:
  // REQUIRES: as Apply.
  static std::unique_ptr<const TensorRoute> Of(const Profile& profile, const Scenario& scenario);
  virtual ~TensorRoute() = default;

  // Below, of the profile's operations.

  // True if a gradient that goes alone and whole stays the operation that it is.
  virtual bool KeepsLoneTensors() const = 0;
  // By operation, the gradient that takes it along, itself for a gradient; -1: none does.
  virtual std::vector<int32_t> CarriersOf() const = 0;
  // The parameter of the tensor that is made of such gradients.
  virtual std::string ParameterOf(const std::vector<int32_t>& gradients) const = 0;
  // The parameter of the tensor's part, counted from 0, that is not the first one.
  virtual std::string PartOf(const std::string& parameter, int32_t part) const = 0;

  // Below, of a job that is being written; `sources` are of the draft's operations.

  // Gives groups and parts their places.
  virtual void Place(const std::vector<WrittenOperation>& sources, ProfileDraft& draft) const = 0;
  // The scenario, in which no rule groups or cuts what the strategy has.
  virtual Scenario ScenarioOf(const Strategy& strategy,
                              const std::vector<WrittenOperation>& sources,
                              const ProfileDraft& draft) const = 0;
  // A fault of the job that was written: INVALID_ARGUMENT.
  virtual absl::Status Check(const AppliedStrategy& written) const = 0;

  // Below, of a search.

  // By operation, when each gradient is ready, in seconds from the step's begin. `collectives`: of
  // a replay in which each goes by itself.
  virtual std::vector<double> ReadySeconds(
      const std::vector<CollectiveTiming>& collectives) const = 0;
  // Seconds of a tensor's parts by themselves, one after the other; none: they share links, which
  // LonePartsOf simulates.
  virtual std::optional<double> SecondsOf(int64_t bytes, int32_t partitions) const = 0;
  // The job of the parts alone, each once a step. Failure: as Profile::Create.
  virtual absl::StatusOr<AppliedStrategy> LonePartsOf(int64_t bytes, int32_t partitions) const = 0;
  // True if the chain has all that a step consists of, each tensor with its one time.
  virtual bool IsChain() const = 0;

  // Below, for an answer.

  // The name of what gradients go in, in the plural.
  virtual const char* noun() const = 0;
  // The reason why no least time is known of such a job; empty: one is.
  virtual const char* why_no_bound() const = 0;
};

}  // namespace stepcast
