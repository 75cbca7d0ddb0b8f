// The flags that say how long to simulate: every field of SimulationOptions.
#pragma once

#include <CLI/App.hpp>

#include "stepcast/simulation_options.h"

namespace stepcast::client {

class SimulationFlags {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);

  // What the flags say.
  const SimulationOptions& options() const { return options_; }

 private:
  void DeclareHorizon(CLI::App& app);

  SimulationOptions options_;
};

}  // namespace stepcast::client
