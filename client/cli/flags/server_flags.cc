// The flags of connections to parameter servers: how links and streams are shared.
#include <cstdint>
#include <optional>
#include <string>

#include "client/cli/flags/parsed_option.h"
#include "client/cli/flags/quantity.h"
#include "client/cli/flags/scenario_flags.h"

namespace stepcast::client {

void ScenarioFlags::DeclareSharing(CLI::App& app) {
  app.add_flag_function(
         "--first-come", [this](int64_t) { servers().mutable_first_come(); },
         "Links serve chunks whole, in order of arrival, instead of sharing equally")
      ->group(kScenarioGroup);
  AddParsedOption(
      app, "--turns", "BYTES",
      "Links serve one worker at a time, so much in a turn, late-comers first: 65160B is what "
      "Linux sends at once (the default where a real recording tells the order of transfers; with "
      "several servers at least a 512th of a step)",
      [](const std::string& text) { return ParseBytes(text); },
      [this](int64_t bytes) { servers().mutable_turns()->set_bytes(bytes); })
      ->excludes("--first-come")
      ->group(kScenarioGroup);
  app.add_flag_function(
         "--equal-shares", [this](int64_t) { servers().mutable_equal(); },
         "Workers share links equally (the default otherwise)")
      ->excludes("--first-come")
      ->excludes("--turns")
      ->group(kScenarioGroup);
}

void ScenarioFlags::DeclareMultiplexing(CLI::App& app) {
  const auto parse_bytes = [](const std::string& text) { return ParseBytes(text); };
  CLI::Option* how = AddChoiceOption(
      app, "--multiplexing",
      Choices<Streams>{{"window", Streams::kWindow},
                       {"whole-stream", Streams::kWhole},
                       {"round-robin", Streams::kRoundRobin}},
      "How streams share one connection (default: by --window, or the profile's, where there is "
      "one, else whole)",
      [this](Streams value) { streams_ = value; });
  CLI::Option* window =
      AddParsedOption(app, "--window", "BYTES",
                      "Streams send so much first, the rest later: 64KiB, 4MiB (round-robin: 64KiB "
                      "where the profile has none)",
                      parse_bytes, [this](int64_t bytes) { window_bytes_ = bytes; });
  CLI::Option* quantum =
      AddParsedOption(app, "--quantum", "BYTES",
                      "What a stream sends in each later service (round-robin: 1MiB; window: all "
                      "the rest, about 1MiB is gRPC 1.51)",
                      parse_bytes, [this](int64_t bytes) { quantum_bytes_ = bytes; });
  for (CLI::Option* option : {how, window, quantum}) option->group(kScenarioGroup);
  app.parse_complete_callback([this, &app] {
    CheckStreams();
    CheckKind(app);
    CheckPlaces(app);
  });
}

void ScenarioFlags::CheckStreams() const {
  const bool are_whole =
      streams_ == Streams::kWhole || (!streams_.has_value() && window_bytes_ == 0);
  if (are_whole && window_bytes_.value_or(0) != 0)
    throw CLI::ValidationError("--window", "whole streams have none");
  if (are_whole && quantum_bytes_.has_value())
    throw CLI::ValidationError("--quantum", "whole streams have none");
}

}  // namespace stepcast::client
