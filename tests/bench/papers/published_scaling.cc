#include "tests/bench/papers/published_scaling.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stepcast::bench {

namespace {

using nlohmann::json;

// The result of `read` on the text; a JSON library's complaints become ours.
template <typename Read>
PublishedSet Parsed(const char* name, std::string_view text, const Read& read) {
  try {
    PublishedSet set{.name = name, .rows = {}};
    read(json::parse(text), set.rows);
    if (set.rows.empty()) throw std::runtime_error("has no rows");
    for (const PublishedRow& row : set.rows) {
      const double seconds[] = {row.one_worker_seconds, row.step_seconds};
      if (row.batch_size < 1 || row.workers() < 2 ||
          !std::all_of(std::begin(seconds), std::end(seconds),
                       [](double one) { return std::isfinite(one) && one > 0; }))
        throw std::runtime_error(absl::StrCat("a row of ", row.model, " is none"));
    }
    return set;
  } catch (const std::exception& error) {
    throw std::runtime_error(absl::StrCat("not what ", name, " published: ", error.what()));
  }
}

int32_t Number(std::string_view text) {
  int32_t number = 0;
  if (!absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &number) || number < 1)
    throw std::runtime_error(absl::StrCat("\"", std::string(text), "\" is not a number above 0"));
  return number;
}

struct Placement {
  int32_t nodes = 0;
  int32_t workers_per_node = 0;
};

// Of a digit a node; none if they are unlike.
std::optional<Placement> PlacementOfDigits(const std::string& digits) {
  if (digits.find_first_not_of(digits.front()) != std::string::npos) return std::nullopt;
  return Placement{.nodes = static_cast<int32_t>(digits.size()),
                   .workers_per_node = Number(digits.substr(0, 1))};
}

// Of "NODESxWORKERS"; none if they are not spread evenly.
std::optional<Placement> PlacementOfCounts(const std::string& counts) {
  const size_t times = counts.find('x');
  if (times == std::string::npos) throw std::runtime_error(counts + " is no placement");
  const int32_t nodes = Number(counts.substr(0, times));
  const int32_t workers = Number(counts.substr(times + 1));
  if (workers % nodes != 0) return std::nullopt;
  return Placement{.nodes = nodes, .workers_per_node = workers / nodes};
}

// Seconds of one worker's step, by its batch.
using OneWorker = std::map<int32_t, double>;

// Rows of [batch, step seconds, ...]; those whose batch one worker was not measured with are left
// out.
void AddPollux(const std::string& model, const Placement& placement, const json& measured,
               const OneWorker& one_worker, std::vector<PublishedRow>& rows) {
  for (const json& row : measured) {
    const auto one = one_worker.find(row.at(0).get<int32_t>());
    if (one == one_worker.end()) continue;
    rows.push_back({.model = model,
                    .job = "",
                    .nodes = placement.nodes,
                    .workers_per_node = placement.workers_per_node,
                    .batch_size = one->first,
                    .one_worker_seconds = one->second,
                    .step_seconds = row.at(1).get<double>()});
  }
}

void AddGavel(const std::string& model, bool packed, const json& batches,
              std::vector<PublishedRow>& rows) {
  constexpr int32_t kMostPacked = 4;
  for (const auto& [batch, counts] : batches.items()) {
    // Steps per second, of all workers together.
    const double one = counts.at("1").at(0).get<double>();
    for (const auto& [count, rates] : counts.items()) {
      const int32_t workers = Number(count);
      const double rate = rates.at(0).is_null() ? 0 : rates.at(0).get<double>();
      if (workers == 1 || rate == 0 || (packed && workers > kMostPacked)) continue;
      const int32_t per_node = packed ? workers : 1;
      rows.push_back({.model = model,
                      .job = "",
                      .nodes = workers / per_node,
                      .workers_per_node = per_node,
                      .batch_size = Number(batch),
                      .one_worker_seconds = 1 / one,
                      .step_seconds = workers / rate});
    }
  }
}

// Whose code, in which precision, and how many processes load data if that is said. `title`: a
// table's headings, the nearest last.
std::string JobOf(const std::string& folder, const std::string& title) {
  std::string job = folder.substr(0, folder.find('/'));
  job.append(title.find("AMP") != std::string::npos ? ", mixed precision" : ", float32");
  if (const size_t loaders = title.rfind("worker="); loaders != std::string::npos)
    job.append(", ").append(title.substr(loaders + 7)).append(" loaders");
  return job;
}

}  // namespace

PublishedSet ReadPollux(std::string_view text) {
  return Parsed("Pollux, T4", text, [](const json& file, std::vector<PublishedRow>& rows) {
    for (const auto& [name, model] :
         {std::pair("imagenet", "resnet50"), std::pair("cifar10", "resnet18_cifar")}) {
      const json& measured = file.at("models").at(name);
      OneWorker one_worker;
      for (const json& row : measured.at("placements").at("1"))
        one_worker[row.at(0).get<int32_t>()] = row.at(1).get<double>();
      for (const auto& [digits, more] : measured.at("placements").items()) {
        const std::optional<Placement> placement = PlacementOfDigits(digits);
        if (placement && digits != "1") AddPollux(model, *placement, more, one_worker, rows);
      }
      for (const auto& [counts, more] : measured.at("scalability_nodes_x_gpus").items()) {
        if (const std::optional<Placement> placement = PlacementOfCounts(counts))
          AddPollux(model, *placement, more, one_worker, rows);
      }
    }
  });
}

PublishedSet ReadGavel(std::string_view text) {
  return Parsed("Gavel, P100", text, [](const json& file, std::vector<PublishedRow>& rows) {
    for (const auto& [name, model] :
         {std::pair("ResNet-18", "resnet18_cifar"), std::pair("ResNet-50", "resnet50"),
          std::pair("LM", "word_lstm")}) {
      AddGavel(model, /*packed=*/true, file.at("data").at("p100").at(name), rows);
      AddGavel(model, /*packed=*/false, file.at("data").at("p100_unconsolidated").at(name), rows);
    }
  });
}

PublishedSet ReadDlPerf(std::string_view text) {
  return Parsed("DLPerf, V100", text, [](const json& file, std::vector<PublishedRow>& rows) {
    for (const json& table : file.at("tables")) {
      const std::string folder = table.at("dir").get<std::string>();
      if (folder.find("PyTorch") == std::string::npos) continue;
      double one_worker = 0;  // examples per second
      for (const json& row : table.at("rows")) {
        const auto nodes = row.at(0).get<int32_t>();
        const auto workers = row.at(1).get<int32_t>();
        const auto batch = row.at(2).get<int32_t>();
        const auto rate = row.at(3).get<double>();
        if (workers == 1) {
          one_worker = rate;
          continue;
        }
        rows.push_back({.model = "resnet50",
                        .job = JobOf(folder, table.at("title").get<std::string>()),
                        .nodes = nodes,
                        .workers_per_node = workers / nodes,
                        .batch_size = batch,
                        .one_worker_seconds = batch / one_worker,
                        .step_seconds = workers * batch / rate});
      }
    }
  });
}

}  // namespace stepcast::bench
