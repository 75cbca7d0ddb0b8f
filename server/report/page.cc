#include "server/report/page.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

std::string Source(const PageFile& file) {
  return absl::StrCat("'sha256-", absl::Base64Escape(absl::HexStringToBytes(Absl(file.sha256))),
                      "'");
}

}  // namespace

absl::Status CheckReportIsBuilt() {
  if (!kPageFiles.library.text.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   "this build has no report: the library that draws its plots could not be "
                   "fetched when it was configured",
                   {.reason = "REPORT_NOT_BUILT"});
}

std::string PagePolicy() {
  return absl::StrCat("default-src 'none'; script-src ", Source(kPageFiles.library), " ",
                      Source(kPageFiles.script), "; style-src ", Source(kPageFiles.style),
                      "; base-uri 'none'; form-action 'none'");
}

std::string EscapeHtml(std::string_view text) {
  return absl::StrReplaceAll(
      Absl(text), {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

std::string EscapeJsonInScript(std::string_view json) {
  // In JSON these stand in strings only, where an escape means the same.
  return absl::StrReplaceAll(Absl(json), {{"<", "\\u003c"},
                                          {">", "\\u003e"},
                                          {"&", "\\u0026"},
                                          {"\xE2\x80\xA8", "\\u2028"},
                                          {"\xE2\x80\xA9", "\\u2029"}});
}

std::string RenderPage(std::string_view title, std::string_view summary, std::string_view data) {
  const std::string licence =
      absl::StrReplaceAll(Absl(kPageFiles.library_licence), {{"--", "- -"}});
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"",
      EscapeHtml(PagePolicy()),
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"description\" content=\"",
      EscapeHtml(summary), "\">\n<title>", EscapeHtml(title), "</title>\n<style>",
      Absl(kPageFiles.style.text), "</style>\n</head>\n<body>\n<noscript><main><h1>",
      EscapeHtml(title), "</h1><p>", EscapeHtml(summary),
      "</p><p>The plots and tables of this page need its script.</p></main></noscript>\n"
      "<script type=\"application/json\" id=\"data\">",
      EscapeJsonInScript(data), "</script>\n<!-- ", Absl(kPageFiles.library_name), ":\n\n", licence,
      "-->\n<script>", Absl(kPageFiles.library.text), "</script>\n<script>",
      Absl(kPageFiles.script.text), "</script>\n</body>\n</html>\n");
}

}  // namespace stepcast::server
