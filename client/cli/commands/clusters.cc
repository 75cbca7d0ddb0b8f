// `clusters`: the machines that --cluster knows, and the figures of one with their sources.
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/presets.h"
#include "client/cli/texts/json_text.h"
#include "client/cli/texts/table.h"

#include "stepcast/json.h"

namespace stepcast::client {

namespace {

using nlohmann::ordered_json;

std::string FigureOf(const ClusterPreset& cluster, std::string_view name) {
  for (const ClusterFigure& figure : cluster.figures) {
    if (figure.name == name) return figure.value;
  }
  return "-";
}

std::string BasisOf(const ClusterPreset& cluster, std::string_view name) {
  for (const ClusterFigure& figure : cluster.figures) {
    if (figure.name == name && !figure.basis.empty()) return figure.basis;
  }
  return "-";
}

// The object of the file, and the scenario that a request has for it.
ordered_json JsonOf(const ClusterPreset& cluster) {
  ordered_json scenario;
  scenario["cluster"] = ordered_json::parse(ToJson(cluster.wire));
  return {{"cluster", ordered_json::parse(cluster.definition)}, {"scenario", std::move(scenario)}};
}

std::string ListText(const std::vector<ClusterPreset>& clusters) {
  using Align = Table::Align;
  Table table({{"cluster", Align::kLeft},
               {"workers/node", Align::kRight},
               {"NICs", Align::kRight},
               {"between nodes", Align::kRight},
               {"is", Align::kLeft},
               {"inside", Align::kRight},
               {"is", Align::kLeft},
               {"latency", Align::kRight},
               {"inside", Align::kRight},
               {"machines", Align::kLeft}});
  for (const ClusterPreset& cluster : clusters) {
    table.AddRow({cluster.name, FigureOf(cluster, "workers-per-node"), FigureOf(cluster, "nics"),
                  FigureOf(cluster, "bandwidth"), BasisOf(cluster, "bandwidth"),
                  FigureOf(cluster, "intra-bandwidth"), BasisOf(cluster, "intra-bandwidth"),
                  FigureOf(cluster, "latency"), FigureOf(cluster, "intra-latency"), cluster.about});
  }
  return absl::StrCat(table.Text(),
                      "use one with predict PROFILE --cluster NAME; "
                      "stepcast clusters NAME shows where its figures are from\n");
}

std::string OneText(const ClusterPreset& cluster) {
  Table table({{"figure", Table::Align::kLeft},
               {"value", Table::Align::kRight},
               {"basis", Table::Align::kLeft},
               {"source", Table::Align::kLeft}});
  for (const ClusterFigure& figure : cluster.figures) {
    table.AddRow({figure.name, figure.value, figure.basis.empty() ? "-" : figure.basis,
                  figure.source.empty() ? "-" : figure.source});
  }
  return absl::StrCat(cluster.name, cluster.about.empty() ? "" : ": ", cluster.about, "\n\n",
                      table.Text(), "\nas a request has it: ", JsonOf(cluster)["scenario"].dump(),
                      "\n");
}

class ClustersCommand : public Command {
 public:
  CLI::App* Declare(CLI::App& parent) override {
    CLI::App* app = parent.add_subcommand(
        "clusters", "The machines that --cluster knows, and where their figures are from");
    app->add_option("NAME", name_,
                    "One of them, or a file of one's own: its figures with their sources, and the "
                    "scenario of a request as JSON")
        ->type_name("");
    return app;
  }

  bool NeedsNoServer() const override { return true; }

  ExitCode Run(const Session& session) const override {
    if (!name_.empty()) {
      const absl::StatusOr<ClusterPreset> cluster = ClusterFromArgument(name_);
      if (!cluster.ok())
        return session.Misused(
            {cluster.status().message().data(), cluster.status().message().size()});
      return session.Answer(JsonText(JsonOf(*cluster)), [&] { return OneText(*cluster); });
    }
    const absl::StatusOr<std::vector<ClusterPreset>> clusters = ParseClusters(kClusterPresets);
    if (!clusters.ok()) return session.Refused(clusters.status());
    ordered_json list;
    list["clusters"] = ordered_json::array();
    for (const ClusterPreset& cluster : *clusters) list["clusters"].push_back(JsonOf(cluster));
    return session.Answer(JsonText(list), [&] { return ListText(*clusters); });
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> MakeClustersCommand() { return std::make_unique<ClustersCommand>(); }

}  // namespace stepcast::client
