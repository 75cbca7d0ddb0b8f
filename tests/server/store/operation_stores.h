// Every implementation of OperationStore, for tests of what all promise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/base/clock.h"
#include "server/store/memory_operation_store.h"
#include "server/store/operation_limits.h"
#include "server/store/operation_store.h"
#include "server/store/sqlite_database.h"
#include "server/store/sqlite_operation_store.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server {

// A store and what it needs.
class OperationStores {
 public:
  virtual ~OperationStores() = default;
  virtual OperationStore& operations() = 0;
};

struct OperationStoreKind {
  std::string name;
  uint64_t seeds = 0;  // of random plays that take a second or two
  // Empty; null if it could not be made. The clock is borrowed.
  std::function<std::unique_ptr<OperationStores>(const OperationLimits& limits, const Clock& clock)> make;
};

class MemoryOperationStores final : public OperationStores {
 public:
  MemoryOperationStores(const OperationLimits& limits, const Clock& clock) : store_(limits, clock) {}
  OperationStore& operations() override { return store_; }

 private:
  MemoryOperationStore store_;
};

class SqliteOperationStores final : public OperationStores {
 public:
  static std::unique_ptr<OperationStores> Make(const OperationLimits& limits, const Clock& clock) {
    auto stores = std::make_unique<SqliteOperationStores>();
    absl::StatusOr<std::unique_ptr<SqliteDatabase>> database = SqliteDatabase::Open({.directory = stores->directory_.path()});
    if (!database.ok()) return nullptr;
    stores->database_ = *std::move(database);
    absl::StatusOr<std::unique_ptr<SqliteOperationStore>> store = SqliteOperationStore::Open(*stores->database_, limits, clock);
    if (!store.ok()) return nullptr;
    stores->store_ = *std::move(store);
    return stores;
  }
  OperationStore& operations() override { return *store_; }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<SqliteDatabase> database_;
  std::unique_ptr<SqliteOperationStore> store_;
};

inline std::vector<OperationStoreKind> OperationStoreKinds() {
  return {{.name = "Memory",
           .seeds = 200,
           .make = [](const OperationLimits& limits, const Clock& clock) { return std::make_unique<MemoryOperationStores>(limits, clock); }},
          {.name = "Sqlite", .seeds = 5, .make = SqliteOperationStores::Make}};
}

}  // namespace stepcast::server
