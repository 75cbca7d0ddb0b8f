#include "client/cli/platform_flags.h"

#include "client/cli/parsed_option.h"
#include "client/cli/quantity.h"

namespace stepcast::client {

void PlatformFlags::Declare(CLI::App& app) {
  constexpr char kPlatformGroup[] = "Platform";
  AddParsedOption(
      app, "--bandwidth", "RATE",
      "Payload rate of a link in each direction: 1Gbit/s, 125MB/s, or bytes per second",
      [](const std::string& text) { return ParseRate(text); },
      [this](double rate) { platform_.bandwidth_bytes_per_second = rate; })
      ->required()
      ->group(kPlatformGroup);
  AddParsedOption(
      app, "--window", "BYTES",
      "What a stream sends before others get their turn: 65536, 4MiB (default: streams are sent "
      "whole)",
      [](const std::string& text) { return ParseBytes(text); },
      [this](int64_t bytes) { platform_.window_bytes = bytes; })
      ->group(kPlatformGroup);
  app.add_option("--parsing-seconds-per-byte", platform_.parsing_overhead.seconds_per_byte,
                 "What a receiver computes per byte of a tensor")
      ->type_name("S")
      ->group(kPlatformGroup);
  app.add_option("--parsing-seconds", platform_.parsing_overhead.seconds,
                 "What a receiver computes per tensor")
      ->type_name("S")
      ->group(kPlatformGroup);
}

}  // namespace stepcast::client
