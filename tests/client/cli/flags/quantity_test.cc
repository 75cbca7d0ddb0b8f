#include "client/cli/flags/quantity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace stepcast::client::quantity_test {
namespace {

using testing::ElementsAre;

TEST(ParseCountTest, TakesDigitsOnly) {
  EXPECT_EQ(*ParseCount("0"), 0);
  EXPECT_EQ(*ParseCount("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "+1", "1.5", "1e3", "18446744073709551616", "1 "})
    EXPECT_FALSE(ParseCount(text).ok()) << text;
}

TEST(ParseRateTest, KnowsBitsFromBytes) {
  EXPECT_EQ(*ParseRate("1Gbit/s"), 125e6);
  EXPECT_EQ(*ParseRate("1 Gbit/s"), 125e6);
  EXPECT_EQ(*ParseRate("1000mbit/s"), 125e6);
  EXPECT_EQ(*ParseRate("1Gbps"), 125e6);
  EXPECT_EQ(*ParseRate("1Gb/s"), 125e6);
  EXPECT_EQ(*ParseRate("125MB/s"), 125e6);
  EXPECT_EQ(*ParseRate("125MBps"), 125e6);
  EXPECT_EQ(*ParseRate("1MiB/s"), 1048576);
  EXPECT_EQ(*ParseRate("8Kibit/s"), 1024);
  EXPECT_EQ(*ParseRate("2TB/s"), 2e12);
}

// The refusal of a text.
template <typename Value>
std::string Why(const absl::StatusOr<Value>& parsed) {
  return parsed.ok() ? "taken" : std::string(parsed.status().message());
}

TEST(UnitTest, ANumberWithoutOneIsRefusedWithWhatItCouldMean) {
  EXPECT_EQ(Why(ParseRate("10")), "\"10\" has no unit: write 10Gbit/s or 10GB/s or 10B/s");
  EXPECT_EQ(Why(ParseRate("1.5e8")),
            "\"1.5e8\" has no unit: write 1.5e8Gbit/s or 1.5e8GB/s or 1.5e8B/s");
  EXPECT_EQ(Why(ParseRate("10 G")), "\"10 G\" has no unit: write 10Gbit/s or 10GB/s");
  EXPECT_EQ(Why(ParseBytes("25")), "\"25\" has no unit: write 25B or 25MiB");
  EXPECT_EQ(Why(ParseBytes("65536")), "\"65536\" has no unit: write 65536B or 64KiB");
  EXPECT_EQ(Why(ParseBytes("25M")), "\"25M\" has no unit: write 25MB or 25MiB");
  EXPECT_EQ(Why(ParseBytes("1.5")), "\"1.5\" has no unit: write 1.5KiB or 1.5MiB");
  EXPECT_EQ(Why(ParseDuration("20")), "\"20\" has no unit: write 20us or 20ms or 20s");
  EXPECT_EQ(Why(ParseSeconds("0.5")), "\"0.5\" has no unit: write 0.5us or 0.5ms or 0.5s");
}

TEST(UnitTest, NothingNeedsNone) {
  EXPECT_EQ(*ParseRate("0"), 0) << "the service says that this is too little";
  EXPECT_EQ(*ParseBytes("0"), 0);
  EXPECT_EQ(*ParseDuration("0"), std::chrono::nanoseconds(0));
  EXPECT_EQ(*ParseSeconds("0.0"), 0);
  EXPECT_EQ(*ParseSeconds("14us"), 1.4e-5);
}

TEST(ParseRateTest, RefusesWhatItCannotBeSureOf) {
  for (const char* text :
       {"", "G", "10G", "10M", "fast", "1Gbit", "1GB", "-1Gbit/s", "-0", "inf", "nan", "1e999",
        "1e308TB/s", "1e300Tibit/s", "1Gbit/s ", "1 Gbit/s x", "1,5Gbit/s", " 1"}) {
    const auto rate = ParseRate(text);
    ASSERT_FALSE(rate.ok()) << text << " became " << *rate;
    EXPECT_NE(rate.status().message().find(text), absl::string_view::npos);
  }
}

TEST(ParseShareTest, IsAPartOfOneOrOfAHundred) {
  EXPECT_EQ(*ParseShare("0.25"), 0.25);
  EXPECT_EQ(*ParseShare("25%"), 0.25);
  EXPECT_EQ(*ParseShare("0"), 0);
  for (const char* text : {"", "%", "-1", "-5%", "25%%", "25 percent", "nan", "inf", "half"})
    EXPECT_FALSE(ParseShare(text).ok()) << text;
}

TEST(ParseBytesTest, KnowsPrefixes) {
  EXPECT_EQ(*ParseBytes("65536B"), 65536);
  EXPECT_EQ(*ParseBytes("64KiB"), 65536);
  EXPECT_EQ(*ParseBytes("64Ki"), 65536);
  EXPECT_EQ(*ParseBytes("1.5kB"), 1500);
  EXPECT_EQ(*ParseBytes("10 MB"), 10'000'000);
}

TEST(ParseBytesTest, RefusesTheRest) {
  for (const char* text : {"", "x", "1.5", "1.0001kB", "-1", "64KiBs", "64kb", "1.5B", "1e300",
                           "1e300B", "9223372036854775808B"})
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
}

TEST(ParseDurationTest, KnowsUnits) {
  using std::chrono::milliseconds;
  using std::chrono::nanoseconds;
  using std::chrono::seconds;
  EXPECT_EQ(*ParseDuration("2s"), seconds(2));
  EXPECT_EQ(*ParseDuration("0.5 s"), milliseconds(500));
  EXPECT_EQ(*ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(*ParseDuration("3us"), nanoseconds(3000));
  EXPECT_EQ(*ParseDuration("7ns"), nanoseconds(7));
  EXPECT_EQ(*ParseDuration("2m"), seconds(120));
  EXPECT_EQ(*ParseDuration("1h"), seconds(3600));
  EXPECT_EQ(*ParseDuration("2d"), seconds(2 * 86'400));
}

TEST(ParseDurationTest, AddsPartsFromTheLargestUnitOn) {
  EXPECT_EQ(*ParseDuration("1h30m"), std::chrono::seconds(5400));
  EXPECT_EQ(*ParseDuration("1d2h3m4.5s"), std::chrono::milliseconds(93'784'500));
  for (const char* text : {"30m1h", "1h30", "1h1h", "1h 30m", "1h-1m", "1hm", "1h30m0", "1h1e300s"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
}

TEST(ParseDurationTest, RefusesTheRest) {
  for (const char* text : {"", "s", "-1", "1w", "1 min", "1e30", "inf"})
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
}

TEST(WorkerListTest, TakesCountsAndRangesInTheirOrder) {
  EXPECT_THAT(*ParseWorkerList("3"), ElementsAre(3));
  EXPECT_THAT(*ParseWorkerList("1-4"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*ParseWorkerList("1,2,4"), ElementsAre(1, 2, 4));
  EXPECT_THAT(*ParseWorkerList("8,1-2,16"), ElementsAre(8, 1, 2, 16));
  EXPECT_THAT(*ParseWorkerList("5-5"), ElementsAre(5));
}

TEST(WorkerListTest, RefusesTheRest) {
  for (const char* text : {"", ",", "1,", ",1", "0", "-1", "4-1", "1-", "-", "1--2", "a", "1.5",
                           "1 2", "99999999999", "1-2147483647", "1-1025"}) {
    EXPECT_FALSE(ParseWorkerList(text).ok()) << text;
  }
}

TEST(WorkerListTest, TakesAsManyAsOneCallMayAskFor) {
  EXPECT_EQ(ParseWorkerList("1-1024")->size(), 1024);
}

TEST(LoadStepsTest, TakesNumbersInTheirOrder) {
  EXPECT_THAT(*ParseConcurrencies("1,64,8"), ElementsAre(1, 64, 8));
  EXPECT_THAT(*ParseConcurrencies("10000"), ElementsAre(10000));
  EXPECT_THAT(*ParseRates("1000,0.5,1e6"), ElementsAre(1000, 0.5, 1e6));
}

TEST(LoadStepsTest, RefusesTheRest) {
  for (const char* text :
       {"", ",", "1,", "0", "-1", "1.5", "a", "1 2", "10001", "99999999999", "1-8"})
    EXPECT_FALSE(ParseConcurrencies(text).ok()) << text;
  for (const char* text :
       {"", ",", "1,", "0", "-1", "nan", "inf", "1e-300", "1e7", "1000/s", "0x10"})
    EXPECT_FALSE(ParseRates(text).ok()) << text;
}

TEST(LoadStepsTest, TakesAtMost64) {
  std::string text = "1";
  for (int i = 1; i < 64; ++i) text += ",1";
  EXPECT_EQ(ParseConcurrencies(text)->size(), 64);
  EXPECT_FALSE(ParseConcurrencies(text + ",1").ok());
}

}  // namespace
}  // namespace stepcast::client::quantity_test
