#include "core/communication/job.h"

#include <utility>

#include "core/communication/parameter_servers.h"

namespace stepcast {

absl::StatusOr<JobProgram> BuildJobProgram(const Profile& profile, const Scenario& scenario,
                                           StopCheck stop) {
  if (scenario.has_servers()) {
    absl::StatusOr<Program> program =
        BuildProgram(profile, scenario, ProgramTimes::kRecorded, stop);
    if (!program.ok()) return program.status();
    return JobProgram{.program = std::make_shared<const Program>(*std::move(program)),
                      .collectives = {},
                      .ring = {}};
  }
  absl::StatusOr<CollectiveProgram> program = BuildCollectiveProgram(profile, scenario, stop);
  if (!program.ok()) return program.status();
  return JobProgram{.program = std::make_shared<const Program>(std::move(program->program)),
                    .collectives = std::move(program->collectives),
                    .ring = std::move(program->ring)};
}

bool HaveSameJobProgram(const Scenario& a, const Scenario& b) {
  if (a.has_servers() != b.has_servers()) return false;
  return a.has_servers() ? HaveSameProgram(a, b) : HaveSameCollectiveProgram(a, b);
}

JobGraph JobOf(const JobProgram& job, std::shared_ptr<const Ranking> ranking,
               const Scenario& scenario) {
  if (scenario.has_servers()) return JobOf(job.program, std::move(ranking), scenario);
  return CollectiveJobOf(job.program, job.collectives, job.ring, scenario);
}

Resource ResourceOf(const LaneSpec& lane) {
  return lane.role == LaneRole::kJoint ? Resource::kCollective : ServerLanes::ResourceOf(lane);
}

}  // namespace stepcast
