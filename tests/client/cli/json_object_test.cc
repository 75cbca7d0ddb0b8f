#include "client/cli/json_object.h"

#include <gtest/gtest.h>

namespace stepcast::client::json_object_test {
namespace {

TEST(JsonObjectTest, IsIndentedByOneSpaceALevel) {
  JsonObject inner;
  inner.Add("a", 0.5);
  inner.Add("b", int64_t{7});
  JsonObject object;
  object.Add("c", int32_t{3});
  object.Add("d", true);
  object.Add("e", std::string("x"));
  object.Add("f", inner);
  object.Add("g", std::vector<JsonObject>{inner, JsonObject()});
  object.Add("h", std::vector<JsonObject>{});
  EXPECT_EQ(object.Text(),
            "{\n \"c\": 3,\n \"d\": true,\n \"e\": \"x\",\n \"f\": {\n  \"a\": 0.5,\n  \"b\": "
            "\"7\"\n },\n \"g\": [\n  {\n   \"a\": 0.5,\n   \"b\": "
            "\"7\"\n  "
            "},\n  {}\n ],\n \"h\": []\n}");
  EXPECT_EQ(inner.Text(2), "{\n   \"a\": 0.5,\n   \"b\": \"7\"\n  }");
}

TEST(JsonObjectTest, TextIsEscapedAndNumbersAreAsShortAsTheyComeBack) {
  JsonObject object;
  object.Add("a", std::string("\"\\\n"));
  object.Add("b", 0.1);
  object.Add("c", 1e-7 / 3);
  EXPECT_EQ(object.Text(),
            "{\n \"a\": \"\\\"\\\\\\u000a\",\n \"b\": 0.1,\n \"c\": 3.3333333333333334e-08\n}");
}

}  // namespace
}  // namespace stepcast::client::json_object_test
