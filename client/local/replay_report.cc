#include "client/local/replay_report.h"

#include "client/src/convert/profile_proto.h"

#include "core/base/stop_check.h"
#include "core/model/profile.h"
#include "core/predict/replay_check.h"
#include "server/convert/profile_convert.h"
#include "stepcast/profile_encoding.h"
#include "stepcast/v1/profile.pb.h"

namespace stepcast::client {

absl::StatusOr<ReplayReport> ReplayProfile(std::string_view bytes) {
  const absl::StatusOr<Profile> parsed = ParseProfile(bytes);
  if (!parsed.ok()) return parsed.status();
  v1::Profile message;
  ToProto(*parsed, message);
  const absl::StatusOr<stepcast::Profile> profile = stepcast::Profile::Create(server::FromWire(message).draft);
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<ReplayCheck> check = CheckReplay(*profile, NeverStop);
  if (!check.ok()) return check.status();
  return ReplayReport{.recorded_step_seconds = check->recorded_step_seconds,
                      .replayed_step_seconds = check->replayed_step_seconds,
                      .fitted_transfer_seconds = check->fitted_transfer_seconds};
}

}  // namespace stepcast::client
