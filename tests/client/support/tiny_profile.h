// The smallest job worth predicting.
#pragma once

#include "stepcast/v1/prediction.pb.h"
#include "tests/client/support/text_proto.h"

namespace stepcast::client {

// One worker, one server, 1 MB/s: a download of 1 kB (1 ms), a computation of 2 ms, an upload of 1
// kB (1 ms), an update of 1 ms; no overlap, so a step of one worker takes exactly 5 ms.
inline v1::Profile TinyProfile() {
  return Proto<v1::Profile>(R"pb(
    display_name: "tiny"
    model: "tiny"
    framework: "test"
    batch_size: 10
    platform { bandwidth_bytes_per_second: 1e6 }
    parameter_servers: 1
    operations { name: "recv" resource: DOWNLINK size_bytes: 1000 parameter: "w" }
    operations { name: "compute" resource: WORKER waiting_for: 0 }
    operations { name: "send" resource: UPLINK size_bytes: 1000 waiting_for: 1 parameter: "w" }
    operations { name: "update" resource: PARAMETER_SERVER waiting_for: 2 parameter: "w" }
    steps {
      start_ns: [ 0, 1000000, 3000000, 4000000 ]
      end_ns: [ 1000000, 3000000, 4000000, 5000000 ]
    })pb");
}

// A request of any type about it, with what else `text` says.
template <typename Request>
Request AboutTiny(const std::string& text = "") {
  auto request = Proto<Request>(text);
  *request.mutable_inline_profile() = TinyProfile();
  return request;
}

}  // namespace stepcast::client
