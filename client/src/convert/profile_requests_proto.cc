#include "client/src/convert/profile_requests_proto.h"

#include "client/src/convert/profile_proto.h"
#include "client/src/convert/repeated.h"

namespace stepcast::client {

static_assert(static_cast<int>(ProfileView::kBasic) == v1::BASIC);
static_assert(static_cast<int>(ProfileView::kFull) == v1::FULL);

namespace {

// How made steps vary: four fields that three messages have in common.
template <typename From, typename To>
void VariationToProto(const From& from, To& to) {
  if (from.step_time_variation) to.set_step_time_variation(*from.step_time_variation);
  if (from.common_time_variation) to.set_common_time_variation(*from.common_time_variation);
  if (from.steps) to.set_steps(*from.steps);
  if (from.seed) to.set_seed(*from.seed);
}

}  // namespace

void ToProto(const LayerProfileOptions& from, v1::LayerProfileOptions& to) {
  to.set_model(from.model);
  to.set_batch_size(from.batch_size);
  ToProto(from.platform, *to.mutable_platform());
  VariationToProto(from, to);
}

void ToProto(const ModelZooOptions& from, v1::ModelZooOptions& to) {
  to.set_model(from.model);
  if (from.batch_size) to.set_batch_size(*from.batch_size);
  ToProto(from.platform, *to.mutable_platform());
  if (from.device_flops_per_second) to.set_device_flops_per_second(*from.device_flops_per_second);
  VariationToProto(from, to);
}

void ToProto(const RunMetadataOptions& from, v1::RunMetadataOptions& to) {
  to.set_model(from.model);
  to.set_batch_size(from.batch_size);
  ToProto(from.platform, *to.mutable_platform());
}

void ToProto(const TimelineOptions& from, v1::TimelineOptions& to) {
  to.set_model(from.model);
  to.set_batch_size(from.batch_size);
  ToProto(from.platform, *to.mutable_platform());
  to.mutable_variable_bytes()->insert(from.variable_bytes.begin(), from.variable_bytes.end());
  VariationToProto(from, to);
}

void ToProto(const ImportOptions& from, v1::ImportProfileRequest::Header& to) {
  to.set_profile_id(from.store.profile_id);
  to.set_request_id(from.store.request_id);
  to.set_validate_only(from.store.validate_only);
  to.set_display_name(from.display_name);
  ToProto(from.labels, *to.mutable_labels());
}

void ToProto(const GetProfileRequest& from, v1::GetProfileRequest& to) {
  to.set_name(from.name);
  to.set_view(static_cast<v1::ProfileView>(from.view));
}

void ToProto(const ListProfilesRequest& from, v1::ListProfilesRequest& to) {
  to.set_page_size(from.page_size);
  to.set_page_token(from.page_token);
  to.set_filter(from.filter);
  to.set_view(static_cast<v1::ProfileView>(from.view));
}

void ToProto(const DeleteProfileRequest& from, v1::DeleteProfileRequest& to) {
  to.set_name(from.name);
  to.set_etag(from.etag);
}

void ToProto(const ImportProfileResponse& from, v1::ImportProfileResponse& to) {
  ToProto(from.profile, *to.mutable_profile());
  to.mutable_notes()->Assign(from.notes.begin(), from.notes.end());
}

void FromProto(const v1::ImportProfileResponse& from, ImportProfileResponse& to) {
  FromProto(from.profile(), to.profile);
  to.notes.assign(from.notes().begin(), from.notes().end());
}

void ToProto(const ListProfilesResponse& from, v1::ListProfilesResponse& to) {
  ToProto(from.profiles, *to.mutable_profiles());
  to.set_next_page_token(from.next_page_token);
}

void FromProto(const v1::ListProfilesResponse& from, ListProfilesResponse& to) {
  FromProto(from.profiles(), to.profiles);
  to.next_page_token = from.next_page_token();
}

}  // namespace stepcast::client
