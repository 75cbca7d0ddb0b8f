// The flags that say what a number of workers is chosen for: objective, constraints, prices and
// what a running job has.
#pragma once

#include "client/cli/flags/job_flags.h"

#include "stepcast/v1/recommendation.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

class RecommendFlags {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);

  // `--workers`: only the numbers of a list. Apart, for a command may have a list of its own.
  void DeclareList(CLI::App& app);

  // The request that the flags describe, without source, scenario and options. Constraints are
  // always set.
  v1::RecommendWorkersRequest request() const;

 private:
  void DeclareConstraints(CLI::App& app);
  void DeclareCurrent(CLI::App& app);

  v1::RecommendWorkersRequest request_;  // but for the plan
  PlanFlags plan_;
};

}  // namespace stepcast::client
