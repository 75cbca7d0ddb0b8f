#include "client/cli/change_flags.h"

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "client/cli/input_reader.h"
#include "client/cli/parsed_option.h"
#include "client/cli/profile_argument.h"

namespace stepcast::client {

namespace {

// A change that has the recording alone: a file's profile, or the name of a stored one.
absl::StatusOr<v1::JobChange> SecondRecording(const std::string& argument) {
  v1::JobChange source;
  if (!IsFile(argument)) {
    absl::StatusOr<std::string> name = StoredName(argument);
    if (!name.ok()) return name.status();
    source.set_second_profile(*std::move(name));
    return source;
  }
  absl::StatusOr<v1::Profile> profile = ReadProfileInput(argument);
  if (!profile.ok()) return profile.status();
  *source.mutable_second_inline_profile() = *std::move(profile);
  return source;
}

}  // namespace

void DeclareChangeFlags(CLI::App& app, v1::Scenario& scenario) {
  const auto change = [&scenario] { return scenario.mutable_change(); };
  CLI::Option* const batch = AddValueOption<int32_t>(
      app, "--batch-size", "N",
      "Examples of a worker and step, in place of the recorded number; computation grows with it",
      [=](int32_t examples) { change()->set_batch_size(examples); });
  CLI::Option* const global = AddValueOption<int64_t>(
      app, "--global-batch", "N",
      "Examples of a step of all workers together, which they divide: strong scaling (of predict)",
      [=](int64_t examples) { change()->set_global_batch_size(examples); });
  global->excludes(batch);
  CLI::Option* const fixed = AddValueOption<double>(
      app, "--batch-fixed", "SHARE",
      "Share of the recorded computation that does not grow with the batch (default 0)",
      [=](double share) { change()->set_fixed_fraction(share); });
  CLI::Option* const second = AddParsedOption(
      app, "--batch-recording", "PROFILE",
      "A recording of the same job with another batch, a file or a stored name: tells what grows "
      "with the batch",
      SecondRecording, [=](const v1::JobChange& source) { change()->MergeFrom(source); });
  second->excludes(fixed);
  CLI::Option* const accumulate = AddValueOption<int32_t>(
      app, "--accumulate", "K",
      "Micro-batches whose gradients add up before they are sent, as with DDP's no_sync",
      [=](int32_t count) { change()->set_accumulate(count); });
  CLI::Option* const speed = AddValueOption<double>(
      app, "--compute-speed", "FACTOR", "Speed of all devices over that of the recorded one",
      [=](double factor) { change()->set_compute_speed_factor(factor); });
  CLI::Option* const bytes = AddValueOption<double>(
      app, "--gradient-bytes", "FACTOR",
      "Bytes of gradients over the recorded ones: 0.5 for 16 bits in place of 32",
      [=](double factor) { change()->set_gradient_bytes_factor(factor); });
  for (CLI::Option* option : {batch, global, fixed, second, accumulate, speed, bytes})
    option->group("Job (default: as recorded)");
}

}  // namespace stepcast::client
