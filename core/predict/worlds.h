// The worlds of a job whose steps vary as modelled: as expected from its recording, and two that
// lie apart from that by known amounts, which tell how throughput answers to what a short recording
// leaves open.
//
// Jobs of collectives draw each step's factor while they run (StepScaling). Jobs with parameter
// servers repeat a list of steps made once, a recorded one with a factor each, so that the fast
// engines know them; factors stand at the middles of parts of equal probability. Threads: immutable
// once made. Memory: with servers three lists of some 64 to 320 steps, or as many as were recorded,
// of 8 bytes an operation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/communication/job.h"
#include "core/engine/job_graph.h"
#include "core/engine/step_scaling.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/step_model.h"

namespace stepcast {

enum class World : uint8_t {
  kExpected,
  kSlower,  // every computation takes longer by kSlowerBy
  kWider,   // the deviations of steps' factors are kWiderBy as large
};

class Worlds {
 public:
  static constexpr double kSlowerBy = 0.05;
  static constexpr double kWiderBy = 1.25;

  struct Of {
    std::shared_ptr<const StepScaling> scaling;  // null with servers
    JobProgram job;
    std::shared_ptr<const Ranking> ranking;  // null without
  };

  // `job` and `ranking`: as recorded. REQUIRES: they are the profile's and the scenario's.
  Worlds(const Profile& profile, const Scenario& scenario, const JobProgram& job,
         const std::shared_ptr<const Ranking>& ranking);

  const Of& at(World world) const { return worlds_[static_cast<size_t>(world)]; }
  // The steps of workers.
  const StepModel& model() const { return workers_; }

 private:
  StepModel workers_;
  std::array<Of, 3> worlds_;
};

}  // namespace stepcast
