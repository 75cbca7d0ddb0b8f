#include "tests/bench/agreement.h"

#include <stdexcept>

#include "gtest/gtest.h"

namespace stepcast::bench::agreement_test {
namespace {

TEST(AgreementTest, EqualEndsAgreeAndLaterOnesDoNotMatter) {
  EXPECT_NO_THROW(RequireAgreement("peer", {{1, 2, 3}, {4, 5, 6}}, {{1, 2, 9}, {4, 5}}, 2, 0));
  EXPECT_NO_THROW(RequireAgreement("peer", {{1}}, {{1 + 1e-10}}, 1, 1e-9));
}

TEST(AgreementTest, AnEndThatIsOffByMoreThanTheToleranceIsRefused) {
  EXPECT_THROW(RequireAgreement("peer", {{1, 2}, {4, 5}}, {{1, 2}, {4, 5.00001}}, 2, 1e-9),
               std::runtime_error);
  EXPECT_THROW(RequireAgreement("peer", {{1}}, {{1 - 1e-8}}, 1, 1e-9), std::runtime_error);
}

TEST(AgreementTest, MissingEndsAndWorkersAreRefused) {
  EXPECT_THROW(RequireAgreement("peer", {{1, 2}}, {{1}}, 2, 1e-9), std::runtime_error);
  EXPECT_THROW(RequireAgreement("peer", {{1}}, {{1, 2}}, 2, 1e-9), std::runtime_error);
  EXPECT_THROW(RequireAgreement("peer", {{1}, {1}}, {{1}}, 1, 1e-9), std::runtime_error);
}

}  // namespace
}  // namespace stepcast::bench::agreement_test
