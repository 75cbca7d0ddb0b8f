#include "tests/fuzz/text_mutator.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace stepcast::fuzz {

namespace {

// Each part with the separator that ends it, so that the parts make up the text.
std::vector<std::string> Parts(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size() - 1) + 1;
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return parts;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

}  // namespace

std::string MutateText(std::string text, const Mutation& mutation) {
  Random& random = mutation.random;
  std::vector<std::string> parts = Parts(text, random.Below(2) == 0 ? "\n" : "\n\t ,;:=.-\"");
  if (parts.empty() || random.Below(2) == 0) return mutation.bytes(std::move(text));
  const auto at = [&] { return static_cast<std::ptrdiff_t>(random.Below(parts.size())); };
  const std::string other = parts[static_cast<size_t>(at())];
  switch (random.Below(4)) {
    case 0:
      parts.erase(parts.begin() + at());
      break;
    case 1:
      parts.insert(parts.begin() + at(), other);
      break;
    case 2:
      parts[static_cast<size_t>(at())] = other;
      break;
    default:
      std::swap(parts[static_cast<size_t>(at())], parts[static_cast<size_t>(at())]);
      break;
  }
  return Joined(parts);
}

}  // namespace stepcast::fuzz
