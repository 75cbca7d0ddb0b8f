// Texts that people write for `stepcast`, in files and flags: the first byte says which.
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/flags/quantity.h"
#include "client/cli/input_files.h"

#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/text_mutator.h"

namespace stepcast::fuzz {

namespace {

bool IsRefused(const absl::Status& status) {
  if (status.ok()) return false;
  Demand(status.code() == absl::StatusCode::kInvalidArgument && !status.message().empty(),
         "a refusal says why:", status.ToString());
  return true;
}

// A refused file names what is wrong, without repeating it all.
bool IsFileRefused(const absl::Status& status) {
  constexpr size_t kMaxMessage = 512;
  Demand(status.message().size() <= kMaxMessage,
         "a refusal of a file is short:", status.ToString());
  return IsRefused(status);
}

bool TryMeasurements(std::string_view text) {
  static_cast<void>(client::LooksLikeMeasurements(text));
  return !IsFileRefused(client::ParseMeasurements(text).status());
}

bool TryPriorities(std::string_view text) {
  const auto priorities = client::ParsePriorities(text);
  if (IsFileRefused(priorities.status())) return false;
  std::string written;
  for (const auto& [name, rank] : *priorities) written += name + "\t" + std::to_string(rank) + "\n";
  const auto again = client::ParsePriorities(written);
  Demand(again.ok() && *again == *priorities,
         "priorities that are written out are the same:", written);
  return true;
}

bool TryVariables(std::string_view text) {
  const auto sizes = client::ParseVariableSizes(text);
  if (IsFileRefused(sizes.status())) return false;
  for (const auto& [name, bytes] : *sizes) Demand(bytes >= 0, "a variable has a size:", name);
  return true;
}

bool TryWorkers(std::string_view text) {
  const auto counts = client::ParseWorkerList(text);
  if (IsRefused(counts.status())) return false;
  std::string written;
  for (const int32_t count : *counts)
    written += (written.empty() ? "" : ",") + std::to_string(count);
  const auto again = client::ParseWorkerList(written);
  Demand(!counts->empty() && counts->size() <= 1024 && again.ok() && *again == *counts,
         "a list that is written out is the same:", written);
  return true;
}

bool TryCount(std::string_view text) {
  const auto count = client::ParseCount(text);
  if (IsRefused(count.status())) return false;
  Demand(client::ParseCount(std::to_string(*count)).value() == *count,
         "a count that is written out is the same");
  return true;
}

bool TryRate(std::string_view text) {
  const auto rate = client::ParseRate(text);
  if (IsRefused(rate.status())) return false;
  Demand(std::isfinite(*rate) && *rate >= 0, "a rate is a number:", std::string(text));
  return true;
}

bool TryBytes(std::string_view text) {
  const auto bytes = client::ParseBytes(text);
  if (IsRefused(bytes.status())) return false;
  Demand(*bytes >= 0, "bytes are a count:", std::string(text));
  return true;
}

bool TryDuration(std::string_view text) {
  const auto duration = client::ParseDuration(text);
  if (IsRefused(duration.status())) return false;
  Demand(duration->count() >= 0, "a length of time is not negative:", std::string(text));
  return true;
}

bool TryRecording(std::string_view text) {
  static_cast<void>(client::DetectRecordingFormat(text));
  return true;
}

struct Parser {
  bool (*run)(std::string_view);
  const char* seed;
};

constexpr std::array<Parser, 9> kParsers{
    {{TryMeasurements, "size_bytes,seconds\n1000,0.001\n2000;0.002\n# a remark\n3000\t3e-3\n"},
     {TryPriorities, "recv/a\t0\nrecv/b\t1\n# a remark\r\n\nrecv c\t-1\n"},
     {TryVariables, "conv1/weights 4KiB\ndense 10MB\n# a remark\n x 7\n"},
     {TryWorkers, "1-4,8,16"},
     {TryCount, "18446744073709551615"},
     {TryRate, "1.5 Gbit/s"},
     {TryBytes, "64 KiB"},
     {TryDuration, "250 ms"},
     {TryRecording, " [{}]"}}};

class ClientTextTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    for (size_t i = 0; i < kParsers.size(); ++i)
      seeds.push_back(static_cast<char>(i) + std::string(kParsers[i].seed));
    return seeds;
  }

  bool Run(std::string_view input) override {
    return !input.empty() &&
           kParsers[static_cast<unsigned char>(input[0]) % kParsers.size()].run(input.substr(1));
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (input.empty() || mutation.random.Below(32) == 0) return mutation.bytes(std::move(input));
    return input[0] + MutateText(input.substr(1), mutation);
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ClientTextTarget>(); }

}  // namespace stepcast::fuzz
