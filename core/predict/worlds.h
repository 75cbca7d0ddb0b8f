// The worlds of a job whose steps vary as modelled: as expected from its recording, and two that
// lie apart from that by known amounts, which tell how throughput answers to what a short recording
// leaves open.
//
// Jobs of collectives draw each step's factor while they run (StepScaling). Jobs with parameter
// servers repeat a list of steps made once, a recorded one with a factor each, so that the fast
// engines know them; factors stand at the middles of parts of equal probability. Threads: immutable
// once made.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/communication/job.h"
#include "core/engine/job_graph.h"
#include "core/engine/step_scaling.h"
#include "core/model/profile.h"
#include "core/model/step_model.h"

namespace stepcast {

enum class World : uint8_t {
  kExpected,
  kSlower,  // every computation takes longer by Worlds::kSlowerBy
  kWider,   // the deviations of steps' factors are Worlds::kWiderBy as large
};

// The most of Sensitivity::to_deviation, where so many wait for the slowest of them, whose factors
// deviate so much: n of a normal distribution have a maximum of at most the square root of 2 ln(n)
// deviations, on the mean.
double MostOfWaiting(double deviation, int32_t waiting);

class Worlds {
 public:
  static constexpr double kSlowerBy = 0.05;
  static constexpr double kWiderBy = 1.25;

  // Cost: linear in the profile's times.
  explicit Worlds(const Profile& profile);

  // The steps of workers.
  const StepModel& model() const { return workers_.model; }
  // MostOfWaiting, of workers and their servers.
  double MostOfWaiting(int32_t workers, int32_t servers) const;
  const std::shared_ptr<const StepScaling>& scaling(World world) const {
    return workers_.scaling[static_cast<size_t>(world)];
  }

  struct ListedJob {
    JobProgram job;
    std::shared_ptr<const Ranking> ranking;
  };
  // The job with parameter servers whose steps are listed; `barriers`: workers wait for each other
  // in every step. Memory: 64 to 128 steps, with barriers 256 to 512, or as many as were recorded,
  // of 8 bytes an operation. REQUIRES: `job` and `ranking` are of the profile, as recorded.
  ListedJob List(World world, const JobProgram& job, const Ranking& ranking, bool barriers) const;

 private:
  struct Part {
    StepModel model;
    std::array<std::shared_ptr<const StepScaling>, 3> scaling;  // by world
  };
  static Part PartOf(const Profile& profile, StepPart part);

  Part workers_;
  Part servers_;
};

}  // namespace stepcast
