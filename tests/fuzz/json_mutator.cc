#include "tests/fuzz/json_mutator.h"

#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace stepcast::fuzz {

namespace {

using nlohmann::json;

// `value` itself or, more often, one somewhere inside.
json& AnyInside(json& value, Random& random) {
  if (!value.is_structured() || value.empty() || random.Below(8) == 0) return value;
  const auto at = static_cast<json::difference_type>(random.Below(value.size()));
  return AnyInside(*std::next(value.begin(), at), random);
}

json OtherScalar(const json& old, const Mutation& mutation) {
  Random& random = mutation.random;
  switch (random.Below(8)) {
    case 0:
      return nullptr;
    case 1:
      return random.Below(2) == 0;
    case 2:
      return static_cast<int64_t>(random.Next()) >> random.Below(64);
    case 3:
      return (random.Unit() - 0.25) * 1e18;
    case 4:
      return json::array({old});
    default:
      break;
  }
  if (old.is_string()) return mutation.bytes(old.get<std::string>());
  if (old.is_number_integer())
    return static_cast<int64_t>(static_cast<uint64_t>(old.get<int64_t>()) + random.Below(2000) -
                                1000);
  if (old.is_number()) return old.get<double>() * random.Unit();
  return mutation.bytes("");
}

void MutateValue(json& value, json& root, const Mutation& mutation) {
  Random& random = mutation.random;
  if (!value.is_structured() || value.empty() || random.Below(16) == 0) {
    value = OtherScalar(value, mutation);
    return;
  }
  const auto at =
      std::next(value.begin(), static_cast<json::difference_type>(random.Below(value.size())));
  const uint64_t kind = random.Below(3);
  if (kind == 0) {
    value.erase(at);
  } else if (kind == 1 && value.is_array()) {
    const json copy = *at;
    value.push_back(copy);
  } else {
    const json copy = AnyInside(root, random);
    *at = copy;
  }
}

}  // namespace

std::string MutateJson(std::string text, const Mutation& mutation) {
  json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded() || mutation.random.Below(4) == 0) return mutation.bytes(std::move(text));
  for (uint64_t count = 1 + mutation.random.Below(3); count > 0; --count)
    MutateValue(AnyInside(root, mutation.random), root, mutation);
  return root.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace stepcast::fuzz
