// Implementations of OperationStore, for tests of what all promise. Each test program says which it
// has.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/base/clock.h"
#include "server/store/operation_store.h"

namespace stepcast::server {

// A store and what it needs.
class OperationStores {
 public:
  virtual ~OperationStores() = default;
  // To be asked for anew for every call: it may bring the test's clock to the store first.
  virtual OperationStore& operations() = 0;
};

struct OperationStoreKind {
  std::string name;
  uint64_t seeds = 0;             // of random plays that take a second or two
  bool has_steady_leases = true;  // whatever the time of day does
  // Empty; null if it could not be made. The clock is borrowed.
  std::function<std::unique_ptr<OperationStores>(const OperationLimits& limits, const Clock& clock)>
      make;
  // The reason why there can be none here; empty if there can.
  std::function<std::string()> missing = [] { return ""; };
};

std::vector<OperationStoreKind> OperationStoreKinds();

}  // namespace stepcast::server
