#include "server/store/postgres_values.h"

#include <libpq-fe.h>

#include <charconv>

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

namespace {

uint64_t BigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

// Takes so many bytes from the front; false if there are not so many.
bool Take(std::string_view& from, size_t size, std::string_view& taken) {
  if (from.size() < size) return false;
  taken = from.substr(0, size);
  from.remove_prefix(size);
  return true;
}

}  // namespace

void PostgresResult::Clear::operator()(pg_result* result) const { PQclear(result); }

int PostgresResult::rows() const { return PQntuples(result_.get()); }

int64_t PostgresResult::changed() const {
  const std::string_view text = PQcmdTuples(result_.get());
  int64_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

bool PostgresResult::IsNull(int row, int column) const {
  return PQgetisnull(result_.get(), row, column) != 0;
}

int64_t PostgresResult::Integer(int row, int column) const {
  const std::string_view bytes = Bytes(row, column);
  const uint64_t value = BigEndian(bytes);
  return bytes.size() == sizeof(int32_t) ? static_cast<int32_t>(value)
                                         : static_cast<int64_t>(value);
}

std::string_view PostgresResult::Bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

std::vector<std::string> PostgresResult::BytesArray(int row, int column) const {
  // Dimensions, a flag for nulls, the type of the elements; then for the one dimension its size and
  // first index; then the elements.
  constexpr size_t kWord = 4;
  std::string_view left = Bytes(row, column);
  std::string_view word;
  std::vector<std::string> values;
  if (!Take(left, kWord, word) || BigEndian(word) != 1 || !Take(left, 2 * kWord, word))
    return values;
  if (!Take(left, kWord, word)) return values;
  const uint64_t count = BigEndian(word);
  if (!Take(left, kWord, word)) return values;
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view value;
    if (!Take(left, kWord, word) || !Take(left, BigEndian(word), value)) return {};
    values.emplace_back(value);
  }
  return values;
}

}  // namespace stepcast::server
