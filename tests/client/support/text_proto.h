// Messages from their text, and compared with it.
#pragma once

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace stepcast::client {

// Throws where the text is none of a Message, which fails the test.
template <typename Message>
Message Proto(const std::string& text) {
  Message message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message))
    throw std::runtime_error("no " + message.GetDescriptor()->full_name() + ": " + text);
  return message;
}

template <typename Message>
google::protobuf::RepeatedPtrField<Message> ListOf(const std::vector<Message>& messages) {
  return {messages.begin(), messages.end()};
}

MATCHER_P(EqualsProto, expected, "") {
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  const bool equal =
      differencer.Compare(expected, static_cast<std::remove_cv_t<decltype(expected)>>(arg));
  *result_listener << difference;
  return equal;
}

}  // namespace stepcast::client
