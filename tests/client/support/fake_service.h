// A gRPC server in this process whose answers the test chooses.
#pragma once

#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stepcast/v1/prediction_service.grpc.pb.h"
#include "stepcast/v1/profile_service.grpc.pb.h"

namespace stepcast::client {

// Listens on a free port of the loopback. Without an answer a method is UNIMPLEMENTED.
class FakeService {
 public:
  FakeService();
  ~FakeService();

  const std::string& address() const { return address_; }

  // Set these before the first call.
  std::function<grpc::Status(const grpc::ServerContext&, const v1::GetProfileRequest&,
                             v1::Profile&)>
      get;
  std::function<grpc::Status(const v1::PredictThroughputRequest&, v1::PredictThroughputResponse&)>
      predict;
  std::function<grpc::Status(const std::vector<v1::UploadProfileRequest>&, v1::Profile&)> upload;
  std::function<grpc::Status(const grpc::ServerContext&, const v1::GenerateTraceRequest&,
                             grpc::ServerWriter<v1::GenerateTraceResponse>&)>
      trace;
  // Reads so many messages of an upload before it answers; less than all of them breaks the stream.
  int read_max = 1 << 30;

 private:
  class Profiles;
  class Predictions;

  std::unique_ptr<Profiles> profiles_;
  std::unique_ptr<Predictions> predictions_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace stepcast::client
