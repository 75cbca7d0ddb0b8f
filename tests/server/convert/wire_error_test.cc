#include "server/convert/wire_error.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "core/base/error.h"
#include "core/base/random.h"

namespace stepcast::server::wire_error_test {
namespace {

google::rpc::Status Parse(const absl::Status& status) {
  google::rpc::Status wire;
  EXPECT_TRUE(wire.ParseFromString(ToWireError(status).details));
  return wire;
}

template <typename Detail>
std::optional<Detail> Find(const google::rpc::Status& wire) {
  for (const google::protobuf::Any& any : wire.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

TEST(WireErrorTest, EveryCanonicalCodeHasItsNumberAndAnErrorInfo) {
  for (int code = 1; code <= 16; ++code) {
    const google::rpc::Status wire =
        Parse(absl::Status(static_cast<absl::StatusCode>(code), "why"));
    EXPECT_EQ(wire.code(), code);
    EXPECT_EQ(wire.message(), "why");
    const auto info = Find<google::rpc::ErrorInfo>(wire);
    ASSERT_TRUE(info.has_value()) << code;
    EXPECT_EQ(info->domain(), "stepcast");
    EXPECT_EQ(info->reason(), absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
    EXPECT_EQ(wire.details_size(), 1) << code;
  }
}

TEST(WireErrorTest, EveryDetailHasItsMessage) {
  const google::rpc::Status wire = Parse(MakeError(absl::StatusCode::kResourceExhausted, "full",
                                                   {.reason = "QUEUE_FULL",
                                                    .metadata = {{"queue_max", "64"}},
                                                    .faults = {{.field = "f", .description = "d"}},
                                                    .resource = {.type = "t", .name = "n"},
                                                    .retry_delay_ms = 1500,
                                                    .quota_subject = "queue_max"}));
  const auto info = Find<google::rpc::ErrorInfo>(wire);
  EXPECT_EQ(info->reason(), "QUEUE_FULL");
  EXPECT_EQ(info->metadata().at("queue_max"), "64");
  EXPECT_EQ(info->metadata().count("violations_left_out"), 0U);
  const auto bad_request = Find<google::rpc::BadRequest>(wire);
  ASSERT_EQ(bad_request->field_violations_size(), 1);
  EXPECT_EQ(bad_request->field_violations(0).field(), "f");
  EXPECT_EQ(bad_request->field_violations(0).description(), "d");
  EXPECT_EQ(Find<google::rpc::ResourceInfo>(wire)->resource_type(), "t");
  EXPECT_EQ(Find<google::rpc::ResourceInfo>(wire)->resource_name(), "n");
  EXPECT_EQ(Find<google::rpc::RetryInfo>(wire)->retry_delay().seconds(), 1);
  EXPECT_EQ(Find<google::rpc::RetryInfo>(wire)->retry_delay().nanos(), 500'000'000);
  EXPECT_EQ(Find<google::rpc::QuotaFailure>(wire)->violations(0).subject(), "queue_max");
}

TEST(WireErrorTest, EqualErrorsHaveEqualBytes) {
  ErrorDetails details{.reason = "REASON"};
  for (int i = 0; i < 12; ++i) details.metadata["key" + std::to_string(i)] = std::to_string(i);
  const absl::Status status = MakeError(absl::StatusCode::kNotFound, "why", details);
  const std::string first = ToWireError(status).details;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ToWireError(status).details, first);
}

TEST(WireErrorTest, ViolationsThatDoNotFitAreCounted) {
  std::vector<Fault> faults;
  for (int i = 0; i < 30; ++i)
    faults.push_back({.field = "operations[" + std::to_string(i) + "].name",
                      .description = std::string(190, 'x')});
  const WireError error = ToWireError(FaultsError("PROFILE_INVALID", faults));
  EXPECT_LE(error.details.size(), kMaxWireDetailsBytes);
  google::rpc::Status wire;
  ASSERT_TRUE(wire.ParseFromString(error.details));
  const int listed = Find<google::rpc::BadRequest>(wire)->field_violations_size();
  EXPECT_GT(listed, 10);
  EXPECT_EQ(Find<google::rpc::ErrorInfo>(wire)->metadata().at("violations_left_out"),
            std::to_string(30 - listed));
}

// The limit of most clients is 8 KiB for all metadata; in it, details are base64 and the message is
// percent-encoded.
TEST(WireErrorTest, WhateverAStatusCarriesItFitsIntoMetadata) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Random random({seed});
    const auto noise = [&](size_t max) {
      std::string text(random.Below(max), ' ');
      for (char& c : text) c = static_cast<char>(random.Below(256));
      return text;
    };
    std::vector<Fault> faults;
    for (uint64_t i = 1 + random.Below(40); i > 0; --i)
      faults.push_back({.field = noise(2000), .description = noise(5000)});
    const WireError error = ToWireError(FaultsError("PROFILE_INVALID", faults));
    EXPECT_LE(error.details.size(), kMaxWireDetailsBytes) << "seed " << seed;
    EXPECT_LE(error.details.size() * 4 / 3 + error.message.size() * 3, 7500U) << "seed " << seed;
  }
}

TEST(WireErrorTest, TextIsUtf8WhateverTheStatusCarries) {
  const WireError error =
      ToWireError(FaultsError("PROFILE_MALFORMED", {{.field = "\xFF", .description = "\xC3"}}));
  EXPECT_EQ(error.message, "?: ?");
  google::rpc::Status wire;
  ASSERT_TRUE(wire.ParseFromString(error.details)) << "parsing fails on strings that are not UTF-8";
  EXPECT_EQ(Find<google::rpc::BadRequest>(wire)->field_violations(0).field(), "?");
}

}  // namespace
}  // namespace stepcast::server::wire_error_test
