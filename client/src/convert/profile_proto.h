// Profiles between structs and messages.
//
// ToProto fills a message that is empty before; FromProto fills a struct that is
// default-constructed before.
#pragma once

#include "stepcast/profile.h"
#include "stepcast/v1/profile.pb.h"

namespace stepcast::client {

void ToProto(const ParsingOverhead& from, v1::ParsingOverhead& to);
void FromProto(const v1::ParsingOverhead& from, ParsingOverhead& to);

void ToProto(const Platform& from, v1::Platform& to);
void FromProto(const v1::Platform& from, Platform& to);

void ToProto(const Operation& from, v1::Operation& to);
void FromProto(const v1::Operation& from, Operation& to);

void ToProto(const Step& from, v1::Step& to);
void FromProto(const v1::Step& from, Step& to);

void ToProto(const Profile& from, v1::Profile& to);
void FromProto(const v1::Profile& from, Profile& to);

}  // namespace stepcast::client
