// A computation: the rest of a request that has been checked.
//
// Keeps its profile alive; may be run on any thread, once.
// A time budget counts from the checking on.
#pragma once

#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include "core/base/stop_check.h"
#include "server/handlers/expected_work.h"

namespace stepcast::server {

template <typename Answer>
class Computation {
 public:
  using Run = absl::AnyInvocable<absl::StatusOr<Answer>(StopCheck) &&>;

  // `content`: see below.
  Computation(std::string content, ExpectedWork work, Run run)
      : content_(std::move(content)), work_(std::move(work)), run_(std::move(run)) {}

  absl::StatusOr<Answer> operator()(StopCheck stop) && { return std::move(run_)(stop); }

  // Digests of the profiles it computes with: with the same ones, an equal request of the same
  // method has the same answer. Empty where it must not be shared, because it says what a profile's
  // store failed with.
  const std::string& content() const { return content_; }
  const ExpectedWork& work() const { return work_; }

 private:
  std::string content_;
  ExpectedWork work_;
  Run run_;
};

}  // namespace stepcast::server
