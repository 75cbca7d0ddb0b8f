#include "core/model/pipeline.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "core/base/index.h"
#include "core/base/message_text.h"
#include "core/model/validate_profile.h"

namespace stepcast {
namespace {

class PipelineResolver {
 public:
  PipelineResolver(const Profile& profile, const PipelineDraft& draft, FaultList& faults)
      : profile_(profile), draft_(draft), faults_(faults) {}

  Pipeline Run(const PipelineNetwork& network) && {
    ResolveLayout();
    pipeline_.receives = draft_.receives.value_or(PipelineReceives::kEager);
    pipeline_.transport = draft_.transport.value_or(PipelineTransport::kIdeal);
    pipeline_.links = draft_.links.value_or(PipelineLinks::kPair);
    if (pipeline_.links == PipelineLinks::kSerial &&
        pipeline_.transport == PipelineTransport::kGloo)
      faults_.Add("pipeline.links",
                  "SERIAL, and transport is GLOO, whose connections carry both ways at once");
    pipeline_.reduction = draft_.reduction.value_or(PipelineReduction::kAtEnd);
    pipeline_.step_barrier = draft_.step_barrier;
    ResolveCount("gradient_element_bytes", draft_.gradient_element_bytes, kMaxGradientElementBytes,
                 pipeline_.gradient_element_bytes);
    if (draft_.gradient_element_bytes.has_value() &&
        pipeline_.reduction != PipelineReduction::kMegatronBuckets)
      faults_.Add("pipeline.gradient_element_bytes",
                  "given, and reduction is not MEGATRON_BUCKETS, which counts elements");
    pipeline_.nodes_per_replica = network.nodes_per_replica;
    ResolveCount("nodes_per_replica", draft_.nodes_per_replica, kMaxNodesPerReplica,
                 pipeline_.nodes_per_replica);
    const int64_t devices = int64_t{pipeline_.layout.devices} * profile_.devices_per_worker();
    faults_.AddIf(layout_is_sound_ && pipeline_.nodes_per_replica > devices,
                  "pipeline.nodes_per_replica", pipeline_.nodes_per_replica, ", and a replica has ",
                  devices, devices == 1 ? " device" : " devices");
    ResolveNetwork(network);
    const StageMap map = MapStages(profile_, "pipeline", faults_);
    faults_.AddIf(profile_.recorded_workers() > 1, "pipeline", "the profile is a recording of ",
                  profile_.recorded_workers(), " workers: import one's alone");
    if (map.chain.empty() || !layout_is_sound_) return std::move(pipeline_);
    CheckPasses(map);
    if (CheckStages(map)) ResolveCuts(map);
    return std::move(pipeline_);
  }

 private:
  void ResolveCount(const char* field, std::optional<int32_t> asked, int32_t most, int32_t& count) {
    if (!asked.has_value()) return;
    count = *asked;
    faults_.AddIf(count < 1 || count > most, absl::StrCat("pipeline.", field), count,
                  " is not from 1 to ", most);
  }

  void ResolveLayout() {
    PipelineLayout& layout = pipeline_.layout;
    const bool given = draft_.stages.has_value() && draft_.micro_batches.has_value();
    if (!draft_.stages.has_value())
      faults_.Add("pipeline.stages", "0, or not given: a pipeline needs the devices of a replica");
    if (!draft_.micro_batches.has_value())
      faults_.Add("pipeline.micro_batches", "0, or not given: a pipeline needs those of a step");
    layout.schedule = draft_.schedule.value_or(PipelineSchedule::kOneForwardOneBackward);
    layout.variant = draft_.variant.value_or(PipelineVariant::kMegatron);
    layout.devices = draft_.stages.value_or(1);
    layout.micro_batches = draft_.micro_batches.value_or(1);
    const int32_t own = layout.schedule == PipelineSchedule::kZeroBubbleV ? 2 : 1;
    layout.chunks = draft_.chunks.value_or(own);
    layout.group = draft_.group.value_or(0);
    std::vector<Fault> faults = LayoutFaults(layout);
    layout_is_sound_ = given && faults.empty();
    for (Fault& fault : faults)
      faults_.Add(absl::StrCat("pipeline.", fault.field), std::move(fault.description));
  }

