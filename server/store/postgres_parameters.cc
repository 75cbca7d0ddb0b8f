#include "server/store/postgres_parameters.h"

namespace stepcast::server {

namespace {

// Of pg_type.dat; these never change.
constexpr unsigned kBytea = 17;
constexpr unsigned kInt8 = 20;
constexpr unsigned kText = 25;
constexpr unsigned kByteaArray = 1001;
constexpr int kBinaryParameter = 1;

void AppendBigEndian(std::string& to, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    to += static_cast<char>(value >> shift & 0xff);
}

}  // namespace

PostgresParameters& PostgresParameters::Integer(int64_t value) {
  std::string& encoded = owned_.emplace_back();
  AppendBigEndian(encoded, static_cast<uint64_t>(value), 8);
  return Add(kInt8, encoded);
}

PostgresParameters& PostgresParameters::Bytes(std::string_view value) { return Add(kBytea, value); }

PostgresParameters& PostgresParameters::NullBytes() {
  Add(kBytea, "");
  values_.back() = nullptr;
  return *this;
}

PostgresParameters& PostgresParameters::BytesArray(const std::vector<std::string_view>& values) {
  std::string& encoded = owned_.emplace_back();
  AppendBigEndian(encoded, values.empty() ? 0 : 1, 4);  // dimensions
  AppendBigEndian(encoded, 0, 4);                       // no nulls
  AppendBigEndian(encoded, kBytea, 4);
  if (!values.empty()) {
    AppendBigEndian(encoded, values.size(), 4);
    AppendBigEndian(encoded, 1, 4);  // the first index
  }
  for (const std::string_view value : values) {
    AppendBigEndian(encoded, value.size(), 4);
    encoded.append(value);
  }
  return Add(kByteaArray, encoded);
}

PostgresParameters& PostgresParameters::Text(std::string_view value) { return Add(kText, value); }

PostgresParameters& PostgresParameters::Add(unsigned type, std::string_view value) {
  types_.push_back(type);
  values_.push_back(value.data() == nullptr ? "" : value.data());  // a null pointer would be NULL
  lengths_.push_back(static_cast<int>(value.size()));
  formats_.push_back(kBinaryParameter);
  bytes_ += value.size();
  return *this;
}

}  // namespace stepcast::server
