// A parameter server of the testbed: hands out tensors of any size, and acknowledges gradients
// after a timed update.
//
// Threads: gRPC's; one UpdateQueue a worker.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <map>
#include <memory>
#include <mutex>

#include "tests/testbed/node/update_queue.h"

namespace stepcast::testbed {

class ParameterServer : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  UpdateQueue& QueueOf(int32_t worker);

 private:
  std::mutex mutex_;
  std::map<int32_t, std::unique_ptr<UpdateQueue>> queues_;  // by worker, guarded by mutex_
};

}  // namespace stepcast::testbed
