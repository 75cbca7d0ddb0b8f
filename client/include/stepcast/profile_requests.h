// Requests and replies of the keyed store of profiles.
//
// Fields, units, defaults and bounds are those of proto/stepcast/v1/profile_service.proto.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stepcast/profile.h"

namespace stepcast::client {

// How much of a profile is returned: kBasic leaves operations and steps out.
enum class ProfileView : int32_t { kUnspecified = 0, kBasic = 1, kFull = 2 };

// Under which name something is stored, and whether it is.
struct StoreOptions {
  std::string profile_id;      // the last part of the name; empty: from the digest
  std::string request_id;      // empty: the client makes a new one for each call
  bool validate_only = false;  // check everything, store nothing

  friend bool operator==(const StoreOptions&, const StoreOptions&) = default;
};

// What an import puts beside the profile it makes.
struct ImportOptions {
  StoreOptions store;
  std::string display_name;  // empty: the model's name
  std::map<std::string, std::string> labels;

  friend bool operator==(const ImportOptions&, const ImportOptions&) = default;
};

// For text with measured times per layer.
struct LayerProfileOptions {
  std::string model;
  int32_t batch_size = 0;                       // required
  Platform platform;                            // its bandwidth is required
  std::optional<double> step_time_variation;    // of each computation by itself
  std::optional<double> common_time_variation;  // of all computations of a step together
  std::optional<int32_t> steps;
  std::optional<uint64_t> seed;

  friend bool operator==(const LayerProfileOptions&, const LayerProfileOptions&) = default;
};

// For a profile built from a published architecture.
struct ModelZooOptions {
  std::string model;  // alexnet, vgg11, vgg16, googlenet, inception_v3, resnet50 or resnet101
  std::optional<int32_t> batch_size;
  Platform platform;  // its bandwidth is required
  std::optional<double> device_flops_per_second;
  std::optional<double> step_time_variation;    // of each computation by itself
  std::optional<double> common_time_variation;  // of all computations of a step together
  std::optional<int32_t> steps;
  std::optional<uint64_t> seed;

  friend bool operator==(const ModelZooOptions&, const ModelZooOptions&) = default;
};

// For steps that TensorFlow recorded with parameter servers, as RunMetadata.
struct RunMetadataOptions {
  std::string model;
  int32_t batch_size = 0;  // required
  Platform platform;       // its bandwidth is required

  friend bool operator==(const RunMetadataOptions&, const RunMetadataOptions&) = default;
};

// For the JSON that TensorFlow 1's timeline writes of a step on one machine.
struct TimelineOptions {
  std::string model;
  int32_t batch_size = 0;  // required
  Platform platform;       // its bandwidth is required
  std::map<std::string, int64_t>
      variable_bytes;  // of the variables on a server; required without a graph
  std::optional<double> step_time_variation;  // as in LayerProfileOptions, as what follows
  std::optional<double> common_time_variation;
  std::optional<int32_t> steps;
  std::optional<uint64_t> seed;

  friend bool operator==(const TimelineOptions&, const TimelineOptions&) = default;
};

// What TensorFlow recorded, in files that may be larger than memory.
struct RecordingFiles {
  std::string recording;
  std::string graph;  // a serialised GraphDef; empty: none
};

struct ImportProfileResponse {
  Profile profile;
  std::vector<std::string> notes;  // what the importer found, left out and assumed, a sentence each

  friend bool operator==(const ImportProfileResponse&, const ImportProfileResponse&) = default;
};

struct GetProfileRequest {
  std::string name;                              // `profiles/{profile}`
  ProfileView view = ProfileView::kUnspecified;  // kFull

  friend bool operator==(const GetProfileRequest&, const GetProfileRequest&) = default;
};

struct ListProfilesRequest {
  int32_t page_size = 0;  // 0: the service's default, 50
  std::string page_token;
  std::string filter;                            // `model = "resnet50" AND labels.team = "vision"`
  ProfileView view = ProfileView::kUnspecified;  // kBasic

  friend bool operator==(const ListProfilesRequest&, const ListProfilesRequest&) = default;
};

struct ListProfilesResponse {
  std::vector<Profile> profiles;  // in the order of their names
  std::string next_page_token;    // empty on the last page

  friend bool operator==(const ListProfilesResponse&, const ListProfilesResponse&) = default;
};

struct DeleteProfileRequest {
  std::string name;  // `profiles/{profile}`
  std::string etag;  // if set, only what still has this etag is deleted

  friend bool operator==(const DeleteProfileRequest&, const DeleteProfileRequest&) = default;
};

}  // namespace stepcast::client
