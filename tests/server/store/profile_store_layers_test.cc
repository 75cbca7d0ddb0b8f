#include "server/store/profile_store_layers.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/store/memory_stores.h"
#include "tests/server/store/sample_profile.h"

namespace stepcast::server::profile_store_layers_test {
namespace {

struct Operation {
  std::string name;
  absl::StatusCode code;
  double seconds;

  friend bool operator==(const Operation&, const Operation&) = default;
};

class RecordingObserver final : public StoreObserver {
 public:
  void OnOperation(std::string_view operation, absl::StatusCode code, double seconds) override {
    operations.push_back({.name = std::string(operation), .code = code, .seconds = seconds});
  }
  std::vector<Operation> operations;
};

// Every reading of the time is a second after the one before.
class TickingClock final : public Clock {
 public:
  int64_t MonotonicNs() const override { return ++seconds_ * 1'000'000'000; }
  int64_t WallNs() const override { return 0; }

 private:
  mutable int64_t seconds_ = 0;
};

TEST(ObservedProfileStoreTest, ReportsEveryOperationWithItsCodeAndTime) {
  const TickingClock clock;
  MemoryProfileStore memory({}, clock);
  RecordingObserver observer;
  ObservedProfileStore store(memory, observer, clock);
  const StoredProfile profile = SampleProfile("a", "content");

  EXPECT_TRUE(store.Put(profile, "").ok());
  EXPECT_EQ(store.Get("a")->content, "content");
  EXPECT_EQ(store.GetSummary("a")->digest, profile.summary.digest);
  EXPECT_EQ(store.List({})->profiles.size(), 1);
  EXPECT_TRUE(store.Delete("a", "").ok());
  EXPECT_TRUE(store.Check().ok());
  EXPECT_EQ(store.Get("a").status().code(), absl::StatusCode::kNotFound);

  const std::vector<Operation> expected = {
      {"put", absl::StatusCode::kOk, 1},         {"get", absl::StatusCode::kOk, 1},
      {"get_summary", absl::StatusCode::kOk, 1}, {"list", absl::StatusCode::kOk, 1},
      {"delete", absl::StatusCode::kOk, 1},      {"check", absl::StatusCode::kOk, 1},
      {"get", absl::StatusCode::kNotFound, 1}};
  EXPECT_EQ(observer.operations, expected);
  for (const Operation& operation : observer.operations)
    EXPECT_THAT(kStoreOperations, testing::Contains(operation.name));
}

}  // namespace
}  // namespace stepcast::server::profile_store_layers_test
