// TensorFlow's messages with reflection, which the importers' own, made for small programs, lack.
#pragma once

#include <google/protobuf/message.h>

namespace stepcast::fuzz {

// Read from what the build made of proto/, on first use.
const google::protobuf::Message& RunMetadataPrototype();
const google::protobuf::Message& GraphDefPrototype();

}  // namespace stepcast::fuzz
