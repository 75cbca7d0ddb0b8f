// What a command asks the service, apart from how: in a call, or as a job.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/exit_code.h"
#include "client/cli/session.h"

#include "stepcast/job.h"

namespace stepcast::client {

class Question {
 public:
  virtual ~Question() = default;

  // Adds a command with the options of the question below `parent`, and returns it. The question
  // outlives the parse.
  virtual CLI::App* Declare(CLI::App& parent) = 0;

  // What a terminal shows while it is answered: `predicting`.
  virtual std::string Activity() const = 0;

  // REQUIRES, of all below: the parse chose it.

  // Whether all that it is about is in files.
  virtual bool NeedsNoServer() const = 0;
  // Whether the flags go together: kDone, or kMisused, reported.
  virtual ExitCode Check(const Session&) const { return ExitCode::kDone; }
  // A flag that was given and says what else to do with the answer; empty: none was.
  virtual std::string_view AnswerFlag() const { return {}; }
  // What to send. Tells people how flags were understood.
  virtual absl::StatusOr<JobComputation> Ask(const Session& session) const = 0;
  // Reports what Ask failed with, or what the service answered.
  virtual ExitCode Report(const Session& session, const absl::Status& status) const = 0;
  // Prints the reply to what was asked. REQUIRES: it is of the same kind.
  virtual ExitCode Answer(const Session& session, const JobComputation& asked,
                          const JobReply& reply) const = 0;
};

}  // namespace stepcast::client
