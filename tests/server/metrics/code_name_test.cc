#include "server/metrics/code_name.h"

#include <gtest/gtest.h>

namespace stepcast::server::code_name_test {
namespace {

TEST(CodeNameTest, NamesAreGosAtTheCanonicalNumbers) {
  EXPECT_EQ(CodeName(0), "OK");
  EXPECT_EQ(CodeName(1), "Canceled");
  EXPECT_EQ(CodeName(3), "InvalidArgument");
  EXPECT_EQ(CodeName(4), "DeadlineExceeded");
  EXPECT_EQ(CodeName(8), "ResourceExhausted");
  EXPECT_EQ(CodeName(14), "Unavailable");
  EXPECT_EQ(CodeName(16), "Unauthenticated");
}

TEST(CodeNameTest, AnyOtherNumberIsUnknown) {
  EXPECT_EQ(CodeName(-1), "Unknown");
  EXPECT_EQ(CodeName(17), "Unknown");
}

}  // namespace
}  // namespace stepcast::server::code_name_test
