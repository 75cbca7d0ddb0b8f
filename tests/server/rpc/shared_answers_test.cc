#include "server/rpc/shared_answers.h"

#include <memory>

#include "gtest/gtest.h"

namespace stepcast::server::shared_answers_test {
namespace {

SharedReplyPointer ReplyOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return std::make_shared<const SharedReply>(
      SharedReply{.computed = {}, .shared = grpc::ByteBuffer(&slice, 1)});
}

TEST(RecentAnswersTest, FindsTheAnswerToTheSameBytes) {
  RecentAnswers answers(1 << 20, nullptr);
  const SharedReplyPointer reply = ReplyOf("reply");
  answers.Keep("question", reply, 3);
  EXPECT_EQ(answers.Find("question", 3), reply);
  EXPECT_EQ(answers.Find("another", 3), nullptr);
}

TEST(RecentAnswersTest, AnAnswerStandsForItsGenerationOnly) {
  RecentAnswers answers(1 << 20, nullptr);
  answers.Keep("question", ReplyOf("old"), 3);
  EXPECT_EQ(answers.Find("question", 4), nullptr);
  const SharedReplyPointer reply = ReplyOf("new");
  answers.Keep("question", reply, 4);
  EXPECT_EQ(answers.Find("question", 4), reply);
  EXPECT_EQ(answers.Find("question", 3), nullptr);
}

TEST(RecentAnswersTest, TheRepliesCountAgainstTheBound) {
  RecentAnswers answers(1000, nullptr);
  answers.Keep("a", ReplyOf(std::string(600, 'x')), 0);
  answers.Keep("b", ReplyOf(std::string(600, 'x')), 0);
  EXPECT_EQ(answers.Find("a", 0), nullptr);
  EXPECT_NE(answers.Find("b", 0), nullptr);
}

}  // namespace
}  // namespace stepcast::server::shared_answers_test
