// PredictionService over gRPC: parses, has the handler check the request on the pool for the store,
// and compute on the one for simulations.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/handlers/prediction_handler.h"
#include "server/rpc/call_environment.h"

namespace stepcast::server {

// Borrows both.
std::unique_ptr<grpc::Service> MakePredictionService(const PredictionHandler& handler,
                                                     const CallEnvironment& environment);

}  // namespace stepcast::server
