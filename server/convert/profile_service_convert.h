// Conversions between the messages of ProfileService and its plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include "server/convert/profile_requests.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server {

CreateProfileCall FromWire(const v1::CreateProfileRequest& wire);
UploadProfileCall FromWire(const v1::UploadProfileRequest::Header& wire);
ImportProfileCall FromWire(const v1::ImportProfileRequest::Header& wire);
GetProfileCall FromWire(const v1::GetProfileRequest& wire);
ListProfilesCall FromWire(const v1::ListProfilesRequest& wire);
DeleteProfileCall FromWire(const v1::DeleteProfileRequest& wire);

v1::ImportProfileResponse ToWire(const ImportProfileAnswer& answer);
v1::ListProfilesResponse ToWire(const ListProfilesAnswer& answer);

}  // namespace stepcast::server
