// The files of the page as they were when the program was built: script, style, and the library
// that draws the plots. Made by embed.cmake.
#pragma once

#include <string_view>

namespace stepcast::server {

struct PageFile {
  std::string_view text;
  std::string_view sha256;  // of the text, in hexadecimal digits
};

struct PageFiles {
  PageFile script;
  PageFile style;
  PageFile library;               // empty: the build has none, and so no report
  std::string_view library_name;  // with its version
  std::string_view library_licence;
};

extern const PageFiles kPageFiles;

}  // namespace stepcast::server
