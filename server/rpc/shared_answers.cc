#include "server/rpc/shared_answers.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

#include "server/convert/sha256.h"
#include "server/rpc/job_limit.h"

namespace stepcast::server {

namespace {

std::string DeterministicBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

SharedAnswers::SharedAnswers(const CallEnvironment& environment)
    : environment_(environment), kept_(static_cast<size_t>(environment.max_answer_cache_bytes), environment.answer_cache) {}

std::string SharedAnswers::KeyOf(std::string_view method, std::string_view content, const google::protobuf::MessageLite& request) {
  if (content.empty()) return "";
  return Sha256Hex(std::string(method).append("\n").append(content).append("\n").append(DeterministicBytes(request)));
}

void SharedAnswers::Answer(UnaryCall& call, Question question, Compute compute) {
  const bool is_shared = !question.key.empty();
  // No other call has this one's address while it lasts.
  if (!is_shared) question.key = absl::StrCat(reinterpret_cast<uintptr_t>(&call));
  const std::shared_ptr<Replies::Flight> flight = flights_.Board(question.key, call);
  if (flight == nullptr) return environment_.sharing.OnShared(question.method, SharedFrom::kFlight);
  // Looked for only by who has boarded: an answer is kept before its flight ends, so it cannot be missed in between.
  if (is_shared) {
    if (SharedReplyPointer kept = kept_.Find(question.key)) {
      environment_.sharing.OnShared(question.method, SharedFrom::kCache);
      return flight->Land(std::move(kept));
    }
  }
  const absl::Status submitted = environment_.simulation_jobs.Submit(
      [this, flight, key = is_shared ? question.key : "", compute = std::move(compute)]() mutable { Run(*flight, key, std::move(compute)); });
  if (!submitted.ok()) flight->Land(submitted);
}

void SharedAnswers::Run(Replies::Flight& flight, const std::string& key, Compute compute) {
  const JobLimit limit(environment_);
  const auto stop = [&] {
    absl::Status status = limit.Check();
    return status.ok() ? flight.Check() : status;
  };
  if (const absl::Status status = stop(); !status.ok()) return flight.Land(status);
  absl::StatusOr<ComputedReply> computed = std::move(compute)(stop);
  if (!computed.ok()) return flight.Land(computed.status());
  if (computed->is_final && !key.empty()) {
    const grpc::ByteBuffer& shared = computed->reply.shared;
    kept_.Keep(key, std::make_shared<const SharedReply>(SharedReply{.computed = shared, .shared = shared}), shared.Length());
  }
  flight.Land(std::make_shared<const SharedReply>(std::move(computed->reply)));
}

}  // namespace stepcast::server
