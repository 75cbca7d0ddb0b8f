// The flags that set the fields of requests, so that people are told of what they typed.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::client {

// A field's path in a request, and the flag that sets it. Of a path that is not here, the longest
// one above it counts; where two flags may set one field, the one that was typed.
struct FieldFlag {
  std::string_view path;
  std::string_view flag;
};
extern const std::vector<FieldFlag> kFieldFlags;

// The flags that a command was given: "--latency".
using TypedFlags = std::vector<std::string>;
TypedFlags TypedIn(const CLI::App& app);

// The path as people know it: "--latency" of "scenario.all_reduce.latency_seconds" where that was
// typed; of an entry of a list "--workers, number 3"; else the path as it is.
std::string FieldText(std::string_view path, const TypedFlags& typed);

// The flag that would set the field of `path`, which was not typed; the path where none would.
std::string FlagToGive(std::string_view path);

// A description of what is wrong with the field of `path`, with the names of other fields that were
// set by flags replaced by these. What it says for those who write requests is left out.
std::string DescriptionText(std::string_view description, const TypedFlags& typed);

// The same of what an answer says, where any flag may have been typed.
std::string WithFlags(std::string_view message);

}  // namespace stepcast::client
