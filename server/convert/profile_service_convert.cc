#include "server/convert/profile_service_convert.h"

#include <utility>

#include "core/model/fault_list.h"
#include "server/convert/enum_table.h"
#include "server/convert/profile_convert.h"

namespace stepcast::server {

namespace {

// Of any of the messages that store a profile, whose three fields are the same.
template <typename Message>
ProfilePlacement PlacementOf(const Message& wire) {
  return {.profile_id = wire.profile_id(),
          .request_id = wire.request_id(),
          .validate_only = wire.validate_only()};
}

// Of the options of a format that has one step or none, whose four fields are the same.
template <typename Message>
StepVariationDraft VariationOf(const Message& wire) {
  StepVariationDraft variation;
  if (wire.has_step_time_variation()) variation.own = wire.step_time_variation();
  if (wire.has_common_time_variation()) variation.common = wire.common_time_variation();
  if (wire.has_steps()) variation.steps = wire.steps();
  if (wire.has_seed()) variation.seed = wire.seed();
  return variation;
}

LayerProfileOptions LayerOptionsOf(const v1::LayerProfileOptions& wire) {
  LayerProfileOptions options;
  options.model = wire.model();
  options.batch_size = wire.batch_size();
  options.platform = FromWire(wire.platform());
  options.variation = VariationOf(wire);
  return options;
}

// Of RunMetadataOptions or TimelineOptions, whose first fields are the same.
template <typename Message>
RecordingOptions RecordingOptionsOf(const Message& wire) {
  return {.model = wire.model(),
          .batch_size = wire.batch_size(),
          .platform = FromWire(wire.platform())};
}

ZooImport ZooImportOf(const v1::ModelZooOptions& wire) {
  ZooImport import{.model = wire.model()};
  ZooOptions& options = import.options;
  if (wire.has_batch_size()) options.batch_size = wire.batch_size();
  options.platform = FromWire(wire.platform());
  if (wire.has_device_flops_per_second())
    options.device_flops_per_second = wire.device_flops_per_second();
  options.variation = VariationOf(wire);
  return import;
}

}  // namespace

CreateProfileCall FromWire(const v1::CreateProfileRequest& wire) {
  CreateProfileCall call{.placement = PlacementOf(wire)};
  if (wire.has_profile()) call.profile = FromWire(wire.profile());
  return call;
}

UploadProfileCall FromWire(const v1::UploadProfileRequest::Header& wire) {
  UploadProfileCall call{.placement = PlacementOf(wire)};
  FaultList faults;
  call.encoding = CoreOf(kProfileEncodings, wire.encoding(), "header.encoding", faults)
                      .value_or(ProfileEncoding::kBinary);
  call.faults = std::move(faults).Take();
  return call;
}

ImportProfileCall FromWire(const v1::ImportProfileRequest::Header& wire) {
  ImportProfileCall call{.placement = PlacementOf(wire),
                         .display_name = wire.display_name(),
                         .labels = {wire.labels().begin(), wire.labels().end()}};
  if (wire.has_layer_profile()) call.format = LayerOptionsOf(wire.layer_profile());
  if (wire.has_model_zoo()) call.format = ZooImportOf(wire.model_zoo());
  if (wire.has_run_metadata()) call.format = RecordingOptionsOf(wire.run_metadata());
  if (wire.has_timeline()) {
    const auto& sizes = wire.timeline().variable_bytes();
    call.format = TimelineOptions{.recording = RecordingOptionsOf(wire.timeline()),
                                  .variable_bytes = {sizes.begin(), sizes.end()},
                                  .variation = VariationOf(wire.timeline())};
  }
  return call;
}

GetProfileCall FromWire(const v1::GetProfileRequest& wire) {
  GetProfileCall call{.name = wire.name()};
  FaultList faults;
  call.view = CoreOf(kProfileViews, wire.view(), "view", faults).value_or(ProfileView::kFull);
  call.faults = std::move(faults).Take();
  return call;
}

ListProfilesCall FromWire(const v1::ListProfilesRequest& wire) {
  ListProfilesCall call{
      .page_size = wire.page_size(), .page_token = wire.page_token(), .filter = wire.filter()};
  FaultList faults;
  call.view = CoreOf(kProfileViews, wire.view(), "view", faults).value_or(ProfileView::kBasic);
  call.faults = std::move(faults).Take();
  return call;
}

DeleteProfileCall FromWire(const v1::DeleteProfileRequest& wire) {
  return {.name = wire.name(), .etag = wire.etag()};
}

v1::ImportProfileResponse ToWire(const ImportProfileAnswer& answer) {
  v1::ImportProfileResponse wire;
  *wire.mutable_profile() = ToWire(answer.profile);
  for (const std::string& note : answer.notes) wire.add_notes(note);
  return wire;
}

v1::ListProfilesResponse ToWire(const ListProfilesAnswer& answer) {
  v1::ListProfilesResponse wire;
  for (const ProfileSummary& summary : answer.profiles) *wire.add_profiles() = ToWire(summary);
  wire.set_next_page_token(answer.next_page_token);
  return wire;
}

}  // namespace stepcast::server
