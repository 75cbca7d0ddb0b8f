#include "client/cli/variable_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepcast::client::variable_file_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(VariableFileTest, ALineIsANameAndItsBytes) {
  EXPECT_THAT(ParseVariableSizes("# sizes\n\nlayer 1/weights  802816\r\nb\t2KiB").value(),
              ElementsAre(Pair("b", 2048), Pair("layer 1/weights", 802816)));
  EXPECT_TRUE(ParseVariableSizes("")->empty());
}

TEST(VariableFileTest, WhatIsNoSuchLineIsRefusedWithItsNumber) {
  EXPECT_THAT(ParseVariableSizes("a 1\nb").status().message(),
              HasSubstr("line 2 is not `NAME BYTES`"));
  EXPECT_THAT(ParseVariableSizes("a many").status().message(), HasSubstr("line 1"));
  EXPECT_THAT(ParseVariableSizes("a 1\na 2").status().message(),
              HasSubstr("line 2: \"a\" is there twice"));
}

}  // namespace
}  // namespace stepcast::client::variable_file_test
