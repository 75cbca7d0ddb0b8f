#include "tests/fuzz/profile_forms.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <utility>

#include "server/convert/profile_convert.h"
#include "tests/fuzz/demand.h"
#include "tests/fuzz/message_mutator.h"

namespace stepcast::fuzz {

namespace {

namespace pb = google::protobuf;
using server::ProfileEncoding;

// Messages with broken text can be written in no form but the binary one.
bool Write(ProfileEncoding encoding, const v1::Profile& message, std::string& bytes) {
  bytes.clear();
  switch (encoding) {
    case ProfileEncoding::kJson:
      return pb::util::MessageToJsonString(message, &bytes).ok();
    case ProfileEncoding::kText:
      return pb::TextFormat::PrintToString(message, &bytes);
    case ProfileEncoding::kBinary:
      break;
  }
  return message.SerializeToString(&bytes);
}

bool Read(ProfileEncoding encoding, const std::string& bytes, v1::Profile& message) {
  switch (encoding) {
    case ProfileEncoding::kJson:
      return pb::util::JsonStringToMessage(bytes, &message).ok();
    case ProfileEncoding::kText: {
      pb::TextFormat::Parser parser;
      pb::io::ErrorCollector* const silent = nullptr;
      parser.RecordErrorsTo(silent);
      return parser.ParseFromString(bytes, &message);
    }
    case ProfileEncoding::kBinary:
      break;
  }
  return message.ParseFromString(bytes);
}

}  // namespace

std::string WriteProfile(ProfileEncoding encoding, const ProfileDraft& draft) {
  std::string bytes;
  Demand(Write(encoding, server::ToWire(draft), bytes), "a profile can be written");
  return bytes;
}

std::string MutateProfile(ProfileEncoding encoding, std::string bytes, const Mutation& mutation) {
  v1::Profile message;
  if (mutation.random.Below(2) == 0 || !Read(encoding, bytes, message))
    return mutation.bytes(std::move(bytes));
  MutateMessage(message, mutation);
  std::string written;
  return Write(encoding, message, written) ? written : mutation.bytes(std::move(bytes));
}

}  // namespace stepcast::fuzz
