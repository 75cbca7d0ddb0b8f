#include "tests/fuzz/tensorflow_schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include <fstream>
#include <string>

#include "tests/fuzz/demand.h"

namespace stepcast::fuzz {

namespace {

namespace pb = google::protobuf;

class Schema {
 public:
  Schema() {
    std::ifstream file(STEPCAST_TENSORFLOW_SCHEMA, std::ios::binary);
    pb::FileDescriptorSet schema;
    Demand(schema.ParseFromIstream(&file), "the build has TensorFlow's messages");
    for (const pb::FileDescriptorProto& proto : schema.file())
      Demand(pool_.BuildFile(proto) != nullptr, "TensorFlow's messages are sound");
  }

  const pb::Message& Prototype(const std::string& name) {
    return *factory_.GetPrototype(pool_.FindMessageTypeByName(name));
  }

 private:
  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_;
};

const pb::Message& Prototype(const std::string& name) {
  static Schema schema;
  return schema.Prototype(name);
}

}  // namespace

const pb::Message& RunMetadataPrototype() { return Prototype("stepcast.tensorflow.RunMetadata"); }
const pb::Message& GraphDefPrototype() { return Prototype("stepcast.tensorflow.GraphDef"); }

}  // namespace stepcast::fuzz
