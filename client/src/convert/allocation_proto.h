// Allocations between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "stepcast/allocation.h"
#include "stepcast/v1/allocation.pb.h"

namespace stepcast::client {

void ToProto(const AllocationJob& from, v1::AllocationJob& to);
void FromProto(const v1::AllocationJob& from, AllocationJob& to);

void ToProto(const AllocateWorkersRequest& from, v1::AllocateWorkersRequest& to);
void FromProto(const v1::AllocateWorkersRequest& from, AllocateWorkersRequest& to);

void ToProto(const CurvePoint& from, v1::CurvePoint& to);
void FromProto(const v1::CurvePoint& from, CurvePoint& to);

void ToProto(const JobAllocation& from, v1::JobAllocation& to);
void FromProto(const v1::JobAllocation& from, JobAllocation& to);

void ToProto(const AllocationChange& from, v1::AllocationChange& to);
void FromProto(const v1::AllocationChange& from, AllocationChange& to);

void ToProto(const AllocateWorkersResponse& from, v1::AllocateWorkersResponse& to);
void FromProto(const v1::AllocateWorkersResponse& from, AllocateWorkersResponse& to);

}  // namespace stepcast::client
