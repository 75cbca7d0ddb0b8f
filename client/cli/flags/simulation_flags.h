// The flags that say how long to simulate: every field of SimulationOptions.
#pragma once

#include <string>

#include "stepcast/v1/scenario.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace stepcast::client {

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

}  // namespace stepcast::client
