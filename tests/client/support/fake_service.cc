#include "tests/client/support/fake_service.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

namespace stepcast::client {

class FakeService::Profiles : public v1::ProfileService::Service {
 public:
  explicit Profiles(FakeService& fake) : fake_(fake) {}

  grpc::Status GetProfile(grpc::ServerContext* context, const v1::GetProfileRequest* request,
                          v1::Profile* reply) override {
    return fake_.get ? fake_.get(*context, *request, *reply)
                     : v1::ProfileService::Service::GetProfile(context, request, reply);
  }

  grpc::Status UploadProfile(grpc::ServerContext* context,
                             grpc::ServerReader<v1::UploadProfileRequest>* reader,
                             v1::Profile* reply) override {
    if (!fake_.upload) return v1::ProfileService::Service::UploadProfile(context, reader, reply);
    std::vector<v1::UploadProfileRequest> messages;
    v1::UploadProfileRequest message;
    for (int left = fake_.read_max; left > 0 && reader->Read(&message); --left)
      messages.push_back(message);
    return fake_.upload(messages, *reply);
  }

 private:
  FakeService& fake_;
};

class FakeService::Predictions : public v1::PredictionService::Service {
 public:
  explicit Predictions(FakeService& fake) : fake_(fake) {}

  grpc::Status PredictThroughput(grpc::ServerContext* context,
                                 const v1::PredictThroughputRequest* request,
                                 v1::PredictThroughputResponse* reply) override {
    return fake_.predict
               ? fake_.predict(*request, *reply)
               : v1::PredictionService::Service::PredictThroughput(context, request, reply);
  }

  grpc::Status GenerateTrace(grpc::ServerContext* context, const v1::GenerateTraceRequest* request,
                             grpc::ServerWriter<v1::GenerateTraceResponse>* writer) override {
    return fake_.trace ? fake_.trace(*context, *request, *writer)
                       : v1::PredictionService::Service::GenerateTrace(context, request, writer);
  }

 private:
  FakeService& fake_;
};

FakeService::FakeService()
    : profiles_(std::make_unique<Profiles>(*this)),
      predictions_(std::make_unique<Predictions>(*this)) {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(profiles_.get());
  builder.RegisterService(predictions_.get());
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeService::~FakeService() { server_->Shutdown(); }

}  // namespace stepcast::client
