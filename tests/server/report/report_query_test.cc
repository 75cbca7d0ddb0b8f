#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "server/report/report.h"

namespace stepcast::server::report_query_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ReportQueryTest, WithoutAQueryItIsOneToSixteenWorkers) {
  const auto request = ReadReportQuery("alexnet-64", "");
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_THAT(request->subjects, SizeIs(1));
  EXPECT_EQ(request->subjects[0].question.profile(), "profiles/alexnet-64");
  EXPECT_FALSE(request->subjects[0].question.has_scenario());
  EXPECT_THAT(request->worker_counts, SizeIs(16));
}

TEST(ReportQueryTest, EverythingThatMayBeSaid) {
  const auto request =
      ReadReportQuery("a", "workers=1-3%2C8&bandwidth_bytes_per_second=1.25e8&against=b-2");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->worker_counts, ElementsAre(1, 2, 3, 8));
  ASSERT_THAT(request->subjects, SizeIs(2));
  EXPECT_EQ(request->subjects[0].label, "a");
  EXPECT_EQ(request->subjects[1].label, "b-2");
  EXPECT_EQ(request->subjects[1].question.profile(), "profiles/b-2");
  for (const ReportSubject& subject : request->subjects)
    EXPECT_EQ(subject.question.scenario().bandwidth_bytes_per_second(), 1.25e8);
}

TEST(ReportQueryTest, WhatNoProfileCanBeCalledIsNoPage) {
  for (const std::string id : {"", ".", "..", "../x", "a/b", "A", "a b", "a%2fb", "\xC3\xA9"}) {
    const absl::Status status = ReadReportQuery(id, "").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << id;
    EXPECT_EQ(DetailsOf(status).reason, "PAGE_UNKNOWN") << id;
  }
  EXPECT_FALSE(ReadReportQuery(std::string(64, 'a'), "").ok());
}

TEST(ReportQueryTest, EveryFaultIsNamedAtOnce) {
  const absl::Status status =
      ReadReportQuery("a",
                      "workers=0&bandwidth_bytes_per_second=x&against=../b&colour=red&&"
                      "against=c")
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const ErrorDetails details = DetailsOf(status);
  EXPECT_EQ(details.reason, "QUERY_INVALID");
  std::vector<std::string> fields;
  for (const Fault& fault : details.faults) fields.push_back(fault.field);
  EXPECT_THAT(fields,
              ElementsAre("workers", "bandwidth_bytes_per_second", "against", "colour", "against"));
}

TEST(ReportQueryTest, ListsOfWorkersAreStrict) {
  for (const std::string list :
       {"",      "0",   "-1", "1-",  "-",   "1,",    ",1", "2-1", "4097", "1-65",
        "1 2",   "1;2", "+1", "0x1", "1.0", "1-2-3", "%",  "%4",  "%GG",  "99999999999999999999",
        "1-64,1"}) {
    const absl::Status status = ReadReportQuery("a", "workers=" + list).status();
    ASSERT_FALSE(status.ok()) << list;
    EXPECT_EQ(DetailsOf(status).faults.at(0).field, "workers") << list;
  }
  EXPECT_TRUE(ReadReportQuery("a", "workers=1-64").ok());
  EXPECT_TRUE(ReadReportQuery("a", "workers=4096").ok());
}

TEST(ReportQueryTest, TheValueIsQuotedShortAndPrintable) {
  const absl::Status status =
      ReadReportQuery("a", "workers=%0a%1b[31m" + std::string(500, 'x')).status();
  const std::string said = DetailsOf(status).faults.at(0).description;
  EXPECT_LT(said.size(), 250U);
  EXPECT_THAT(said, HasSubstr("\\n"));
}

}  // namespace
}  // namespace stepcast::server::report_query_test
