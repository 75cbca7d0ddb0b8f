#include "client/cli/job_outcome.h"

#include <variant>

#include "absl/strings/str_cat.h"

namespace stepcast::client {

ExitCode JobsNeedServer(const Session& session) {
  return session.Misused("jobs need a server; --local has none");
}

ExitCode ReplyUnknown(const Session& session, const Job& job) {
  return session.Refused(absl::UnimplementedError(
      absl::StrCat(job.name, " is done, but this program does not know its kind of answer")));
}

ExitCode OutcomeOf(const Session& session, const Job& job) {
  if (!job.status.ok()) return session.Refused(job.status);
  if (job.done && std::holds_alternative<std::monostate>(job.reply))
    return ReplyUnknown(session, job);
  return ExitCode::kDone;
}

}  // namespace stepcast::client
