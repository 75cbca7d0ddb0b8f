// The flags that describe a cluster: every field of Scenario but the number of workers.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "client/cli/session.h"

#include "stepcast/scenario.h"

namespace stepcast::client {

class ScenarioFlags {
 public:
  enum class Order { kChosenByUser, kChosenByService };
  enum class Offsets { kAllowed, kForbidden };

  // This outlives the parse.
  void Declare(CLI::App& app, Order order, Offsets offsets);

  // What the flags say.
  const Scenario& scenario() const { return scenario_; }
  // Tells people how a rate with a unit was understood; quiet where the output is JSON.
  void Explain(const Session& session) const;

 private:
  void DeclareLinks(CLI::App& app);
  void DeclareMultiplexing(CLI::App& app);
  void DeclareWorkers(CLI::App& app, Offsets offsets);
  void DeclareOrder(CLI::App& app);

  Scenario scenario_;
  std::string bandwidth_text_;
};

}  // namespace stepcast::client
