// A report as one HTML file: its data, script, style and plotting library inside, nothing fetched.
//
// The file holds a policy (Content-Security-Policy) that lets run what was built in, by its digest,
// and nothing else. Whatever the texts in the data are, they are read as data: none can end the
// element they stand in.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace stepcast::server {

// A file of the page as it was when the program was built.
struct PageFile {
  std::string_view text;
  std::string_view sha256;  // of the text, in hexadecimal digits
};

// Script, style, and the library that draws the plots.
struct PageFiles {
  PageFile script;
  PageFile style;
  PageFile library;               // empty: the build has none, and so no report
  std::string_view library_name;  // with its version
  std::string_view library_licence;
};

// Made by embed.cmake.
extern const PageFiles kPageFiles;

// OK, or FAILED_PRECONDITION, reason REPORT_NOT_BUILT, in a build that could not have the plotting
// library.
absl::Status CheckReportIsBuilt();

// `data` is a JSON document of report.h; the others are plain text. REQUIRES: CheckReportIsBuilt.
std::string RenderPage(std::string_view title, std::string_view summary, std::string_view data);

// The policy that the file names itself, for whoever serves it.
std::string PagePolicy();

// Text of HTML: what has a meaning in markup is escaped.
std::string EscapeHtml(std::string_view text);
// JSON within a script element: the same values, without any character that markup knows.
std::string EscapeJsonInScript(std::string_view json);

}  // namespace stepcast::server
