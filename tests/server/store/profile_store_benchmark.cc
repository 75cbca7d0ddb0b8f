// Prints how many puts and gets a second a store does, and a cache before it. Usage:
// profile_store_benchmark DIRECTORY | --postgres CONNINFO
#include <atomic>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

#include "server/base/clock.h"
#include "server/store/postgres_profile_store.h"
#include "server/store/profile_store_layers.h"
#include "server/store/sqlite_profile_store.h"
#include "tests/server/store/sample_profile.h"

namespace stepcast::server {
namespace {

// Calls `operation` with 0 to count - 1, from `threads` threads; prints the rate.
void Measure(const std::string& what, int threads, int count,
             const std::function<bool(int)>& operation) {
  const RealClock clock;
  std::atomic<int> next{0};
  std::atomic<int> failures{0};
  const int64_t start_ns = clock.MonotonicNs();
  std::vector<std::thread> workers;
  workers.reserve(static_cast<size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (int number = next++; number < count; number = next++)
        failures += operation(number) ? 0 : 1;
    });
  }
  for (std::thread& worker : workers) worker.join();
  const double seconds = static_cast<double>(clock.MonotonicNs() - start_ns) * 1e-9;
  std::printf("%-34s %d thread(s) %9.0f/s  failures %d\n", what.c_str(), threads, count / seconds,
              failures.load());
}

int Run(ProfileStore& store) {
  constexpr int kCount = 5000;
  const auto id = [](int size, int number) { return absl::StrCat("p", size, "-", number); };
  for (const int size : {1000, 100'000}) {
    const std::string content = SampleContent(1, static_cast<size_t>(size));
    for (const int threads : {1, 4}) {
      const auto put = [&](int number) {
        return store.Put(SampleProfile(id(size, number + threads * kCount), content), "").ok();
      };
      Measure(absl::StrCat("put ", size, " bytes"), threads, size < 10'000 ? kCount : kCount / 10,
              put);
      const auto get = [&](int number) {
        return store.Get(id(size, number % 500 + threads * kCount)).ok();
      };
      Measure(absl::StrCat("get ", size, " bytes"), threads, kCount, get);
      CachedProfileStore cached(store, size_t{256} << 20);
      const auto get_cached = [&](int number) {
        return cached.Get(id(size, number % 500 + threads * kCount)).ok();
      };
      Measure(absl::StrCat("get ", size, " bytes, cached"), threads, kCount, get_cached);
    }
  }
  for (const int threads : {1, 4}) {
    Measure("get summary", threads, 4 * kCount,
            [&](int number) { return store.GetSummary(id(1000, number % kCount + kCount)).ok(); });
  }
  Measure("put and get 1000 bytes, half each", 4, kCount, [&](int number) {
    if (number % 2 == 0) return store.Get(id(1000, number % kCount + kCount)).ok();
    return store.Put(SampleProfile(id(1000, number + 9 * kCount), "content"), "").ok();
  });
  Measure("list, filter passing over all", 1, 20,
          [&](int /*number*/) { return store.List({.filter = {.model = "none"}}).ok(); });
  return 0;
}

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

int RunSqlite(const std::string& directory) {
  const RealClock clock;
  const auto store = SqliteProfileStore::Open({.directory = directory, .readers = 4}, clock);
  return store.ok() ? Run(**store) : Complain(store.status());
}

int RunPostgres(const std::string& conninfo) {
  const RealClock clock;
  const auto database = PostgresDatabase::Open({.connection = {.conninfo = conninfo}});
  if (!database.ok()) return Complain(database.status());
  const auto store = PostgresProfileStore::Open(**database, {}, clock);
  return store.ok() ? Run(**store) : Complain(store.status());
}

}  // namespace
}  // namespace stepcast::server

int main(int argc, char** argv) {
  if (argc == 2) return stepcast::server::RunSqlite(argv[1]);
  if (argc == 3 && std::string_view(argv[1]) == "--postgres")
    return stepcast::server::RunPostgres(argv[2]);
  std::fprintf(stderr, "usage: profile_store_benchmark DIRECTORY | --postgres CONNINFO\n");
  return 2;
}
