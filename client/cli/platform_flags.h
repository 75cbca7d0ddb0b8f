// The flags that describe the platform of a profile that is made.
#pragma once

#include <CLI/App.hpp>

#include "stepcast/profile.h"

namespace stepcast::client {

class PlatformFlags {
 public:
  // This outlives the parse.
  void Declare(CLI::App& app);

  // What the flags say.
  const Platform& platform() const { return platform_; }

 private:
  Platform platform_;
};

}  // namespace stepcast::client