  void ResolveNetwork(const PipelineNetwork& network) {
    pipeline_.bandwidth_bytes_per_second =
        draft_.bandwidth_bytes_per_second.value_or(network.bandwidth_bytes_per_second);
    if (draft_.bandwidth_bytes_per_second.has_value())
      CheckBandwidth("pipeline.bandwidth_bytes_per_second", *draft_.bandwidth_bytes_per_second,
                     faults_);
    pipeline_.latency_seconds = draft_.latency_seconds.value_or(network.latency_seconds);
    if (const double latency = pipeline_.latency_seconds;
        !(latency >= 0 && latency <= kMaxPipelineLatencySeconds))
      faults_.Add("pipeline.latency_seconds",
                  absl::StrCat(latency, " is not from 0 to ", kMaxPipelineLatencySeconds));
    pipeline_.has_network_links =
        !draft_.bandwidth_bytes_per_second.has_value() && network.is_scenarios;
    pipeline_.shares_links = pipeline_.links == PipelineLinks::kDevice &&
                             (pipeline_.has_network_links || HasBuckets(pipeline_.reduction) ||
                              pipeline_.transport == PipelineTransport::kGloo);
  }

  void CheckPasses(const StageMap& map) {
    if (!SplitsBackward(pipeline_.layout.schedule) || map.splits_backward) return;
    faults_.Add("pipeline.schedule",
                absl::StrCat(std::string(PipelineScheduleName(pipeline_.layout.schedule)),
                             " computes gradients of inputs and of weights apart, and the profile "
                             "has no BACKWARD_WEIGHT operation"));
  }

  bool CheckStages(const StageMap& map) {
    const auto layers = static_cast<int64_t>(map.chain.size());
    const PipelineLayout& layout = pipeline_.layout;
    if (layout.stages() <= layers) return true;
    faults_.Add(layout.devices > layers ? "pipeline.stages" : "pipeline.chunks",
                absl::StrCat(layout.devices > layers ? layout.devices : layout.chunks, ": ",
                             layout.stages(), " stages, and the profile has ", layers,
                             " forward operations to cut"));
    return false;
  }

  void ResolveCuts(const StageMap& map) {
    if (draft_.cuts.empty()) {
      const std::vector<int32_t> first = BestCuts(profile_, map, pipeline_.layout.stages());
      for (size_t stage = 1; stage < first.size(); ++stage)
        pipeline_.cuts.push_back(profile_.operations()[Index(map.chain[Index(first[stage])])].name);
      faults_.AddIf(static_cast<int32_t>(first.size()) < pipeline_.layout.stages(), "pipeline.cuts",
                    "none given, and the profile has too many forward operations "
                    "to find so many");
      return;
    }
    if (static_cast<int64_t>(draft_.cuts.size()) != pipeline_.layout.stages() - 1) {
      faults_.Add("pipeline.cuts",
                  absl::StrCat(draft_.cuts.size(), " given, and ", pipeline_.layout.stages(),
                               " stages (", pipeline_.layout.devices, " devices of ",
                               pipeline_.layout.chunks, ") have ", pipeline_.layout.stages() - 1));
      return;
    }
    absl::flat_hash_map<absl::string_view, int32_t> links;
    for (size_t link = 0; link < map.chain.size(); ++link)
      links.emplace(profile_.operations()[Index(map.chain[link])].name, static_cast<int32_t>(link));
    int32_t before = 0;
    for (size_t i = 0; i < draft_.cuts.size(); ++i) {
      const auto link = links.find(draft_.cuts[i]);
      const std::string path = absl::StrCat("pipeline.cuts[", i, "]");
      if (link == links.end()) {
        faults_.Add(path, absl::StrCat(Quoted(draft_.cuts[i]),
                                       " is the name of no FORWARD operation of the profile"));
      } else if (link->second <= before) {
        faults_.Add(path, absl::StrCat(Quoted(draft_.cuts[i]),
                                       link->second == 0
                                           ? " is the first forward operation, which is of the "
                                             "first stage"
                                           : " does not follow the cut before it"));
      }
      if (link != links.end()) before = link->second;
    }
    pipeline_.cuts = draft_.cuts;
  }

  const Profile& profile_;
  const PipelineDraft& draft_;
  FaultList& faults_;
  Pipeline pipeline_;
  bool layout_is_sound_ = false;
};

}  // namespace

Pipeline ResolvePipeline(const Profile& profile, const PipelineDraft& draft,
                         const PipelineNetwork& network, FaultList& faults) {
  return PipelineResolver(profile, draft, faults).Run(network);
}

std::vector<int32_t> FirstLinksOf(const Profile& profile, const StageMap& map,
                                  const Pipeline& pipeline) {
  absl::flat_hash_map<absl::string_view, int32_t> links;
  for (size_t link = 0; link < map.chain.size(); ++link)
    links.emplace(profile.operations()[Index(map.chain[link])].name, static_cast<int32_t>(link));
  std::vector<int32_t> first = {0};
  for (const std::string& cut : pipeline.cuts) first.push_back(links.at(cut));
  return first;
}

}  // namespace stepcast
