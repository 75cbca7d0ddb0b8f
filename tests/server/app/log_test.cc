#include "server/app/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stepcast::server::log_test {
namespace {

using ::testing::EndsWith;

std::string Written(const LogOptions& options, const std::string& value) {
  ::testing::internal::CaptureStderr();
  Log(options).Info("event", {{"key", value}});
  return ::testing::internal::GetCapturedStderr();
}

TEST(LogTest, ATextLineHasTheEventAndItsValues) {
  EXPECT_THAT(Written({}, "plain"), EndsWith(" info event key=plain\n"));
  EXPECT_THAT(Written({}, "two words"), EndsWith(" info event key=\"two words\"\n"));
  EXPECT_THAT(Written({}, ""), EndsWith(" info event key=\"\"\n"));
}

TEST(LogTest, ALineStaysALineWhateverIsInIt) {
  const std::string nasty = "line\nbreak \"quote\" back\\slash \t {}";
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line = Written({.format = format}, nasty);
    EXPECT_EQ(line.find('\n'), line.size() - 1);
  }
  const auto json = nlohmann::json::parse(Written({.format = LogFormat::kJson}, nasty));
  EXPECT_EQ(json.at("event"), "event");
  EXPECT_EQ(json.at("level"), "info");
  EXPECT_EQ(json.at("key"), nasty);
  EXPECT_TRUE(json.contains("time"));
}

TEST(LogTest, WhatIsBelowTheLevelIsNotWritten) {
  EXPECT_EQ(Written({.level = LogLevel::kWarning}, "x"), "");
  EXPECT_EQ(Written({.level = LogLevel::kOff}, "x"), "");
}

}  // namespace
}  // namespace stepcast::server::log_test
