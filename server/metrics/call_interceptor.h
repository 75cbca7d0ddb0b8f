// An interceptor by which gRPC reports every call, of every service, to the call metrics.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <memory>

#include "server/base/clock.h"
#include "server/metrics/call_metrics.h"

namespace stepcast::server {

// Borrows both, for as long as the gRPC server lives.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeCallInterceptorFactory(
    CallMetrics& metrics, const Clock& clock);

}  // namespace stepcast::server
