#include "client/cli/json_object.h"

#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace stepcast::client {

namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string Member(std::string_view name, const std::string& value) {
  return absl::StrCat(Quoted(name), ": ", value);
}

// Deeper by one level.
std::string Indented(const std::string& text) { return absl::StrReplaceAll(text, {{"\n", "\n "}}); }

}  // namespace

void JsonObject::Add(std::string_view name, double value) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  members_.push_back(Member(name, std::string(text, end.ptr)));
}

void JsonObject::Add(std::string_view name, int64_t value) {
  members_.push_back(Member(name, absl::StrCat("\"", value, "\"")));
}
void JsonObject::Add(std::string_view name, int32_t value) {
  members_.push_back(Member(name, absl::StrCat(value)));
}
void JsonObject::Add(std::string_view name, bool value) {
  members_.push_back(Member(name, value ? "true" : "false"));
}
void JsonObject::Add(std::string_view name, const std::string& value) {
  members_.push_back(Member(name, Quoted(value)));
}
void JsonObject::Add(std::string_view name, const JsonObject& value) {
  members_.push_back(Member(name, value.Text()));
}

void JsonObject::Add(std::string_view name, const std::vector<JsonObject>& values) {
  const std::string list = absl::StrJoin(
      values, ",\n", [](std::string* out, const JsonObject& value) { out->append(value.Text()); });
  members_.push_back(Member(
      name, values.empty() ? "[]" : absl::StrCat("[", Indented(absl::StrCat("\n", list)), "\n]")));
}

std::string JsonObject::Text(int level) const {
  if (members_.empty()) return "{}";
  std::string text =
      absl::StrCat("{", Indented(absl::StrCat("\n", absl::StrJoin(members_, ",\n"))), "\n}");
  for (int i = 0; i < level; ++i) text = Indented(text);
  return text;
}

}  // namespace stepcast::client
