// Time that passes only while somebody sleeps, and chance that is known.
#pragma once

#include <vector>

#include "client/src/retry.h"

namespace stepcast::client {

class FakeRetryEnvironment : public RetryEnvironment {
 public:
  // Outlives the environment, which a connection owns.
  struct World {
    Time now{};
    std::vector<std::chrono::nanoseconds> sleeps;
    double chance = 0;
    std::chrono::nanoseconds per_look{0};  // what passes with every look at the clock
  };

  explicit FakeRetryEnvironment(World& world) : world_(world) {}

  Time Now() override { return world_.now += world_.per_look; }
  void Sleep(std::chrono::nanoseconds length) override {
    world_.sleeps.push_back(length);
    world_.now += length;
  }
  double Chance() override { return world_.chance; }

 private:
  World& world_;
};

}  // namespace stepcast::client
