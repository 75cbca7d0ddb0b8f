// A command of the program, and a question that a command may ask in a call or as a job.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/session.h"

#include "stepcast/v1/job_service.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

class Command {
 public:
  virtual ~Command() = default;

  // Adds itself below `parent`, and returns what it added. The command outlives the parse.
  virtual CLI::App* Declare(CLI::App& parent) = 0;

  // REQUIRES, of both below: the parse chose it.

  // True where it is about files alone, so that it is answered in this process where nobody has
  // named a server.
  virtual bool NeedsNoServer() const { return false; }
  virtual ExitCode Run(const Session& session) const = 0;
};

class Question {
 public:
  virtual ~Question() = default;

  // Adds a command with the options of the question below `parent`, and returns it. The question
  // outlives the parse.
  virtual CLI::App* Declare(CLI::App& parent) = 0;

  // The words that a terminal shows while it is answered: `predicting`.
  virtual std::string Activity() const = 0;

  // REQUIRES, of all below: the parse chose it.

  // True where it is about files alone.
  virtual bool NeedsNoServer() const = 0;
  // Checks that the flags go together: kDone, or kMisused, reported.
  virtual ExitCode Check(const Session&) const { return ExitCode::kDone; }
  // A flag that was given and says what else to do with the answer; empty: none was.
  virtual std::string_view AnswerFlag() const { return {}; }
  // The computation to ask for. Tells people how flags were understood.
  virtual absl::StatusOr<v1::StartJobRequest> Ask(const Session& session) const = 0;
  // Reports what Ask failed with, or what the service answered.
  virtual ExitCode Report(const Session& session, const absl::Status& status) const = 0;
  // Prints the reply to what was asked. REQUIRES: it is of the type of its method's replies.
  virtual ExitCode Answer(const Session& session, const v1::StartJobRequest& asked,
                          const google::protobuf::Message& reply) const = 0;
};

}  // namespace stepcast::client
