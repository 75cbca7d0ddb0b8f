#include "core/engine/completion_series.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace stepcast::completion_series_test {
namespace {

TEST(CompletionSeriesTest, AMarkIsWhenThatManyStepsHadEndedHoweverManyThereAre) {
  CompletionSeries series;
  for (int64_t i = 1; i <= 50'000; ++i) {
    series.Add(Instant{i * i});
    ASSERT_LT(series.marks().size(), CompletionSeries::kMaxMarks);
    if (i % 997 != 0) continue;
    ASSERT_EQ(static_cast<int64_t>(series.marks().size()), i / series.stride());
    for (size_t k = 0; k < series.marks().size(); ++k) {
      const int64_t steps = static_cast<int64_t>(k + 1) * series.stride();
      ASSERT_EQ(series.marks()[k], Instant{steps * steps}) << i << " " << k;
    }
  }
  EXPECT_EQ(series.stride(), 32);
}

}  // namespace
}  // namespace stepcast::completion_series_test
