#include "server/convert/any_message.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "core/base/error.h"

namespace stepcast::server {

namespace {

namespace pb = google::protobuf;

// A search through a message and all that are in it.
class Search {
 public:
  void Visit(const pb::Message& message) {
    const pb::Reflection& values = *message.GetReflection();
    const pb::Descriptor& type = *message.GetDescriptor();
    AddUnknown(values.GetUnknownFields(message), type);
    for (int i = 0; i < type.field_count() && !faults_.full(); ++i) {
      const pb::FieldDescriptor& field = *type.field(i);
      // Keys and values of the contract's maps are no messages.
      if (field.cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE || field.is_map()) continue;
      if (!field.is_repeated()) {
        if (values.HasField(message, &field))
          VisitAt({&field, 0}, values.GetMessage(message, &field));
        continue;
      }
      for (int k = 0; k < values.FieldSize(message, &field); ++k)
        VisitAt({&field, k}, values.GetRepeatedMessage(message, &field, k));
    }
  }
  std::vector<Fault> Faults() && { return std::move(faults_).Take(); }

 private:
  struct Place {
    const pb::FieldDescriptor* field;
    int index;
  };

  void VisitAt(Place place, const pb::Message& message) {
    path_.push_back(place);
    Visit(message);
    path_.pop_back();
  }

  void AddUnknown(const pb::UnknownFieldSet& unknown, const pb::Descriptor& type) {
    for (int i = 0; i < unknown.field_count() && !faults_.full(); ++i) {
      faults_.Add(Path(),
                  absl::StrCat("field ", unknown.field(i).number(), " of ", type.full_name(),
                               " is not known to this server: it is of another version of it"));
    }
  }

  std::string Path() const {
    std::string path;
    for (const Place& place : path_) {
      if (!path.empty()) path += '.';
      path += place.field->name();
      if (place.field->is_repeated()) absl::StrAppend(&path, "[", place.index, "]");
    }
    return path;
  }

  std::vector<Place> path_;
  FaultList faults_;
};

}  // namespace

std::vector<Fault> UnknownFields(const google::protobuf::Message& message) {
  Search search;
  search.Visit(message);
  return std::move(search).Faults();
}

absl::Status CheckFieldsAreKnown(const google::protobuf::Message& message) {
  std::vector<Fault> faults = UnknownFields(message);
  return faults.empty() ? absl::OkStatus() : FaultsError("REQUEST_INVALID", std::move(faults));
}

std::string DeterministicBytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace stepcast::server
