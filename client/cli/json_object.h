// A JSON object written by hand, in the form of the replies' JSON (stepcast/json.h): one space a
// level, 64-bit integers as strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::client {

class JsonObject {
 public:
  // Names are written as they are. Numbers must be finite.
  void Add(std::string_view name, double value);
  void Add(std::string_view name, int64_t value);
  void Add(std::string_view name, int32_t value);
  void Add(std::string_view name, bool value);
  // Quotes, backslashes and control characters are escaped.
  void Add(std::string_view name, const std::string& value);
  void Add(std::string_view name, const JsonObject& value);
  void Add(std::string_view name, const std::vector<JsonObject>& values);

  // `level`: that of the line its brace stands on.
  std::string Text(int level = 0) const;

 private:
  // An object's lines end without indentation: it is added when its level is known.
  std::vector<std::string> members_;
};

}  // namespace stepcast::client
