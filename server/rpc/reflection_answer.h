// The answers of reflection, from the descriptors that are compiled in.
#pragma once

#include <string>
#include <vector>

#include "grpc/reflection/v1/reflection.pb.h"

namespace stepcast::server {

// One answer to one question, from the generated pool. A file comes with all it imports. What there
// is not is an error_response with NOT_FOUND, a question of no kind one with INVALID_ARGUMENT.
// `services` are the names that list_services gives. Threads: safe.
grpc::reflection::v1::ServerReflectionResponse AnswerReflection(
    const grpc::reflection::v1::ServerReflectionRequest& request,
    const std::vector<std::string>& services);

}  // namespace stepcast::server
