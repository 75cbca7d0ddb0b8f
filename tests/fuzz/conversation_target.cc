// Whole conversations of every streaming method, and of WaitOperation, with a real server over
// loopback: several messages, garbage among them, half-closes, cancellations, deadlines, clients
// that do not read, several calls at one time.
//
// The environment's STEPCAST_FUZZ_METHOD, service/method, makes every call one of that method.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "google/longrunning/operations.grpc.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.pb.h"

#include "server/app/grpc_endpoint.h"
#include "server/app/process.h"
#include "server/app/server.h"
#include "server/convert/any_message.h"
#include "server/convert/operation_convert.h"
#include "server/convert/profile_convert.h"
#include "server/handlers/operation_handler.h"
#include "stepcast/v1/job_service.grpc.pb.h"
#include "stepcast/v1/prediction_service.pb.h"
#include "stepcast/v1/profile_service.grpc.pb.h"
#include "tests/fuzz/conversation.h"
#include "tests/fuzz/conversation_script.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/small_limits.h"
#include "tests/fuzz/small_profile.h"

namespace stepcast::fuzz {

namespace {

namespace longrunning = google::longrunning;
namespace reflection = grpc::reflection::v1;
using google::protobuf::Message;
using Kind = ScriptStep::Kind;
using std::chrono::milliseconds;

// A call that has not ended by then hangs: what a script asks for takes milliseconds.
constexpr milliseconds kPatience{120'000};

constexpr char kWatch[] = "grpc.health.v1.Health/Watch";
constexpr char kWait[] = "google.longrunning.Operations/WaitOperation";
constexpr char kImport[] = "stepcast.v1.ProfileService/ImportProfile";
constexpr char kUpload[] = "stepcast.v1.ProfileService/UploadProfile";
constexpr char kTrace[] = "stepcast.v1.PredictionService/GenerateTrace";
constexpr char kReflection[] = "grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
constexpr char kReflectionAlpha[] = "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// service/method -> its type.
std::map<std::string, std::string> TypesOfMethods() {
  std::map<std::string, std::string> types;
  for (const server::MethodLabels& method : server::ServedMethods())
    types[method.service + "/" + method.method] = method.type;
  return types;
}

// A server that has the small profile as `small`, and an operation that nobody computes, which is
// asked for as operations/first.
class Service {
 public:
  Service() {
    server::SilenceLibraryLogs();
    auto started = server::Server::Start(Options());
    Demand(started.ok(), "the server starts:", started.status().ToString());
    server_ = *std::move(started);
    channel_ = grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials());
    profiles_ = v1::ProfileService::NewStub(channel_);
    v1::CreateProfileRequest create;
    create.set_profile_id("small");
    *create.mutable_profile() = server::ToWire(SmallDraft());
    grpc::ClientContext create_context;
    v1::Profile created;
    Demand(profiles_->CreateProfile(&create_context, create, &created).ok(), "a profile is stored");
    v1::StartJobRequest job;
    job.mutable_predict_throughput()->set_profile("profiles/small");
    grpc::ClientContext job_context;
    longrunning::Operation operation;
    Demand(v1::JobService::NewStub(channel_)->StartJob(&job_context, job, &operation).ok(),
           "an operation is started");
    first_ = operation.name();
  }

  ~Service() {
    server_->Drain();
    Demand(CallsUnderWay("") == 0, "a server that has stopped has ended every call");
  }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // The name of the operation is the store's choice, which no seed can know.
  const std::string& first() const { return first_; }

  // Demands that it answers, and that no call is left behind; forgets what was stored.
  void DemandSound() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::ListProfilesResponse listed;
    const grpc::Status status = profiles_->ListProfiles(&context, {}, &listed);
    Demand(status.ok(), "others are answered:", status.error_message());
    for (const v1::Profile& profile : listed.profiles()) {
      if (profile.name() == "profiles/small") continue;
      v1::DeleteProfileRequest request;
      request.set_name(profile.name());
      grpc::ClientContext delete_context;
      google::protobuf::Empty empty;
      Demand(profiles_->DeleteProfile(&delete_context, request, &empty).ok(),
             "what was stored can be deleted");
    }
    // One that waits hears of the end of its client at the next look for all of them.
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (CallsUnderWay(kWait) != 0) {
      Demand(std::chrono::steady_clock::now() < end, "every call has an end at the server");
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

 private:
  static server::ServerOptions Options() {
    constexpr int64_t kKiB = 1024;
    server::ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.http_listen = "";
    options.store = server::StoreKind::kMemory;
    options.log.level = server::LogLevel::kOff;
    options.profile_limits = SmallLimits();
    options.max_message_bytes = 4 * kKiB;
    options.max_profile_bytes = 16 * kKiB;
    options.max_import_bytes = 64 * kKiB;
    options.max_pending_bytes = 1024 * kKiB;
    options.max_job_seconds = 0.2;
    options.operations.max_running = 0;
    options.drain_timeout_seconds = 1;
    return options;
  }

  // Those of all methods but `except`, as the server counts them.
  double CallsUnderWay(std::string_view except) {
    const std::string method(except.substr(except.find('/') + 1));
    std::istringstream lines(server_->MetricsText());
    double calls = 0;
    for (std::string line; std::getline(lines, line);) {
      const bool is_started = line.rfind("grpc_server_started_total{", 0) == 0;
      if (!is_started && line.rfind("grpc_server_handled_total{", 0) != 0) continue;
      if (!method.empty() && line.find('"' + method + '"') != std::string::npos) continue;
      const double count = std::strtod(line.c_str() + line.rfind(' '), nullptr);
      calls += is_started ? count : -count;
    }
    return calls;
  }

  std::unique_ptr<server::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ProfileService::Stub> profiles_;
  std::string first_;
};

// A call of a script, and what its client did.
struct Call {
  std::string method;
  std::shared_ptr<Conversation> conversation;
  std::vector<std::string> sent;
  bool is_closed = false;
  bool is_given_up = false;  // by its client, now or at a deadline
};

// The demands on the end of one call.
class Verdict {
 public:
  Verdict(const Call& call, const Conversation::End& end, const std::string& type)
      : call_(call), end_(end), type_(type) {
    found_ = call.method + ", code " + std::to_string(end.status.error_code()) + ", " +
             end.status.error_message();
  }

  // True: the call was answered.
  bool Judge() const {
    DemandSoundStatus();
    if (call_.method == kReflection || call_.method == kReflectionAlpha) DemandAnswersInOrder();
    const bool has_one = type_ == "unary" || type_ == "client_stream";
    Demand(!end_.status.ok() || !has_one || end_.count == 1, "one reply, and only one:", found_);
    Demand(end_.status.ok() || call_.is_given_up || !has_one || end_.count == 0,
           "a refusal is all there is:", found_);
    return end_.status.ok() || end_.count > 0;
  }

 private:
  void DemandSoundStatus() const {
    const grpc::StatusCode code = end_.status.error_code();
    if (end_.status.ok()) return;
    if (code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::DEADLINE_EXCEEDED) {
      if (call_.is_given_up) return;
    }
    Demand(code != grpc::StatusCode::CANCELLED && code != grpc::StatusCode::UNKNOWN &&
               code != grpc::StatusCode::INTERNAL && code != grpc::StatusCode::UNAVAILABLE &&
               code != grpc::StatusCode::DATA_LOSS,
           "a refusal has a code of its kind:", found_);
    Demand((code == grpc::StatusCode::UNIMPLEMENTED) == type_.empty(),
           "what is served, and nothing else, is implemented:", found_);
    google::rpc::Status details;
    google::rpc::ErrorInfo info;
    Demand(details.ParseFromString(end_.status.error_details()) && details.details_size() > 0 &&
               details.code() == code && details.details(0).UnpackTo(&info) &&
               !info.reason().empty(),
           "a refusal has a reason:", found_);
  }

  void DemandAnswersInOrder() const {
    Demand(end_.count <= call_.sent.size(), "no more answers than questions:", found_);
    Demand(!end_.status.ok() || end_.count == call_.sent.size(), "an answer to each:", found_);
    for (size_t i = 0; i < end_.messages.size(); ++i) {
      reflection::ServerReflectionRequest question;
      reflection::ServerReflectionResponse answer;
      Demand(question.ParseFromString(call_.sent[i]) && answer.ParseFromString(end_.messages[i]),
             "questions that are read are answered:", found_);
      Demand(server::DeterministicBytes(answer.original_request()) ==
                 server::DeterministicBytes(question),
             "answers come in the order of their questions:", found_);
      Demand(answer.message_response_case() !=
                 reflection::ServerReflectionResponse::MESSAGE_RESPONSE_NOT_SET,
             "an answer says something:", found_);
    }
  }

  const Call& call_;
  const Conversation::End& end_;
  const std::string& type_;
  std::string found_;
};

// A script as it is played to the server.
class Play {
 public:
  Play(const Service& service, const std::map<std::string, std::string>& types,
       const std::string& only)
      : service_(service), types_(types), only_(only) {
    current_.fill(kMaxCalls);
  }

  void Do(const ScriptStep& step) {
    constexpr int kMostPauses = 20;
    if (step.kind == Kind::kPause)
      return std::this_thread::sleep_for(
          std::chrono::microseconds(100 * std::min<int>(step.number, kMostPauses)));
    if (step.kind == Kind::kBegin) return Begin(step);
    if (current_[step.slot] == kMaxCalls) return;
    Call& call = calls_[current_[step.slot]];
    switch (step.kind) {
      case Kind::kSend:
        return Send(call, step.bytes);
      case Kind::kRepeat:
        for (int i = 0; i < step.number && !call.sent.empty(); ++i)
          Send(call, std::string(call.sent.back()));
        return;
      case Kind::kHalfClose:
        call.is_closed = true;
        return call.conversation->HalfClose();
      case Kind::kCancel:
        call.is_given_up = true;
        return call.conversation->Cancel();
      default:
        call.conversation->Read(step.number);
        call.conversation->AwaitMessages(step.number, milliseconds(3));
    }
  }

  // True: a call was answered.
  bool End() {
    bool is_answered = false;
    for (Call& call : calls_) {
      if (!EndsByItself(call)) {
        call.is_given_up = true;
        call.conversation->Cancel();
      }
      const auto end = call.conversation->AwaitEnd(kPatience);
      Demand(end.has_value(), "every call has an end:", call.method);
      const auto type = types_.find(call.method);
      static const std::string& kNoType = *new std::string;
      if (Verdict(call, *end, type == types_.end() ? kNoType : type->second).Judge())
        is_answered = true;
    }
    return is_answered;
  }

 private:
  static constexpr size_t kMaxCalls = 16;
  static constexpr size_t kMaxMessages = 1000;

  void Begin(const ScriptStep& step) {
    if (calls_.size() == kMaxCalls) return;
    Call& call = calls_.emplace_back();
    call.method = only_.empty() ? step.bytes : only_;
    // gRPC's client answers for the path; other bytes do not leave it.
    for (char& c : call.method) {
      if (c <= ' ' || c > '~') c = '_';
    }
    std::optional<milliseconds> deadline;
    if (step.number % 8 == 6) deadline = milliseconds(2);
    if (step.number % 8 == 7) deadline = milliseconds(30);
    call.is_given_up = deadline.has_value();
    call.conversation = Conversation::Begin(service_.channel(), "/" + call.method, deadline);
    current_[step.slot] = calls_.size() - 1;
  }

  void Send(Call& call, std::string bytes) {
    if (call.is_closed || ++messages_ > kMaxMessages) return;
    if (call.method == kWait) {
      longrunning::WaitOperationRequest request;
      if (request.ParseFromString(bytes) && request.name() == "operations/first") {
        request.set_name(service_.first());
        bytes = request.SerializeAsString();
      }
    }
    call.conversation->Send(bytes);
    call.sent.push_back(std::move(bytes));
  }

  // False: it has said what it had to say, and would go on for as long as its client likes.
  static bool EndsByItself(Call& call) {
    constexpr double kSoonSeconds = 0.05;
    if (call.method == kWatch) {
      call.conversation->HalfClose();
      call.conversation->Read(1);
      Demand(call.conversation->AwaitMessages(1, kPatience), "a watcher is told at once");
      return false;
    }
    if (call.method != kWait || call.sent.empty()) return true;
    longrunning::WaitOperationRequest request;
    if (!request.ParseFromString(call.sent.front())) return true;
    const auto seconds = server::OperationHandler::WaitSeconds(server::FromWire(request));
    return !seconds.ok() || *seconds <= kSoonSeconds;
  }

  const Service& service_;
  const std::map<std::string, std::string>& types_;
  const std::string& only_;
  std::vector<Call> calls_;
  std::array<size_t, kSlots> current_;
  size_t messages_ = 0;
};

// A client's questions of every kind.
std::vector<std::string> Questions() {
  std::vector<std::string> questions;
  reflection::ServerReflectionRequest question;
  question.set_list_services("");
  questions.push_back(question.SerializeAsString());
  question.set_file_by_filename("stepcast/v1/profile.proto");
  questions.push_back(question.SerializeAsString());
  question.set_file_containing_symbol(kUpload);
  questions.push_back(question.SerializeAsString());
  question.mutable_file_containing_extension()->set_containing_type(
      "google.protobuf.MethodOptions");
  question.mutable_file_containing_extension()->set_extension_number(1049);
  questions.push_back(question.SerializeAsString());
  question.set_all_extension_numbers_of_type("google.protobuf.MethodOptions");
  questions.push_back(question.SerializeAsString());
  questions.emplace_back();  // of no kind
  question.set_file_containing_symbol("stepcast.v1.PredictionService");
  questions.push_back(question.SerializeAsString());
  return questions;
}

std::vector<std::string> ImportOf(void (*set)(v1::ImportProfileRequest::Header&),
                                  const std::vector<std::string>& chunks) {
  std::vector<std::string> messages;
  v1::ImportProfileRequest request;
  request.mutable_header()->set_profile_id("imported");
  set(*request.mutable_header());
  messages.push_back(request.SerializeAsString());
  for (const std::string& chunk : chunks) {
    request.set_chunk(chunk);
    messages.push_back(request.SerializeAsString());
  }
  return messages;
}

std::vector<std::vector<std::string>> Imports() {
  return {ImportOf(
              [](v1::ImportProfileRequest::Header& header) {
                header.mutable_model_zoo()->set_model("alexnet");
                header.mutable_model_zoo()->mutable_platform()->set_bandwidth_bytes_per_second(1e8);
              },
              {}),
          ImportOf(
              [](v1::ImportProfileRequest::Header& header) {
                v1::LayerProfileOptions& options = *header.mutable_layer_profile();
                options.set_batch_size(8);
                options.set_model("m");
                options.mutable_platform()->set_bandwidth_bytes_per_second(1e8);
              },
              {"node1 -- Input -- forward_compute_time=0, backward_compute_time=0, "
               "parameter_size=0\n",
               "", "node2 -- Linear -- forward_compute_time=1, backward_compute_time=2, ",
               "parameter_size=4096\n\tnode1 -- node2\n"})};
}

std::vector<std::string> Upload() {
  v1::UploadProfileRequest request;
  request.mutable_header()->set_profile_id("uploaded");
  request.mutable_header()->set_encoding(v1::UploadProfileRequest::BINARY);
  std::vector<std::string> messages{request.SerializeAsString()};
  const std::string profile = server::ToWire(SmallDraft()).SerializeAsString();
  for (const auto& [at, size] : {std::pair{0, 100}, {100, 0}, {100, 1000}}) {
    request.set_chunk(profile.substr(at, size));
    messages.push_back(request.SerializeAsString());
  }
  return messages;
}

std::string Trace() {
  v1::GenerateTraceRequest request;
  request.set_profile("profiles/small");
  request.mutable_scenario()->set_workers(2);
  request.mutable_options()->set_steps_per_worker(3);
  return request.SerializeAsString();
}

std::string Wait() {
  longrunning::WaitOperationRequest request;
  request.set_name("operations/first");
  request.mutable_timeout()->set_nanos(1'000'000);
  return request.SerializeAsString();
}

// service/method -> conversations, each of which is answered.
std::map<std::string, std::vector<std::vector<std::string>>> KnownConversations() {
  return {{kReflection, {Questions()}},
          {kReflectionAlpha, {Questions()}},
          {kUpload, {Upload()}},
          {kImport, Imports()},
          {kTrace, {{Trace()}}},
          {kWait, {{Wait()}}},
          {kWatch, {{""}}}};
}

// The conversation as it should go, or one message after the other with reads between them.
Script Talk(const std::string& method, const std::vector<std::string>& messages, uint8_t slot,
            bool in_turn) {
  Script script{{.kind = Kind::kBegin, .slot = slot, .number = 0, .bytes = method}};
  for (const std::string& message : messages) {
    script.push_back({.kind = Kind::kSend, .slot = slot, .number = 0, .bytes = message});
    if (in_turn) script.push_back({.kind = Kind::kRead, .slot = slot, .number = 1, .bytes = ""});
  }
  script.push_back({.kind = Kind::kHalfClose, .slot = slot, .number = 0, .bytes = ""});
  return script;
}

// The same, after a call that was given up in its middle, beside one that is never read, and with
// the last message many times.
Script RoughTalk(const std::string& method, const std::vector<std::string>& messages) {
  Script script{{.kind = Kind::kBegin, .slot = 1, .number = 0, .bytes = method},
                {.kind = Kind::kSend, .slot = 1, .number = 0, .bytes = messages.front()},
                {.kind = Kind::kCancel, .slot = 1, .number = 0, .bytes = ""},
                {.kind = Kind::kBegin, .slot = 2, .number = 0, .bytes = method},
                {.kind = Kind::kSend, .slot = 2, .number = 0, .bytes = messages.back()},
                {.kind = Kind::kRepeat, .slot = 2, .number = 100, .bytes = ""},
                {.kind = Kind::kSend, .slot = 2, .number = 0, .bytes = "\xFF\xFF"},
                {.kind = Kind::kHalfClose, .slot = 3, .number = 0, .bytes = ""}};
  for (ScriptStep& step : Talk(method, messages, 0, false)) script.push_back(std::move(step));
  return script;
}

class ConversationTarget final : public FuzzTarget {
 public:
  ConversationTarget() {
    const char* const only = std::getenv("STEPCAST_FUZZ_METHOD");
    only_ = only == nullptr ? "" : only;
    const auto known = KnownConversations();
    for (const auto& [method, type] : types_) {
      const bool is_wanted = type != "unary" || method == kWait;
      Demand(!is_wanted || known.count(method) == 1, "every stream has a conversation:", method);
      if (!is_wanted || (!only_.empty() && method != only_)) continue;
      methods_.push_back(method);
      for (const std::vector<std::string>& messages : known.at(method)) {
        seeds_.push_back(WriteScript(Talk(method, messages, 0, false)));
        seeds_.push_back(WriteScript(Talk(method, messages, 1, true)));
        seeds_.push_back(WriteScript(RoughTalk(method, messages)));
      }
    }
    Demand(!methods_.empty(), "STEPCAST_FUZZ_METHOD is a stream of this server:", only_);
  }

  std::vector<std::string> Seeds() const override { return seeds_; }

  bool Run(std::string_view input) override {
    Play play(service_, types_, only_);
    for (const ScriptStep& step : ParseScript(input)) play.Do(step);
    const bool is_answered = play.End();
    service_.DemandSound();
    return is_answered;
  }

  std::string Mutate(std::string input, const Mutation& mutation) const override {
    if (mutation.random.Below(16) == 0) return mutation.bytes(std::move(input));
    return WriteScript(MutateScript(ParseScript(input), methods_, seeds_, mutation));
  }

 private:
  const std::map<std::string, std::string> types_ = TypesOfMethods();
  std::string only_;
  std::vector<std::string> methods_;
  std::vector<std::string> seeds_;
  Service service_;
};

}  // namespace

std::unique_ptr<FuzzTarget> MakeFuzzTarget() { return std::make_unique<ConversationTarget>(); }

}  // namespace stepcast::fuzz
