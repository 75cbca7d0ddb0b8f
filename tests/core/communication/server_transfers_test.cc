#include "core/communication/server_transfers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "core/base/bandwidth.h"
#include "core/communication/parameter_servers.h"
#include "core/engine/program.h"
#include "tests/core/engine/random_case.h"

namespace stepcast::server_transfers_test {
namespace {

TEST(StreamServicesTest, AWholeStreamIsOneService) {
  EXPECT_EQ(StreamServices::Of(1000, WholeStream{}).count, 1);
  EXPECT_EQ(StreamServices::Of(1000, WholeStream{}).BytesOf(0), 1000);
}

TEST(StreamServicesTest, AreThoseTheGraphIsCutInto) {
  int cut = 0;
  int turned = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const testing::RandomCase random_case = testing::MakeRandomCase(seed);
    const Program graph = BuildProgram(random_case.profile, random_case.scenario);
    const Bandwidth bandwidth(random_case.scenario.bandwidth_bytes_per_second);
    for (OpIndex op = 0; op < graph.size(); ++op) {
      if (!graph.IsTransfer(op)) continue;
      const StreamServices services =
          StreamServices::Of(graph.size_bytes(op), random_case.scenario.servers().multiplexing);
      ASSERT_EQ(services.count, graph.work(op).services);
      int64_t sum = 0;
      for (int32_t service = 0; service < services.count; ++service) {
        sum += services.BytesOf(service);
        EXPECT_EQ(bandwidth.TimeFor(services.BytesOf(service)), graph.work(op).OfService(service));
      }
      EXPECT_EQ(sum, graph.size_bytes(op));
      cut += services.count > 1 ? 1 : 0;
      turned += services.count > 2 ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 300);
  EXPECT_GT(turned, 100);
}

}  // namespace
}  // namespace stepcast::server_transfers_test
