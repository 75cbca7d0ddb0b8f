#include "tests/core/engine/naive_graph.h"

#include <algorithm>
#include <map>

namespace stepcast::testing {

namespace {

// The server of each parameter: as recorded (an empty map), or in graph order on the server with
// the fewest bytes so far.
std::map<std::string, int> PlaceByFewestBytes(const Profile& profile, const Scenario& scenario) {
  std::map<std::string, int> home;
  if (scenario.servers().servers == profile.parameter_servers()) return home;
  std::vector<int64_t> held(static_cast<size_t>(scenario.servers().servers), 0);
  for (const Operation& first : profile.operations()) {
    if (first.resource == Resource::kWorker || home.contains(first.parameter)) continue;
    int64_t down = 0;
    int64_t up = 0;
    for (const Operation& operation : profile.operations()) {
      if (operation.parameter != first.parameter) continue;
      if (operation.resource == Resource::kDownlink) down += operation.size_bytes;
      if (operation.resource == Resource::kUplink) up += operation.size_bytes;
    }
    const auto least = std::min_element(held.begin(), held.end());
    *least += down > 0 ? down : up;
    home[first.parameter] = static_cast<int>(least - held.begin());
  }
  return home;
}

NaiveOperation Recorded(const Profile& profile, size_t index,
                        const std::map<std::string, int>& home) {
  const Operation& operation = profile.operations()[index];
  NaiveOperation result{
      .name = operation.name, .resource = operation.resource, .bytes = operation.size_bytes};
  if (operation.resource != Resource::kWorker) {
    result.server = home.contains(operation.parameter) ? home.at(operation.parameter)
                                                       : operation.parameter_server;
  }
  for (const RecordedStep& step : profile.steps()) {
    result.durations_ns.emplace_back(step.end_ns[index] - step.start_ns[index]);
    result.recorded_end_ns.push_back(step.end_ns[index]);
  }
  return result;
}

NaiveOperation Parsing(const NaiveOperation& transfer, const Exact& duration_ns) {
  const bool at_worker = transfer.resource == Resource::kDownlink;
  return {.resource = at_worker ? Resource::kWorker : Resource::kParameterServer,
          .server = at_worker ? 0 : transfer.server,
          .durations_ns = std::vector<Exact>(transfer.durations_ns.size(), duration_ns)};
}

// All that an operation waits for, through others too.
std::set<size_t> AllBefore(const Profile& profile, size_t operation) {
  std::set<size_t> all;
  std::vector<size_t> left{operation};
  while (!left.empty()) {
    const size_t at = left.back();
    left.pop_back();
    for (const int32_t earlier : profile.operations()[at].waiting_for) {
      if (all.insert(static_cast<size_t>(earlier)).second)
        left.push_back(static_cast<size_t>(earlier));
    }
  }
  return all;
}

// The sum that each download brings: of all uploads, and work of servers, of its parameter that it
// waits for, and of whatever it waits for itself; else of those of the step before.
void AddSums(const Profile& profile, const std::vector<size_t>& place,
             const std::vector<size_t>& result, std::vector<NaiveOperation>& graph) {
  const std::vector<Operation>& operations = profile.operations();
  for (size_t index = 0; index < operations.size(); ++index) {
    if (operations[index].resource != Resource::kDownlink) continue;
    const std::set<size_t> before = AllBefore(profile, index);
    const std::vector<int32_t>& itself = operations[index].waiting_for;
    std::set<size_t> own_step;
    std::set<size_t> last_step;
    for (size_t other = 0; other < operations.size(); ++other) {
      const Resource resource = operations[other].resource;
      if (resource != Resource::kUplink && resource != Resource::kParameterServer) continue;
      const bool same = operations[other].parameter == operations[index].parameter;
      const bool direct =
          std::find(itself.begin(), itself.end(), static_cast<int32_t>(other)) != itself.end();
      if (direct || (same && before.contains(other))) own_step.insert(result[other]);
      if (same) last_step.insert(result[other]);
    }
    graph[place[index]].sum_of_last_step = own_step.empty();
    graph[place[index]].sum_of = own_step.empty() ? last_step : own_step;
  }
}

}  // namespace

std::vector<NaiveOperation> MakeNaiveGraph(const Profile& profile, const Scenario& scenario) {
  const std::map<std::string, int> home = PlaceByFewestBytes(profile, scenario);
  const ParsingOverhead& overhead = scenario.servers().parsing_overhead;
  const bool parses = overhead.seconds_per_byte != 0 || overhead.seconds != 0;
  std::vector<NaiveOperation> graph;
  std::vector<size_t> place;   // of a profile's operation
  std::vector<size_t> result;  // what to wait for instead of it
  for (size_t index = 0; index < profile.operations().size(); ++index) {
    place.push_back(graph.size());
    graph.push_back(Recorded(profile, index, home));
    if (parses && IsTransfer(graph.back().resource)) {
      const Exact seconds =
          Exact(overhead.seconds_per_byte) * graph.back().bytes + Exact(overhead.seconds);
      graph.push_back(Parsing(NaiveOperation(graph.back()), seconds * 1'000'000'000));
      graph.back().waiting_for.insert(place.back());
    }
    result.push_back(graph.size() - 1);
  }
  for (size_t index = 0; index < place.size(); ++index) {
    for (const int32_t earlier : profile.operations()[index].waiting_for) {
      graph[place[index]].waiting_for.insert(result[static_cast<size_t>(earlier)]);
    }
  }
  if (scenario.servers().synchronization == Synchronization::kSummed && scenario.workers > 1)
    AddSums(profile, place, result, graph);
  return graph;
}

}  // namespace stepcast::testing
