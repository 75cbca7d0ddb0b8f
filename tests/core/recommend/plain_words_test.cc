#include "core/recommend/plain_words.h"

#include <gtest/gtest.h>

namespace stepcast::plain_words_test {
namespace {

TEST(PlainWordsTest, OneIsSingular) {
  EXPECT_EQ(CountText(1, "worker"), "1 worker");
  EXPECT_EQ(CountText(2, "server"), "2 servers");
}

TEST(PlainWordsTest, TimesHaveTheUnitThatSuits) {
  EXPECT_EQ(TimeText(0), "0 s");
  EXPECT_EQ(TimeText(0.25), "0.25 s");
  EXPECT_EQ(TimeText(119), "119 s");
  EXPECT_EQ(TimeText(180), "3 min");
  EXPECT_EQ(TimeText(7200), "2 h");
  EXPECT_EQ(TimeText(4 * 86400), "4 d");
}

}  // namespace
}  // namespace stepcast::plain_words_test
