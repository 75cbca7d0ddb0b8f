#include "tests/bench/papers/second_server.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "core/communication/server_transfers.h"

namespace stepcast::bench {

namespace {

// The server of each operation, by its index, where tensors travel whole; 0 for WORKER operations.
std::vector<int32_t> PlaceParameters(const Profile& profile, int32_t servers) {
  const stepcast::Placement placement(profile, servers, 0);
  std::vector<int32_t> placed;
  for (size_t i = 0; i < profile.operations().size(); ++i)
    placed.push_back(placement.ServerOf(static_cast<int32_t>(i), 0));
  return placed;
}

std::vector<int64_t> BytesOfTwo(const Profile& profile) {
  const std::vector<int32_t> servers = PlaceParameters(profile, 2);
  std::vector<int64_t> bytes(2);
  for (size_t op = 0; op < servers.size(); ++op) {
    const Operation& operation = profile.operations()[op];
    if (operation.resource == Resource::kDownlink)
      bytes[static_cast<size_t>(servers[op])] += operation.size_bytes;
  }
  return bytes;
}

double Megabytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

}  // namespace

double SecondServerGain::Bound() const {
  return static_cast<double>(bytes[0] + bytes[1]) /
         static_cast<double>(std::max(bytes[0], bytes[1]));
}

std::vector<SecondServerGain> MeasureSecondServer(const SecondServerOptions& options) {
  std::vector<SecondServerGain> gains;
  for (const int32_t batch_size : options.batch_sizes) {
    for (const std::string& model : options.models) {
      const Profile profile = GpuProfile(model, batch_size, options.gigabits_per_second * kGigabit);
      const auto examples_per_second = [&](int32_t servers) {
        const ScenarioDraft scenario{
            .communication = ParameterServersDraft{.servers = servers,
                                                   .transfer_order = TransferOrder::kRandom}};
        return Predict(profile, scenario, {options.workers}, options.length)
            .front()
            .examples_per_second;
      };
      gains.push_back({.model = model,
                       .batch_size = batch_size,
                       .bytes = BytesOfTwo(profile),
                       .one_examples_per_second = examples_per_second(1),
                       .two_examples_per_second = examples_per_second(2)});
    }
  }
  return gains;
}

std::string SecondServerTable(const std::vector<SecondServerGain>& gains) {
  std::string table = TableHead(
      {"batch", "model", "MB on the servers", "at most", "one server", "two servers", "gain"});
  for (const SecondServerGain& gain : gains) {
    table += TableRow(
        {absl::StrCat(gain.batch_size), gain.model,
         absl::StrFormat("%.0f : %.0f", Megabytes(gain.bytes[0]), Megabytes(gain.bytes[1])),
         absl::StrFormat("%.2f", gain.Bound()),
         absl::StrFormat("%.1f", gain.one_examples_per_second),
         absl::StrFormat("%.1f", gain.two_examples_per_second),
         absl::StrFormat("%.2f", gain.Gain())});
  }
  return table;
}

}  // namespace stepcast::bench
