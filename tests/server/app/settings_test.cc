#include "server/app/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server::settings_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Written(const std::string& text) {
  std::string path =
      absl::StrCat(::testing::TempDir(), getpid(),
                   ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".yaml");
  std::ofstream(path) << text;
  return path;
}

std::vector<Fault> FaultsOf(const std::string& text) {
  const absl::Status status = ReadConfigFile(Written(text)).status();
  EXPECT_EQ(DetailsOf(status).reason, "CONFIG_INVALID") << text;
  return DetailsOf(status).faults;
}

TEST(ConfigFileTest, EverySettingKnowsItsLine) {
  const std::string path = Written("# a comment\nthreads: 3\n\nhttp-listen: \"[::1]:0\"\n");
  const auto settings = ReadConfigFile(path);
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(
      *settings,
      ElementsAre(GivenSetting{.name = "threads", .value = "3", .source = path + ":2"},
                  GivenSetting{.name = "http-listen", .value = "[::1]:0", .source = path + ":4"}));
}

TEST(ConfigFileTest, AnEmptyFileGivesNothing) {
  const auto settings = ReadConfigFile(Written("# nothing\n"));
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(settings->empty());
}

TEST(ConfigFileTest, EveryFaultIsNamedWithItsLine) {
  const std::vector<Fault> faults =
      FaultsOf("threads: 1\nstore: [sqlite]\nlisten: {host: a}\nthreads: 2\nqueue-max:\n");
  ASSERT_EQ(faults.size(), 4u);
  EXPECT_THAT(faults[0].field, HasSubstr(".yaml:2"));
  EXPECT_THAT(faults[0].description, HasSubstr("store"));
  EXPECT_THAT(faults[1].field, HasSubstr(".yaml:3"));
  EXPECT_THAT(faults[2].field, HasSubstr(".yaml:4"));
  EXPECT_THAT(faults[2].description, HasSubstr(".yaml:1"));
  EXPECT_THAT(faults[3].description, HasSubstr("queue-max"));
}

TEST(ConfigFileTest, WhatIsNoMapIsRefused) {
  for (const std::string text :
       {"- threads\n", "threads", "{", "a: b: c", "[1, 2", "\"", "*alias", "? [a]\n: b\n"}) {
    EXPECT_EQ(FaultsOf(text).size(), 1u) << text;
  }
}

TEST(ConfigFileTest, ADeepNestIsRefusedAndNotFollowed) {
  EXPECT_FALSE(FaultsOf("a: " + std::string(100'000, '[')).empty());
}

TEST(ConfigFileTest, WhatCannotBeReadIsNamed) {
  const std::string missing = ::testing::TempDir() + "not-there.yaml";
  const absl::Status status = ReadConfigFile(missing).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr(missing));
  EXPECT_THAT(std::string(status.message()), HasSubstr("No such file"));
  EXPECT_THAT(std::string(ReadConfigFile(::testing::TempDir()).status().message()),
              HasSubstr("directory"));
  EXPECT_THAT(
      std::string(
          ReadConfigFile(Written(std::string(kMaxConfigBytes + 1, '#'))).status().message()),
      HasSubstr("more than"));
}

}  // namespace
}  // namespace stepcast::server::settings_test
