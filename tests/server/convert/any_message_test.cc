#include "server/convert/any_message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/random.h"
#include "stepcast/v1/job_service.pb.h"
#include "stepcast/v1/prediction_service.pb.h"

namespace stepcast::server::any_message_test {
namespace {

namespace pb = google::protobuf;

void AddUnknown(pb::Message& message, int number) {
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(number, 1);
}

std::vector<std::string> Paths(const pb::Message& message) {
  std::vector<std::string> paths;
  for (const Fault& fault : UnknownFields(message)) paths.push_back(fault.field);
  return paths;
}

TEST(KnownFieldsTest, EachIsNamedAtItsPath) {
  v1::StartJobRequest job;
  v1::AllocateWorkersRequest& request = *job.mutable_allocate_workers();
  request.add_jobs();
  v1::AllocationJob& second = *request.add_jobs();
  (*second.mutable_scenario()->mutable_parameter_servers()->mutable_transfer_priorities())["a"] = 1;
  EXPECT_EQ(Paths(job), std::vector<std::string>());
  EXPECT_TRUE(CheckFieldsAreKnown(job).ok());
  AddUnknown(job, 900);
  AddUnknown(second, 901);
  AddUnknown(*second.mutable_scenario()->mutable_parameter_servers(), 902);
  EXPECT_EQ(Paths(job),
            std::vector<std::string>({"", "allocate_workers.jobs[1]",
                                      "allocate_workers.jobs[1].scenario.parameter_servers"}));
  EXPECT_EQ(CheckFieldsAreKnown(job).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(UnknownFields(job)[1].description,
            "field 901 of stepcast.v1.AllocationJob is not known to this server: it "
            "is of another version of it");
}

// A field whose bytes are of another type than this server's is another field.
TEST(KnownFieldsTest, AnotherTypeUnderAKnownNumberIsUnknown) {
  v1::PredictThroughputRequest request;
  const int number =
      v1::PredictThroughputRequest::descriptor()->FindFieldByName("scenario")->number();
  ASSERT_TRUE(request.ParseFromString({static_cast<char>(number << 3), 1}));
  EXPECT_EQ(Paths(request), std::vector<std::string>({""}));
}

TEST(KnownFieldsTest, AMillionFaultsAreNotKept) {
  v1::PredictThroughputRequest request;
  for (int i = 0; i < 100'000; ++i) AddUnknown(request, 900 + i);
  EXPECT_LE(UnknownFields(request).size(), 1000u);
}

// protobuf itself says what is unknown by discarding it.
TEST(KnownFieldsTest, RandomBytesHaveAnEnd) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random({seed});
    std::string bytes;
    for (uint64_t n = random.Below(60); n > 0; --n) bytes += static_cast<char>(random.Below(256));
    v1::StartJobRequest job;
    if (!job.ParsePartialFromString(bytes)) continue;
    std::string back = job.SerializeAsString();
    v1::StartJobRequest cleaned = job;
    cleaned.DiscardUnknownFields();
    // Nothing is found exactly where discarding changes nothing.
    EXPECT_EQ(UnknownFields(job).empty(), back.size() == cleaned.ByteSizeLong()) << seed;
  }
}

}  // namespace
}  // namespace stepcast::server::any_message_test
