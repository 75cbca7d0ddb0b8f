#include "client/cli/texts/table.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepcast::client::table_test {
namespace {

TEST(TableTest, ColumnsAreAsWideAsWhatIsInThem) {
  Table table({{"n"}, {"name", Table::Align::kLeft}, {"size"}});
  table.AddRow({"1", "a", "10"});
  table.AddRow({"200", "longer", "9"});
  EXPECT_EQ(table.Text(),
            "  n  name    size\n"
            "  1  a         10\n"
            "200  longer     9\n");
}

TEST(TableTest, LinesDoNotEndInSpaces) {
  Table table({{"a", Table::Align::kLeft}, {"b", Table::Align::kLeft}});
  table.AddRow({"x", ""});
  EXPECT_EQ(table.Text(), "a  b\nx\n");
}

TEST(TableTest, ACellIsOneLineThatDrivesNoTerminal) {
  Table table({{"name", Table::Align::kLeft}});
  table.AddRow({"a\x1b[2J\nb\u202e"});
  EXPECT_EQ(table.Text(), "name\na\\x1b[2J\\x0ab\\u202e\n");
}

TEST(TableTest, CountsCharactersNotBytes) {
  Table table({{"x", Table::Align::kLeft}, {"y"}});
  table.AddRow({"\xc3\xa4\xc3\xb6", "1"});
  table.AddRow({"abc", "1"});
  EXPECT_EQ(table.Text(), "x    y\n\xc3\xa4\xc3\xb6   1\nabc  1\n");
}

TEST(NumberTextTest, HasFourSignificantDigits) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(0.012346), "0.01235");
  EXPECT_EQ(NumberText(1.23456), "1.235");
  EXPECT_EQ(NumberText(9.9996), "10.00");
  EXPECT_EQ(NumberText(99.9999), "100.0");
  EXPECT_EQ(NumberText(123.456), "123.5");
  EXPECT_EQ(NumberText(12345.6), "12346");
  EXPECT_EQ(NumberText(125e6), "125000000");
  EXPECT_EQ(NumberText(-2.5), "-2.500");
}

TEST(NumberTextTest, TakesWhateverThereIs) {
  EXPECT_EQ(NumberText(1e-300), "0.000000000000");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::max()).size(), 309);
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "inf");
}

TEST(PercentTextTest, HasOneDecimal) { EXPECT_EQ(PercentText(0.9784), "97.8%"); }

TEST(DurationTextTest, ChoosesItsUnit) {
  EXPECT_EQ(DurationText(std::chrono::nanoseconds(812)), "812.0 ns");
  EXPECT_EQ(DurationText(std::chrono::nanoseconds(81'350'000)), "81.35 ms");
  EXPECT_EQ(DurationText(std::chrono::nanoseconds(1'500)), "1.500 us");
  EXPECT_EQ(DurationText(std::chrono::seconds(90)), "90.00 s");
}

TEST(BytesTextTest, ChoosesItsUnit) {
  EXPECT_EQ(BytesText(64), "64 B");
  EXPECT_EQ(BytesText(1536), "1.500 KiB");
  EXPECT_EQ(BytesText(102'118'144), "97.39 MiB");
  EXPECT_EQ(BytesText(std::numeric_limits<int64_t>::max()), "8.000 EiB");
}

}  // namespace
}  // namespace stepcast::client::table_test
