// Requests and replies of the store of profiles between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "stepcast/profile_requests.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::client {

void ToProto(const LayerProfileOptions& from, v1::LayerProfileOptions& to);
void ToProto(const ModelZooOptions& from, v1::ModelZooOptions& to);
void ToProto(const RunMetadataOptions& from, v1::RunMetadataOptions& to);
void ToProto(const TimelineOptions& from, v1::TimelineOptions& to);
// All but the format.
void ToProto(const ImportOptions& from, v1::ImportProfileRequest::Header& to);

void ToProto(const GetProfileRequest& from, v1::GetProfileRequest& to);
void ToProto(const ListProfilesRequest& from, v1::ListProfilesRequest& to);
void ToProto(const DeleteProfileRequest& from, v1::DeleteProfileRequest& to);

void ToProto(const ImportProfileResponse& from, v1::ImportProfileResponse& to);
void FromProto(const v1::ImportProfileResponse& from, ImportProfileResponse& to);

void ToProto(const ListProfilesResponse& from, v1::ListProfilesResponse& to);
void FromProto(const v1::ListProfilesResponse& from, ListProfilesResponse& to);

}  // namespace stepcast::client
