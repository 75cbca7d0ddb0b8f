// Profiles for tests of stores, which do not look into the content.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "server/store/profile_store.h"

namespace stepcast::server {

// The digest follows from the content, as that of a real profile does.
inline StoredProfile SampleProfile(std::string id, std::string content) {
  StoredProfile profile;
  profile.summary = {
      .id = std::move(id),
      .digest = absl::StrCat("digest-", absl::Hex(std::hash<std::string>{}(content))),
      .etag = "",
      .display_name = "A sample",
      .model = "resnet50",
      .framework = "tensorflow",
      .labels = {{"cluster", "a"}, {"empty", ""}},
      .batch_size = 32,
      .parameter_servers = 2,
      .operation_count = 17,
      .step_count = 3,
      .size_bytes = static_cast<int64_t>(content.size())};
  profile.content = std::move(content);
  return profile;
}

// One that a client with this name stores.
inline StoredProfile ProfileOf(std::string owner, std::string id, std::string content) {
  StoredProfile profile = SampleProfile(std::move(id), std::move(content));
  profile.summary.owner = std::move(owner);
  return profile;
}

// `size` bytes that follow from the seed, all 256 values among them.
inline std::string SampleContent(uint64_t seed, size_t size) {
  std::mt19937_64 random(seed);
  std::string content;
  content.reserve(size + sizeof(uint64_t));
  while (content.size() < size) {
    const uint64_t word = random();
    content.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  content.resize(size);
  return content;
}

}  // namespace stepcast::server
