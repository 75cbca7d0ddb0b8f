// The requests and answers about what is stored, profiles and operations, in plain types.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/importing/chakra/chakra_trace.h"
#include "core/importing/common/recording_import.h"
#include "core/importing/horovod/horovod_timeline.h"
#include "core/importing/layers/layer_profile.h"
#include "core/importing/pytorch/pytorch_trace.h"
#include "core/importing/tensorflow/tensorflow_profile.h"
#include "core/model/profile.h"
#include "core/replay/job_recording_report.h"
#include "core/zoo/model_zoo.h"
#include "server/store/operation_store.h"
#include "server/store/profile_store.h"

namespace stepcast::server {

// The requests and answers of the methods of ProfileService, in plain types.
//
// `faults` in a request: what its conversion found wrong, for instance an unknown enum number; the
// handler reports it with whatever else is wrong.
// Paths in it are relative to the request.

// The placement of a profile: the name it is to be stored under, and whether it is to be stored at
// all.
struct ProfilePlacement {
  std::string profile_id;  // empty: from the digest
  std::string request_id;  // empty: none
  bool validate_only = false;
  bool allow_replace = false;  // of what has the id
  std::string etag;            // with allow_replace: what that must have; empty: any
  bool allow_missing = true;   // with allow_replace
  // With allow_replace: ReplaceTerms.says; none: the profile's names and labels. Not of the
  // request.
  std::optional<std::string> says;
  std::string owner;  // the caller's name; empty: it has none. Not of the request

  friend bool operator==(const ProfilePlacement&, const ProfilePlacement&) = default;
};

// A profile before its validation, and what its conversion found wrong, with paths relative to the
// profile.
struct ProfileInput {
  ProfileDraft draft;
  std::vector<Fault> faults;
};

struct CreateProfileCall {
  ProfilePlacement placement;
  std::optional<ProfileInput> profile;
};

struct UpdateProfileCall {
  std::string name;
  std::string etag;
  bool allow_missing = false;
  ProfilePlacement placement;  // what to replace follows from those
  std::optional<ProfileInput> profile;
  std::vector<std::string> fields;  // that are taken, by their names on the wire; empty: all
  std::vector<Fault> faults;
};

enum class ProfileEncoding : uint8_t { kBinary, kJson, kText };

struct UploadProfileCall {
  ProfilePlacement placement;
  ProfileEncoding encoding = ProfileEncoding::kBinary;
  std::vector<Fault> faults;
};

struct ZooImport {
  std::string model;
  ZooOptions options;
};

struct ImportProfileCall {
  ProfilePlacement placement;
  std::string display_name;
  std::map<std::string, std::string> labels;
  std::variant<std::monostate, LayerProfileOptions, ZooImport, RecordingOptions, TimelineOptions,
               PyTorchTraceOptions, ChakraTraceOptions, HorovodTimelineOptions>
      format;                                 // RecordingOptions: RunMetadata
  std::optional<double> overlap_slowdown;     // of several workers
  std::optional<double> collective_slowdown;  // likewise
  std::vector<Fault> faults;
};

enum class ProfileView : uint8_t { kBasic, kFull };

struct GetProfileCall {
  std::string name;
  ProfileView view = ProfileView::kFull;
  std::vector<Fault> faults;
};

struct ListProfilesCall {
  int32_t page_size = 0;
  std::string page_token;
  std::string filter;
  ProfileView view = ProfileView::kBasic;
  std::vector<Fault> faults;
};

struct DeleteProfileCall {
  std::string name;
  std::string etag;
};

struct ProfileAnswer {
  ProfileSummary summary;
  std::optional<ProfileDraft> content;  // in the full view
};

struct ImportProfileAnswer {
  ProfileAnswer profile;
  std::vector<std::string> notes;
  std::optional<JobRecordingReport> recording;  // of several workers
};

struct ListProfilesAnswer {
  std::vector<ProfileSummary> profiles;
  std::string next_page_token;
};

// The requests and answers of the methods of google.longrunning.Operations, in plain types.
struct StartJobCall {
  NewOperation operation;  // without its owner
  std::string profile;     // the name of the stored profile without which it cannot be computed;
                           // empty: it needs none
  std::vector<Fault> faults;
};

struct ListOperationsCall {
  std::string name;
  std::string filter;
  int32_t page_size = 0;
  std::string page_token;
};

struct WaitOperationCall {
  std::string name;
  std::optional<double> timeout_seconds;
};

struct ListOperationsAnswer {
  std::vector<StoredOperation> operations;
  std::string next_page_token;
};

}  // namespace stepcast::server
