// Conversions between the messages of profile.proto and of ProfileService, and the core's types and
// plain requests and answers.
//
// Threads: pure functions. Cost: linear in the message.
#pragma once

#include <cstdint>
#include <string>

#include "google/protobuf/timestamp.pb.h"

#include "core/base/error.h"
#include "core/model/profile.h"
#include "server/convert/stored_requests.h"
#include "server/store/profile_store.h"
#include "stepcast/v1/profile.pb.h"
#include "stepcast/v1/profile_service.pb.h"

namespace stepcast::server {

// Everything but the output-only fields. Faults are unknown enum numbers, their paths relative to
// the profile.
ProfileInput FromWire(const v1::Profile& wire);

Platform FromWire(const v1::Platform& wire);
Buckets FromWire(const v1::Buckets& wire);
v1::Buckets ToWire(const Buckets& buckets);
ParsingOverhead FromWire(const v1::ParsingOverhead& wire);
v1::ParsingOverhead ToWire(const ParsingOverhead& overhead);

// The reverse of FromWire(Profile).
v1::Profile ToWire(const ProfileDraft& draft);

// The BASIC view: what a summary holds, so no platform, operations and steps. With a content, the
// FULL one.
v1::Profile ToWire(const ProfileAnswer& answer);
v1::Profile ToWire(const ProfileSummary& summary);

// REQUIRES: not before the epoch.
google::protobuf::Timestamp TimestampOf(int64_t since_epoch_ns);

// The messages of ProfileService.
CreateProfileCall FromWire(const v1::CreateProfileRequest& wire);
UpdateProfileCall FromWire(const v1::UpdateProfileRequest& wire);
UploadProfileCall FromWire(const v1::UploadProfileRequest::Header& wire);
ImportProfileCall FromWire(const v1::ImportProfileRequest::Header& wire);
GetProfileCall FromWire(const v1::GetProfileRequest& wire);
ListProfilesCall FromWire(const v1::ListProfilesRequest& wire);
DeleteProfileCall FromWire(const v1::DeleteProfileRequest& wire);

v1::RecordingReport ToWire(const JobRecordingReport& report);
v1::ImportProfileResponse ToWire(const ImportProfileAnswer& answer);
v1::ListProfilesResponse ToWire(const ListProfilesAnswer& answer);

}  // namespace stepcast::server
