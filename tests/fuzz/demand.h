// A demand that holds whatever the input: where it does not, the process ends, which a fuzzer and
// ctest both notice.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace stepcast::fuzz {

inline void Demand(bool is_kept, std::string_view promise, const std::string& found = "") {
  if (is_kept) return;
  std::fprintf(stderr, "broken promise: %.*s %s\n", static_cast<int>(promise.size()),
               promise.data(), found.c_str());
  std::abort();
}

}  // namespace stepcast::fuzz
