#include "server/report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace stepcast::server::page_test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// How often `part` is in `text`.
int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(PageTest, NoTextLeavesTheElementThatItStandsIn) {
  const std::string bad = "</script><script>alert(1)</script><!-- <b onclick='x'>\"&amp;";
  const nlohmann::json data{{"name", bad}};
  const std::string page = RenderPage(bad, bad, data.dump());
  // Data, library and script.
  EXPECT_EQ(Count(page, "<script"), 3);
  EXPECT_EQ(Count(page, "</script>"), 3);
  EXPECT_EQ(Count(page, "<title>"), 1);
  EXPECT_THAT(page, HasSubstr("<title>&lt;/script&gt;&lt;script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b onclick")));
}

TEST(PageTest, EscapedJsonHasTheSameValues) {
  const nlohmann::json data{
      {"<a&b>", "x < y && y > z </script> \xE2\x80\xA8 \xE2\x80\xA9 \xC3\xA9 \\ \""}};
  const std::string escaped = EscapeJsonInScript(data.dump());
  for (const char* part : {"<", ">", "&", "\xE2\x80\xA8", "\xE2\x80\xA9"})
    EXPECT_THAT(escaped, Not(HasSubstr(part)));
  EXPECT_EQ(nlohmann::json::parse(escaped), data);
}

TEST(PageTest, MarkupBecomesText) {
  EXPECT_EQ(EscapeHtml("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

TEST(PageTest, ThePolicyNamesDigestsAndNoOrigin) {
  const std::string digest = "'sha256-[0-9A-Za-z+/]*='";
  EXPECT_THAT(PagePolicy(),
              MatchesRegex("default-src 'none'; script-src " + digest + " " + digest +
                           "; style-src " + digest + "; base-uri 'none'; form-action 'none'"));
  EXPECT_THAT(RenderPage("", "", "{}"), HasSubstr(EscapeHtml(PagePolicy())));
}

TEST(PageTest, ABuildWithTheLibraryHasItsLicence) {
  if (kPageFiles.library.text.empty()) {
    EXPECT_EQ(DetailsOf(CheckReportIsBuilt()).reason, "REPORT_NOT_BUILT");
    return;
  }
  EXPECT_TRUE(CheckReportIsBuilt().ok());
  EXPECT_THAT(RenderPage("", "", "{}"), HasSubstr("Permission to use, copy, modify"));
}

}  // namespace
}  // namespace stepcast::server::page_test
