#include "client/cli/texts/table.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace stepcast::client::table_test
