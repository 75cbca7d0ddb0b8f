// A recorded file that may be compressed by gzip, as text.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"

#include "core/importing/common/byte_source.h"

namespace stepcast::testing {

inline std::string UnpackedFile(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string packed{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_FALSE(packed.empty()) << file;
  TextSource source(packed);
  GunzipSource unpacked(
      source, {.admit = [](int64_t) { return absl::OkStatus(); },
               .damaged = [](const std::string& why) { return absl::InvalidArgumentError(why); }});
  std::string text;
  std::string block(1 << 16, '\0');
  for (size_t read = 1; read > 0;) {
    read = unpacked.Read(block.data(), block.size()).value();
    text.append(block, 0, read);
  }
  return text;
}

}  // namespace stepcast::testing
