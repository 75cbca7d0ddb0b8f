// Options whose text is parsed by a function of ours.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace stepcast::client {

// Adds an option whose text `parse` turns into an absl::StatusOr, and `store` keeps. What `parse`
// refuses is wrong usage.
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

}  // namespace stepcast::client
