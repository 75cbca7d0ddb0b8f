// Options whose text is parsed by a function of ours, and options of messages.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stepcast::client {

// Adds an option whose text `parse` turns into an absl::StatusOr, and `store` keeps. A text that
// `parse` refuses is wrong usage.
template <typename Parse, typename Store>
CLI::Option* AddParsedOption(CLI::App& app, const std::string& name, const char* type,
                             const std::string& help, Parse parse, Store store) {
  const auto on_text = [name, parse = std::move(parse),
                        store = std::move(store)](const std::string& text) {
    auto value = parse(text);
    if (!value.ok()) throw CLI::ValidationError(name, std::string(value.status().message()));
    store(*std::move(value));
  };
  return app.add_option_function<std::string>(name, on_text, help)->type_name(type);
}

// Adds an option with a value of type Value, which `store` keeps: a field of a message, mostly.
template <typename Value, typename Store>
CLI::Option* AddValueOption(CLI::App& app, const std::string& name, const char* type,
                            const std::string& help, Store store) {
  return app
      .add_option_function<Value>(
          name, [store = std::move(store)](const Value& value) { store(value); }, help)
      ->type_name(type);
}

// The words that an option takes, and what each stands for.
template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

// The words of the choices, in their order.
template <typename Value>
std::string ChoiceWords(const Choices<Value>& choices, const char* separator) {
  return absl::StrJoin(choices, separator, [](std::string* out, const auto& choice) {
    absl::StrAppend(out, choice.first);
  });
}

// Failure: INVALID_ARGUMENT, with all the words that would be right.
template <typename Value>
absl::StatusOr<Value> ParseChoice(const std::string& text, const Choices<Value>& choices) {
  for (const auto& [word, value] : choices) {
    if (text == word) return value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is none of ", ChoiceWords(choices, ", ")));
}

// Adds an option that takes one of the choices.
template <typename Value, typename Store>
CLI::Option* AddChoiceOption(CLI::App& app, const std::string& name, const Choices<Value>& choices,
                             const std::string& help, Store store) {
  return AddParsedOption(
      app, name, ChoiceWords(choices, "|").c_str(), help,
      [choices](const std::string& text) { return ParseChoice(text, choices); }, std::move(store));
}

}  // namespace stepcast::client
