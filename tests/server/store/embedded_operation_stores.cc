// The stores of operations that need no server of their own.
#include <memory>
#include <utility>
#include <vector>

#include "server/store/memory_stores.h"
#include "server/store/sqlite_database.h"
#include "server/store/sqlite_operation_store.h"
#include "tests/server/store/operation_stores.h"
#include "tests/server/store/temporary_directory.h"

namespace stepcast::server {

namespace {

class MemoryOperationStores final : public OperationStores {
 public:
  MemoryOperationStores(const OperationLimits& limits, const Clock& clock)
      : store_(limits, clock) {}
  OperationStore& operations() override { return store_; }

 private:
  MemoryOperationStore store_;
};

class SqliteOperationStores final : public OperationStores {
 public:
  static std::unique_ptr<OperationStores> Make(const OperationLimits& limits, const Clock& clock) {
    auto stores = std::make_unique<SqliteOperationStores>();
    absl::StatusOr<std::unique_ptr<SqliteDatabase>> database =
        SqliteDatabase::Open({.directory = stores->directory_.path()});
    if (!database.ok()) return nullptr;
    stores->database_ = *std::move(database);
    absl::StatusOr<std::unique_ptr<SqliteOperationStore>> store =
        SqliteOperationStore::Open(*stores->database_, limits, clock);
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

}  // namespace

std::vector<OperationStoreKind> OperationStoreKinds() {
  return {{.name = "Memory",
           .seeds = 200,
           .make =
               [](const OperationLimits& limits, const Clock& clock) {
                 return std::make_unique<MemoryOperationStores>(limits, clock);
               }},
          {.name = "Sqlite", .seeds = 5, .make = SqliteOperationStores::Make}};
}

}  // namespace stepcast::server
