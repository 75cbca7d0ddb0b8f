// The requests of ProfileService, the headers of its streams included: the first byte is the
// method, the rest the message.
#include <array>
#include <string>
#include <utility>

#include "core/base/stop_check.h"
#include "server/base/clock.h"
#include "server/convert/profile_convert.h"
#include "server/handlers/profile_handler.h"
#include "server/store/memory_stores.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/method_input.h"
#include "tests/fuzz/profile_forms.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/small_limits.h"
#include "tests/fuzz/small_profile.h"

namespace stepcast::fuzz {

namespace {

using google::protobuf::Message;
using UploadHeader = v1::UploadProfileRequest::Header;
using ImportHeader = v1::ImportProfileRequest::Header;

constexpr char kLayers[] =
    "node1 -- Input -- forward_compute_time=0, backward_compute_time=0, parameter_size=0\n"
    "node2 -- Linear -- forward_compute_time=1, backward_compute_time=2, "
    "parameter_size=4096\n\tnode1 -- node2\n";

// A server that has the small profile as `small`.
class Service {
 public:
  Service() : store_({.max_profiles = 2}, clock_), handler_(store_, SmallLimits()) {
    Demand(handler_
               .Create({.placement = {.profile_id = "small"},
                        .profile = server::ProfileInput{.draft = SmallDraft()}},
                       NeverStop)
               .ok(),
           "a profile is stored");
  }

  absl::Status Call(const v1::CreateProfileRequest& request) {
    const auto created = handler_.Create(server::FromWire(request), NeverStop);
    if (created.ok() && !request.validate_only()) DemandIsThere(created->summary);
    return created.status();
  }
  absl::Status Call(const v1::UpdateProfileRequest& request) {
    const auto updated = handler_.Update(server::FromWire(request), NeverStop);
    if (updated.ok() && !request.validate_only()) DemandIsThere(updated->summary);
    return updated.status();
  }
  absl::Status Call(const UploadHeader& header) {
    const server::UploadProfileCall call = server::FromWire(header);
    const auto uploaded =
        handler_.Upload(call, WriteProfile(call.encoding, SmallDraft()), NeverStop);
    if (uploaded.ok() && !header.validate_only()) DemandIsThere(uploaded->summary);
    return uploaded.status();
  }
  absl::Status Call(const ImportHeader& header) {
    // Bytes for the one format that is not read from a recording or made by itself.
    TextSource text(header.has_model_zoo() ? "" : kLayers);
    const auto imported = handler_.Import(server::FromWire(header), {.recording = text}, NeverStop);
    if (imported.ok() && !header.validate_only()) DemandIsThere(imported->profile.summary);
    return imported.status();
  }
  absl::Status Call(const v1::GetProfileRequest& request) {
    const auto found = handler_.Get(server::FromWire(request));
    if (found.ok())
      Demand(server::ToWire(*found).name() == request.name(),
             "what is asked for is found:", request.name());
    return found.status();
  }
  absl::Status Call(const v1::ListProfilesRequest& request) {
    const auto listed = handler_.List(server::FromWire(request));
    if (listed.ok())
      Demand(server::ToWire(*listed).profiles_size() <= 1, "a listing has what is there");
    return listed.status();
  }
  absl::Status Call(const v1::DeleteProfileRequest& request) {
    return handler_.Delete(server::FromWire(request));
  }

 private:
  void DemandIsThere(const server::ProfileSummary& summary) {
    const auto found = store_.GetSummary(summary.id);
    Demand(found.ok() && *found == summary, "what was stored is there:", found.status().ToString());
  }

  const server::FakeClock clock_;
  server::MemoryProfileStore store_;
  const server::ProfileHandler handler_;
};

class ProfileRequestTarget final : public FuzzTarget {
 public:
  std::vector<std::string> Seeds() const override {
    std::vector<std::string> seeds;
    const auto add = [&](size_t method, const Message& message) {
      seeds.push_back(MethodInput(method, message));
    };
    v1::CreateProfileRequest create;
    *create.mutable_profile() = server::ToWire(SmallDraft());
    create.set_request_id("123e4567-e89b-12d3-a456-426614174000");
    add(0, create);
    create.set_profile_id("another");
    add(0, create);
    for (const auto encoding : {v1::UploadProfileRequest::BINARY, v1::UploadProfileRequest::JSON,
                                v1::UploadProfileRequest::TEXT}) {
      UploadHeader upload;
      upload.set_encoding(encoding);
      add(1, upload);
    }
    ImportHeader import;
    import.mutable_layer_profile()->set_batch_size(8);
    import.mutable_layer_profile()->set_model("m");
    import.mutable_layer_profile()->mutable_platform()->set_bandwidth_bytes_per_second(1e8);
    add(2, import);
    import.mutable_model_zoo()->set_model("alexnet");
    import.mutable_model_zoo()->mutable_platform()->set_bandwidth_bytes_per_second(1e8);
    add(2, import);
    import.mutable_model_zoo()->set_model("vgg16");
    import.mutable_model_zoo()->set_communication(v1::ModelZooOptions::ALL_REDUCE);
    add(2, import);
    v1::GetProfileRequest get;
    get.set_name("profiles/small");
    add(3, get);
    v1::ListProfilesRequest list;
    list.set_page_size(1);
    list.set_filter("model=tiny");
    add(4, list);
    v1::DeleteProfileRequest remove;
    remove.set_name("profiles/small");
    add(5, remove);
    v1::UpdateProfileRequest update;
    update.mutable_profile()->set_name("profiles/small");
    (*update.mutable_profile()->mutable_labels())["a"] = "b";
    update.mutable_update_mask()->add_paths("labels");
    add(6, update);
    return seeds;
  }

  bool Run(std::string_view input) override {
    if (input.empty()) return false;
    const std::string bytes(input.substr(1));
    switch (MethodOf(input[0], kMethods)) {
      case 0:
        return Try<v1::CreateProfileRequest>(bytes);
      case 1:
        return Try<UploadHeader>(bytes);
      case 2:
        return Try<ImportHeader>(bytes);
      case 3:
        return Try<v1::GetProfileRequest>(bytes);
      case 4:
        return Try<v1::ListProfilesRequest>(bytes);
      case 5:
        return Try<v1::DeleteProfileRequest>(bytes);
      default:
        return Try<v1::UpdateProfileRequest>(bytes);
    }
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    return MutateRequest(Prototypes(), std::move(input), mutation);
  }

 private:
  static constexpr size_t kMethods = 7;

  static std::array<const Message*, kMethods> Prototypes() {
    return {&v1::CreateProfileRequest::default_instance(),
            &UploadHeader::default_instance(),
            &ImportHeader::default_instance(),
            &v1::GetProfileRequest::default_instance(),
            &v1::ListProfilesRequest::default_instance(),
            &v1::DeleteProfileRequest::default_instance(),
            &v1::UpdateProfileRequest::default_instance()};
  }

  template <typename Request>
  static bool Try(const std::string& bytes) {
    Request request;
    if (!request.ParseFromString(bytes)) return false;
    const absl::Status status = Service().Call(request);
    if (!status.ok()) {
      DemandSoundRefusal(status, {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
                                  absl::StatusCode::kAlreadyExists, absl::StatusCode::kAborted});
    }
    return status.ok();
  }
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ProfileRequestTarget>(); }

}  // namespace stepcast::fuzz
