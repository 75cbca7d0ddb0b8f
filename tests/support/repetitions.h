// Repetitions of tests of statistics: all of them, or a few under a sanitizer.
//
// A sanitizer makes each run ten to twenty times slower and looks at how the code goes through
// memory, which the first few runs show as well as three hundred. A share of so few is no share, so
// the test skips what it would say of it.
#ifndef STEPCAST_TESTS_SUPPORT_REPETITIONS_H_
#define STEPCAST_TESTS_SUPPORT_REPETITIONS_H_

namespace stepcast::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

template <typename Count>
constexpr Count Repetitions(Count asked) {
  return kSanitized && asked > 5 ? 5 : asked;
}

}  // namespace stepcast::testing

// To be said where a test has run all its repetitions and comes to the shares.
#define STEPCAST_SKIP_SHARES_UNDER_SANITIZERS()                                   \
  do {                                                                            \
    if (::stepcast::testing::kSanitized)                                          \
      GTEST_SKIP() << "a sanitizer is built in: too few repetitions for a share"; \
  } while (false)

#endif  // STEPCAST_TESTS_SUPPORT_REPETITIONS_H_
