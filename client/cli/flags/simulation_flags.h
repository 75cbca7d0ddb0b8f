// The flags that say how long to simulate, and what a number of workers is chosen for.
#pragma once

#include <string>

#include "client/cli/flags/job_flags.h"

#include "stepcast/v1/recommendation.pb.h"
#include "stepcast/v1/scenario.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

// The flags that say how long to simulate: every field of SimulationOptions.
class SimulationFlags {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);
  // Only those that have an effect on a trace.
  void DeclareForTrace(CLI::App& app);
  // Only those that decide how much one of many calls computes.
  void DeclareForLoad(CLI::App& app);

  // The options that the flags describe.
  const v1::SimulationOptions& options() const { return options_; }

 private:
  void DeclareSteps(CLI::App& app, const std::string& help);
  void DeclareReplications(CLI::App& app);
  void DeclareChance(CLI::App& app);
  void DeclareHorizon(CLI::App& app);

  v1::SimulationOptions options_;
};

// The flags that say what a number of workers is chosen for: objective, constraints, prices and
// what a running job has.
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
