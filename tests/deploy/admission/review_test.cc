#include "deploy/kubernetes/admission/review.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

#include "core/base/error.h"

namespace stepcast::admission::review_test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json Example() {
  return json::parse(R"({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
      "request": {"uid": "u", "kind": {"group": "batch", "version": "v1", "kind": "Job"},
      "operation": "CREATE", "dryRun": true, "name": "train", "object": {
      "metadata": {"labels": {"a": "b"}, "managedFields": [{"x": {"y": 1}}]},
      "spec": {"parallelism": 4, "replicatedJobs": [1, {"name": "n", "other": {"name": "m"}}, []],
      "template": {"spec": {"containers": [{"image": "i", "resources": {"limits": {"cpu": 1}}}]}}}}}})");
}

TEST(ReviewTest, WhatMattersIsKeptAndNothingElse) {
  const absl::StatusOr<Review> review = ReadReview(Example().dump());
  ASSERT_TRUE(review.ok()) << review.status();
  EXPECT_EQ(review->uid, "u");
  EXPECT_EQ(review->operation, "CREATE");
  EXPECT_EQ(review->group, "batch");
  EXPECT_EQ(review->kind, "Job");
  EXPECT_EQ(review->name, "train");
  EXPECT_TRUE(review->dry_run);
  // Elements of arrays keep their places.
  EXPECT_EQ(review->object, json::parse(R"({"metadata": {"labels": {"a": "b"}},
      "spec": {"parallelism": 4, "replicatedJobs": [1, {"name": "n"}, []],
      "template": {"spec": {"containers": [{"resources": {"limits": {"cpu": 1}}}]}}}})"));
}

TEST(ReviewTest, DepthHasABoundWhereverItIs) {
  const auto nested = [](int levels) {
    json review = Example();
    std::string text = review.dump();
    const std::string deep = std::string(levels, '[') + std::string(levels, ']');
    return text.replace(text.find("\"i\""), 3, deep);
  };
  EXPECT_TRUE(ReadReview(nested(400)).ok());
  const absl::Status fault = ReadReview(nested(kMaxDepth)).status();
  EXPECT_EQ(DetailsOf(fault).reason, "REVIEW_INVALID");
  EXPECT_THAT(std::string(fault.message()), HasSubstr("nested deeper than 512"));
}

TEST(ReviewTest, ALargeNumberIsNoReasonToRefuse) {
  json review = Example();
  review["request"]["object"]["spec"]["parallelism"] = 1e300;
  EXPECT_TRUE(ReadReview(review.dump()).ok());
}

TEST(ReviewTest, WhatIsNoReviewIsRefused) {
  json other = Example();
  other["kind"] = "Pod";
  json without = Example();
  without["request"].erase("uid");
  for (const std::string& text : {std::string(), std::string("{"), std::string("1"), other.dump(),
                                  without.dump(), Example().dump() + "}"})
    EXPECT_EQ(DetailsOf(ReadReview(text).status()).reason, "REVIEW_INVALID") << text;
}

TEST(ReviewTest, AnAnswerAdmitsAndRepeatsTheUid) {
  const Review review{.api_version = "admission.k8s.io/v1beta1", .uid = "u\xff"};
  const json bare = json::parse(WriteAnswer(review, {}));
  EXPECT_EQ(bare["apiVersion"], "admission.k8s.io/v1beta1");
  EXPECT_EQ(bare["response"]["allowed"], true);
  EXPECT_EQ(bare["response"].count("patch"), 0U);
  EXPECT_EQ(bare["response"].count("warnings"), 0U);
  const json full = json::parse(
      WriteAnswer(review, {.patch = json::parse(R"([{"op": "add", "path": "/a", "value": 1}])"),
                           .warnings = {"w"},
                           .audit = {{"k", "v"}}}));
  std::string patch;
  ASSERT_TRUE(absl::Base64Unescape(full["response"]["patch"].get<std::string>(), &patch));
  EXPECT_EQ(json::parse(patch)[0]["path"], "/a");
  EXPECT_EQ(full["response"]["patchType"], "JSONPatch");
  EXPECT_EQ(full["response"]["auditAnnotations"]["k"], "v");
}

}  // namespace
}  // namespace stepcast::admission::review_test
