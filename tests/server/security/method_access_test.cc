#include "server/security/method_access.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace stepcast::server::method_access_test {
namespace {

TEST(MethodAccessTest, EveryRowIsFoundByItsServiceAndMethod) {
  const auto& table = MethodAccessTable();
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                             [](const auto& a, const auto& b) { return a.method < b.method; }));
  for (const MethodAccess& row : table) {
    const size_t slash = row.method.find('/');
    EXPECT_EQ(AccessOf(row.method.substr(0, slash), row.method.substr(slash + 1)), row.access)
        << row.method;
  }
}

TEST(MethodAccessTest, WhatIsNotThereIsForKnownCallersOnly) {
  for (const auto& [service, method] : {std::pair{"", ""},
                                        {"a", "b"},
                                        {"grpc.health.v1.Health", ""},
                                        {"grpc.health.v1.Health", "Checks"},
                                        {"grpc.health.v1", "Health/Check"},
                                        {"zz", "zz"},
                                        {"grpc.health.v1.Health/Check", ""}}) {
    EXPECT_EQ(AccessOf(service, method), Access::kKnown) << service << " " << method;
  }
}

TEST(MethodAccessTest, OnlyHealthIsForAnybody) {
  for (const MethodAccess& row : MethodAccessTable()) {
    if (row.access == Access::kAnybody) {
      EXPECT_EQ(row.method.substr(0, row.method.find('/')), "grpc.health.v1.Health");
    }
  }
}

TEST(MethodAccessTest, WhatChangesSomethingNeedsMoreThanAReader) {
  for (const char* const verb :
       {"Create", "Upload", "Import", "Delete", "Start", "Cancel", "Set"}) {
    for (const MethodAccess& row : MethodAccessTable()) {
      const std::string_view name = row.method.substr(row.method.find('/') + 1);
      if (name.rfind(verb, 0) == 0) {
        EXPECT_GE(RoleFor(row.access), Role::kWriter) << row.method;
      }
    }
  }
}

}  // namespace
}  // namespace stepcast::server::method_access_test
