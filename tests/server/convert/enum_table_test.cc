#include "server/convert/enum_table.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/generated_enum_reflection.h>
#include <gtest/gtest.h>

#include <set>

namespace stepcast::server::enum_table_test {
namespace {

// Every number of the wire enum but 0 stands for a value of its own, and comes back from it.
template <typename Wire, typename Core, size_t n>
void ExpectComplete(const EnumTable<Wire, Core, n>& table) {
  const google::protobuf::EnumDescriptor& descriptor = *google::protobuf::GetEnumDescriptor<Wire>();
  SCOPED_TRACE(descriptor.full_name());
  EXPECT_EQ(static_cast<size_t>(descriptor.value_count()), n + 1);
  std::set<Core> seen;
  for (int i = 0; i < descriptor.value_count(); ++i) {
    const Wire wire = static_cast<Wire>(descriptor.value(i)->number());
    FaultList faults;
    const std::optional<Core> core = CoreOf(table, wire, "field", faults);
    EXPECT_TRUE(faults.empty()) << descriptor.value(i)->name();
    ASSERT_EQ(core.has_value(), wire != Wire{}) << descriptor.value(i)->name();
    if (!core) continue;
    EXPECT_TRUE(seen.insert(*core).second) << descriptor.value(i)->name();
    EXPECT_EQ(WireOf(table, *core), wire);
  }
}

TEST(EnumTableTest, EveryTableIsCompleteAndOneToOne) {
  ExpectComplete(kResources);
  ExpectComplete(kSynchronizations);
  ExpectComplete(kTransferOrders);
  ExpectComplete(kWarningReasons);
  ExpectComplete(kFitWarningReasons);
  ExpectComplete(kCollectives);
  ExpectComplete(kPasses);
  ExpectComplete(kPipelineSchedules);
  ExpectComplete(kPipelineVariants);
  ExpectComplete(kPipelineReceives);
  ExpectComplete(kPipelineTransports);
  ExpectComplete(kPipelineLinks);
  ExpectComplete(kPipelineReductions);
  ExpectComplete(kPipelineBottlenecks);
  ExpectComplete(kLayoutObjectives);
  ExpectComplete(kRunBases);
  ExpectComplete(kCollectiveAlgorithms);
  ExpectComplete(kStarts);
  ExpectComplete(kHorizons);
  ExpectComplete(kObjectives);
  ExpectComplete(kConstraintKinds);
  ExpectComplete(kOrderMethods);
  ExpectComplete(kAllocationObjectives);
  ExpectComplete(kComparedModels);
  ExpectComplete(kProfileEncodings);
  ExpectComplete(kProfileViews);
  ExpectComplete(kZooCommunications);
  ExpectComplete(kPathKindTable);
  ExpectComplete(kWhatIfs);
  ExpectComplete(kMemoryPasses);
}

TEST(EnumTableTest, NamesMeanTheSameOnBothSides) {
  for (const auto& pair : kResources)
    EXPECT_EQ(v1::Operation::Resource_Name(pair.wire), ResourceName(pair.core));
  for (const auto& pair : kPathKindTable)
    EXPECT_EQ(v1::PathTime::Kind_Name(pair.wire), NameOf(pair.core));
  for (const auto& pair : kWhatIfs)
    EXPECT_EQ(v1::WhatIf::Change_Name(pair.wire), NameOf(pair.core));
  for (const auto& pair : kMemoryPasses)
    EXPECT_EQ(v1::JobStrategy::MemoryPass_Name(pair.wire), NameOf(pair.core));
}

TEST(EnumTableTest, AnUnknownNumberIsAFaultThatNamesFieldAndNumber) {
  FaultList faults;
  EXPECT_EQ(CoreOf(kStarts, static_cast<v1::SimulationOptions::Start>(77), "options.start", faults),
            std::nullopt);
  const std::vector<Fault> found = std::move(faults).Take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].field, "options.start");
  EXPECT_NE(found[0].description.find("77"), std::string::npos);
}

}  // namespace
}  // namespace stepcast::server::enum_table_test
