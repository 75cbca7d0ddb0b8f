#include "tests/testbed/node/parameter_server.h"

#include <algorithm>

#include "tests/testbed/node/messages.h"
#include "tests/testbed/node/steady_time.h"

namespace stepcast::testbed {

namespace {

using grpc::ByteBuffer;
using grpc::Slice;
using grpc::Status;

class Call : public grpc::ServerGenericBidiReactor {
 public:
  Call(ParameterServer& server, bool upload) : server_(server), upload_(upload) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(Status(grpc::StatusCode::INVALID_ARGUMENT, "no request"));
    upload_ ? Upload() : Download();
  }
  void OnDone() override { delete this; }

 private:
  void Download() {
    DownloadRequest request;
    if (!ReadFrom(request_, request) || request.size_bytes < 0 ||
        request.size_bytes > static_cast<int64_t>(kMaxTensorBytes))
      return Refuse();
    const Slice tensor = TensorOf(request.size_bytes);
    Reply(ByteBuffer(&tensor, 1));
  }

  void Upload() {
    const int64_t now_ns = NowNs();
    UploadHeader header;
    if (!ReadFrom(request_, header)) return Refuse();
    request_.Clear();
    server_.QueueOf(header.worker).Add(now_ns, header.update_ns, [this](const UploadReply& reply) {
      const Slice slice = SliceOf(reply);
      Reply(ByteBuffer(&slice, 1));
    });
  }

  void Reply(ByteBuffer reply) {
    reply_.Swap(&reply);
    StartWriteAndFinish(&reply_, {}, Status::OK);
  }

  void Refuse() {
    Finish(Status(grpc::StatusCode::INVALID_ARGUMENT, "not a message of the testbed"));
  }

  ParameterServer& server_;
  const bool upload_;
  ByteBuffer request_;
  ByteBuffer reply_;
};

}  // namespace

grpc::ServerGenericBidiReactor* ParameterServer::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return new Call(*this, context->method() == kUploadMethod);
}

UpdateQueue& ParameterServer::QueueOf(int32_t worker) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<UpdateQueue>& queue = queues_[worker];
  if (queue == nullptr) queue = std::make_unique<UpdateQueue>();
  return *queue;
}

}  // namespace stepcast::testbed
