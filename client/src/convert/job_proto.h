// Jobs between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "google/longrunning/operations.pb.h"

#include "stepcast/job.h"
#include "stepcast/v1/job_service.pb.h"

namespace stepcast::client {

void ToProto(const StartJobRequest& from, v1::StartJobRequest& to);
void ToProto(const ListJobsRequest& from, google::longrunning::ListOperationsRequest& to);

// Metadata and replies of a kind that is not known are left out.
void ToProto(const Job& from, google::longrunning::Operation& to);
void FromProto(const google::longrunning::Operation& from, Job& to);

void ToProto(const ListJobsResponse& from, google::longrunning::ListOperationsResponse& to);
void FromProto(const google::longrunning::ListOperationsResponse& from, ListJobsResponse& to);

}  // namespace stepcast::client
