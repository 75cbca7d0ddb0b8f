// The unary methods of the service, found by the messages that they take: the contract is the only
// table of them.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

namespace stepcast::client {

// The class of a method by its retries: one whose request has a request_id may be repeated under
// it, a deletion never, and any other changes nothing, or the same again.
enum class Retry {
  kNever,        // a repetition would report an error for a success
  kByRequestId,  // with a request_id, under which the service acts once
  kAlways,       // it changes nothing, or the same again
};

struct Method {
  std::string path;  // as on the wire: /package.Service/Method
  Retry retry;
  const google::protobuf::Descriptor* reply;
};

// The method with a request of that type. REQUIRES: the contract has one.
const Method& MethodOf(const google::protobuf::Descriptor& request);
template <typename Request>
const Method& MethodFor() {
  return MethodOf(*Request::descriptor());
}

// The methods of profiles, predictions and jobs, in the order of the contract.
std::vector<Method> UnaryMethods();

}  // namespace stepcast::client
