// The tables of enums: the contract's number of each value of the core, for every enum of both.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"

#include "core/advise/communication_query.h"
#include "core/advise/memory.h"
#include "core/allocate/allocation_query.h"
#include "core/base/error.h"
#include "core/calibrate/collective_fit.h"
#include "core/compare/comparison.h"
#include "core/diagnose/diagnosis.h"
#include "core/layouts/layout_search.h"
#include "core/layouts/run_fit.h"
#include "core/model/profile.h"
#include "core/model/scenario.h"
#include "core/model/simulation_options.h"
#include "core/predict/order.h"
#include "core/predict/throughput.h"
#include "core/recommend/recommendation.h"
#include "server/convert/stored_requests.h"
#include "stepcast/v1/allocation.pb.h"
#include "stepcast/v1/calibration.pb.h"
#include "stepcast/v1/comparison.pb.h"
#include "stepcast/v1/diagnosis.pb.h"
#include "stepcast/v1/layout.pb.h"
#include "stepcast/v1/order.pb.h"
#include "stepcast/v1/pipeline.pb.h"
#include "stepcast/v1/prediction.pb.h"
#include "stepcast/v1/profile.pb.h"
#include "stepcast/v1/profile_service.pb.h"
#include "stepcast/v1/recommendation.pb.h"
#include "stepcast/v1/scenario.pb.h"
#include "stepcast/v1/strategy.pb.h"
#include "stepcast/v1/tuning.pb.h"

namespace stepcast::server {

template <typename Wire, typename Core>
struct EnumPair {
  Wire wire;
  Core core;
};

template <typename Wire, typename Core, size_t n>
using EnumTable = std::array<EnumPair<Wire, Core>, n>;

inline constexpr EnumTable<v1::Operation::Resource, Resource, 5> kResources{
    {{v1::Operation::DOWNLINK, Resource::kDownlink},
     {v1::Operation::WORKER, Resource::kWorker},
     {v1::Operation::UPLINK, Resource::kUplink},
     {v1::Operation::PARAMETER_SERVER, Resource::kParameterServer},
     {v1::Operation::COLLECTIVE, Resource::kCollective}}};
inline constexpr EnumTable<v1::Operation::Collective, Collective, 4> kCollectives{
    {{v1::Operation::ALL_REDUCE, Collective::kAllReduce},
     {v1::Operation::REDUCE_SCATTER, Collective::kReduceScatter},
     {v1::Operation::ALL_GATHER, Collective::kAllGather},
     {v1::Operation::BROADCAST, Collective::kBroadcast}}};
inline constexpr EnumTable<v1::Operation::Pass, Pass, 7> kPasses{
    {{v1::Operation::FORWARD, Pass::kForward},
     {v1::Operation::BACKWARD, Pass::kBackward},
     {v1::Operation::BACKWARD_INPUT, Pass::kBackwardInput},
     {v1::Operation::BACKWARD_WEIGHT, Pass::kBackwardWeight},
     {v1::Operation::OPTIMIZER, Pass::kOptimizer},
     {v1::Operation::OTHER, Pass::kOther},
     {v1::Operation::DATA_LOADING, Pass::kDataLoading}}};
inline constexpr EnumTable<v1::Pipeline::Schedule, PipelineSchedule, 6> kPipelineSchedules{
    {{v1::Pipeline::GPIPE, PipelineSchedule::kGpipe},
     {v1::Pipeline::ONE_F_ONE_B, PipelineSchedule::kOneForwardOneBackward},
     {v1::Pipeline::INTERLEAVED, PipelineSchedule::kInterleaved},
     {v1::Pipeline::LOOPED_BFS, PipelineSchedule::kLoopedBreadthFirst},
     {v1::Pipeline::ZERO_BUBBLE_1, PipelineSchedule::kZeroBubble1},
     {v1::Pipeline::ZERO_BUBBLE_V, PipelineSchedule::kZeroBubbleV}}};
inline constexpr EnumTable<v1::Pipeline::Variant, PipelineVariant, 2> kPipelineVariants{
    {{v1::Pipeline::MEGATRON, PipelineVariant::kMegatron},
     {v1::Pipeline::PYTORCH, PipelineVariant::kPytorch}}};
inline constexpr EnumTable<v1::Pipeline::Receives, PipelineReceives, 4> kPipelineReceives{
    {{v1::Pipeline::EAGER, PipelineReceives::kEager},
     {v1::Pipeline::LATE, PipelineReceives::kLate},
     {v1::Pipeline::FUSED, PipelineReceives::kFused},
     {v1::Pipeline::PAIRED, PipelineReceives::kPaired}}};
inline constexpr EnumTable<v1::Pipeline::Transport, PipelineTransport, 2> kPipelineTransports{
    {{v1::Pipeline::IDEAL, PipelineTransport::kIdeal},
     {v1::Pipeline::GLOO, PipelineTransport::kGloo}}};
inline constexpr EnumTable<v1::Pipeline::Links, PipelineLinks, 3> kPipelineLinks{
    {{v1::Pipeline::PAIR, PipelineLinks::kPair},
     {v1::Pipeline::DEVICE, PipelineLinks::kDevice},
     {v1::Pipeline::SERIAL, PipelineLinks::kSerial}}};
inline constexpr EnumTable<v1::Pipeline::Reduction, PipelineReduction, 4> kPipelineReductions{
    {{v1::Pipeline::AT_END, PipelineReduction::kAtEnd},
     {v1::Pipeline::BY_CHUNK, PipelineReduction::kByChunk},
     {v1::Pipeline::BUCKETS, PipelineReduction::kBuckets},
     {v1::Pipeline::MEGATRON_BUCKETS, PipelineReduction::kMegatronBuckets}}};
inline constexpr EnumTable<v1::PipelineReport::Bottleneck, PipelineBottleneck, 6>
    kPipelineBottlenecks{{{v1::PipelineReport::COMPUTATION, PipelineBottleneck::kComputation},
                          {v1::PipelineReport::BUBBLE, PipelineBottleneck::kBubble},
                          {v1::PipelineReport::IMBALANCE, PipelineBottleneck::kImbalance},
                          {v1::PipelineReport::TRANSFERS, PipelineBottleneck::kTransfers},
                          {v1::PipelineReport::REDUCTIONS, PipelineBottleneck::kReductions},
                          {v1::PipelineReport::REST, PipelineBottleneck::kRest}}};
inline constexpr EnumTable<v1::RecommendLayoutRequest::Objective, LayoutObjective, 2>
    kLayoutObjectives{
        {{v1::RecommendLayoutRequest::MAX_THROUGHPUT, LayoutObjective::kMaxThroughput},
         {v1::RecommendLayoutRequest::MIN_MEMORY, LayoutObjective::kMinMemory}}};
inline constexpr EnumTable<v1::FitRunsRequest::Basis, RunBasis, 2> kRunBases{
    {{v1::FitRunsRequest::SMALLEST, RunBasis::kSmallest},
     {v1::FitRunsRequest::ALL_RUNS, RunBasis::kAll}}};
inline constexpr EnumTable<v1::AllReduce::Algorithm, CollectiveAlgorithm, 7> kCollectiveAlgorithms{
    {{v1::AllReduce::RING, CollectiveAlgorithm::kRing},
     {v1::AllReduce::HIERARCHICAL, CollectiveAlgorithm::kHierarchical},
     {v1::AllReduce::HALVING_DOUBLING, CollectiveAlgorithm::kHalvingDoubling},
     {v1::AllReduce::TREE, CollectiveAlgorithm::kTree},
     {v1::AllReduce::MEASURED, CollectiveAlgorithm::kMeasured},
     {v1::AllReduce::GLOO, CollectiveAlgorithm::kGloo},
     {v1::AllReduce::NCCL, CollectiveAlgorithm::kNccl}}};
inline constexpr EnumTable<v1::FitCollectivesResponse::Warning::Reason, FitWarning::Reason, 8>
    kFitWarningReasons{
        {{v1::FitCollectivesResponse::Warning::BANDWIDTH_NOT_TOLD,
          FitWarning::Reason::kBandwidthNotTold},
         {v1::FitCollectivesResponse::Warning::LATENCY_NOT_TOLD,
          FitWarning::Reason::kLatencyNotTold},
         {v1::FitCollectivesResponse::Warning::REDUCTION_NOT_TOLD,
          FitWarning::Reason::kReductionNotTold},
         {v1::FitCollectivesResponse::Warning::REDUCTION_AMBIGUOUS,
          FitWarning::Reason::kReductionAmbiguous},
         {v1::FitCollectivesResponse::Warning::NOT_A_SCENARIO, FitWarning::Reason::kNoScenario},
         {v1::FitCollectivesResponse::Warning::TWO_WORKERS_ONLY,
          FitWarning::Reason::kTwoWorkersOnly},
         {v1::FitCollectivesResponse::Warning::ALGORITHM_FAILS,
          FitWarning::Reason::kAlgorithmFails},
         {v1::FitCollectivesResponse::Warning::POINTS_FOLLOW_NO_LINE,
          FitWarning::Reason::kNoLine}}};
inline constexpr EnumTable<v1::CollectiveReport::Bottleneck, CollectiveBottleneck, 6>
    kCollectiveBottlenecks{
        {{v1::CollectiveReport::COMPUTATION, CollectiveBottleneck::kComputation},
         {v1::CollectiveReport::LINK_BETWEEN_NODES, CollectiveBottleneck::kLinkBetweenNodes},
         {v1::CollectiveReport::LINK_INSIDE_NODE, CollectiveBottleneck::kLinkInsideNode},
         {v1::CollectiveReport::SLOWEST_WORKER, CollectiveBottleneck::kSlowestWorker},
         {v1::CollectiveReport::HOST, CollectiveBottleneck::kHost},
         {v1::CollectiveReport::LATENCY, CollectiveBottleneck::kLatency}}};
inline constexpr EnumTable<v1::Prediction::Change, WhatIf, kChangesOfOneResource.size()>
    kBottleneckChanges{
        {{v1::Prediction::NO_STRAGGLERS, WhatIf::kNoStragglers},
         {v1::Prediction::LINKS_TWICE_AS_FAST, WhatIf::kLinksTwiceAsFast},
         {v1::Prediction::NO_LATENCY, WhatIf::kNoLatency},
         {v1::Prediction::COMPUTATION_TWICE_AS_FAST, WhatIf::kComputationTwiceAsFast},
         {v1::Prediction::SERVERS_TWICE_AS_FAST, WhatIf::kServersTwiceAsFast},
         {v1::Prediction::NO_HOST_WAIT, WhatIf::kNoHostWait}}};
// Nothing kept in shares is the contract's "unspecified".
inline constexpr EnumTable<v1::AllReduce::Sharding, Sharding, 3> kShardings{
    {{v1::AllReduce::OPTIMIZER, Sharding::kOptimizer},
     {v1::AllReduce::GRADIENTS, Sharding::kGradients},
     {v1::AllReduce::FULL, Sharding::kFull}}};
inline constexpr EnumTable<v1::AllReduce::Fidelity, Fidelity, 2> kFidelities{
    {{v1::AllReduce::COLLAPSED, Fidelity::kCollapsed},
     {v1::AllReduce::EXPANDED, Fidelity::kExpanded}}};
inline constexpr EnumTable<v1::AllReduce::Nccl::Architecture, Nccl::Architecture, 3>
    kNcclArchitectures{{{v1::AllReduce::Nccl::VOLTA, Nccl::Architecture::kVolta},
                        {v1::AllReduce::Nccl::AMPERE, Nccl::Architecture::kAmpere},
                        {v1::AllReduce::Nccl::HOPPER, Nccl::Architecture::kHopper}}};
inline constexpr EnumTable<v1::AllReduce::Nccl::Path, Nccl::Path, 2> kNcclPaths{
    {{v1::AllReduce::Nccl::NVLINK, Nccl::Path::kNvlink},
     {v1::AllReduce::Nccl::PCI, Nccl::Path::kPci}}};
inline constexpr EnumTable<v1::ParameterServers::Synchronization, Synchronization, 3>
    kSynchronizations{{{v1::ParameterServers::ASYNCHRONOUS, Synchronization::kAsynchronous},
                       {v1::ParameterServers::SYNCHRONOUS, Synchronization::kSynchronous},
                       {v1::ParameterServers::SUMMED, Synchronization::kSummed}}};
inline constexpr EnumTable<v1::ParameterServers::TransferOrder, TransferOrder, 7> kTransferOrders{
    {{v1::ParameterServers::GRAPH, TransferOrder::kGraph},
     {v1::ParameterServers::RECORDED, TransferOrder::kRecorded},
     {v1::ParameterServers::RANDOM, TransferOrder::kRandom},
     {v1::ParameterServers::REVERSE, TransferOrder::kReverse},
     {v1::ParameterServers::TIC, TransferOrder::kTic},
     {v1::ParameterServers::TAC, TransferOrder::kTac},
     {v1::ParameterServers::EXPLICIT, TransferOrder::kExplicit}}};
inline constexpr EnumTable<v1::Warning::Reason, Warning::Reason, 12> kWarningReasons{
    {{v1::Warning::NOT_STEADY, Warning::Reason::kNotSteady},
     {v1::Warning::TWO_REGIMES, Warning::Reason::kTwoRegimes},
     {v1::Warning::NOTHING_RANDOM, Warning::Reason::kNothingRandom},
     {v1::Warning::ONE_REPLICATION, Warning::Reason::kOneReplication},
     {v1::Warning::FINITE_HORIZON, Warning::Reason::kFiniteHorizon},
     {v1::Warning::COLLECTIVES_START_FREE, Warning::Reason::kCollectivesStartFree},
     {v1::Warning::LINK_RATE_NOT_MEASURED, Warning::Reason::kLinkRateNotMeasured},
     {v1::Warning::LINK_SHARING_MATTERS, Warning::Reason::kLinkSharingMatters},
     {v1::Warning::KEPT_BYTES_NOT_KNOWN, Warning::Reason::kKeptBytesNotKnown},
     {v1::Warning::REST_BELOW_ZERO, Warning::Reason::kRestBelowZero},
     {v1::Warning::PRECISION_NOT_REACHED, Warning::Reason::kPrecisionNotReached},
     {v1::Warning::GRADIENTS_NOT_KNOWN, Warning::Reason::kGradientsNotKnown}}};
inline constexpr EnumTable<v1::SimulationOptions::Start, Start, 2> kStarts{
    {{v1::SimulationOptions::SIMULTANEOUS, Start::kSimultaneous},
     {v1::SimulationOptions::STAGGERED, Start::kStaggered}}};
inline constexpr EnumTable<v1::SimulationOptions::StepVariation, StepSource, 2> kStepVariations{
    {{v1::SimulationOptions::MODELLED, StepSource::kModelled},
     {v1::SimulationOptions::AS_RECORDED, StepSource::kAsRecorded}}};
inline constexpr EnumTable<v1::SimulationOptions::Horizon, Horizon, 3> kHorizons{
    {{v1::SimulationOptions::STEADY_STATE, Horizon::kSteadyState},
     {v1::SimulationOptions::FIRST_STEPS, Horizon::kFirstSteps},
     {v1::SimulationOptions::FIRST_SECONDS, Horizon::kFirstSeconds}}};
inline constexpr EnumTable<v1::RecommendWorkersRequest::Objective, Objective, 4> kObjectives{
    {{v1::RecommendWorkersRequest::MAX_THROUGHPUT, Objective::kMaxThroughput},
     {v1::RecommendWorkersRequest::MIN_COST, Objective::kMinCost},
     {v1::RecommendWorkersRequest::MIN_TIME, Objective::kMinTime},
     {v1::RecommendWorkersRequest::KNEE, Objective::kKnee}}};
inline constexpr EnumTable<v1::ChoiceEdge, ChoiceEdge, 5> kChoiceEdges{
    {{v1::CHOICE_EDGE_UNSPECIFIED, ChoiceEdge::kNone},
     {v1::AT_LARGEST_ASKED, ChoiceEdge::kLargestAsked},
     {v1::AT_SMALLEST_ASKED, ChoiceEdge::kSmallestAsked},
     {v1::ONLY_CHOICE, ChoiceEdge::kOnlyChoice},
     {v1::ONLY_FEASIBLE, ChoiceEdge::kOnlyFeasible}}};
inline constexpr EnumTable<v1::BrokenConstraint::Kind, ConstraintKind, 3> kConstraintKinds{
    {{v1::BrokenConstraint::DEADLINE, ConstraintKind::kDeadline},
     {v1::BrokenConstraint::BUDGET, ConstraintKind::kBudget},
     {v1::BrokenConstraint::MIN_SCALING_EFFICIENCY, ConstraintKind::kMinScalingEfficiency}}};
inline constexpr EnumTable<v1::OptimizeCommunicationRequest::Method, TuningMethod, 10>
    kTuningMethods{{{v1::OptimizeCommunicationRequest::AS_RECORDED, TuningMethod::kAsRecorded},
                    {v1::OptimizeCommunicationRequest::DDP_BUCKETS, TuningMethod::kDdpBuckets},
                    {v1::OptimizeCommunicationRequest::HOROVOD, TuningMethod::kHorovod},
                    {v1::OptimizeCommunicationRequest::MG_WFBP, TuningMethod::kMgWfbp},
                    {v1::OptimizeCommunicationRequest::BYTESCHEDULER, TuningMethod::kByteScheduler},
                    {v1::OptimizeCommunicationRequest::LIBRA, TuningMethod::kLibra},
                    {v1::OptimizeCommunicationRequest::SEARCH, TuningMethod::kSearch},
                    {v1::OptimizeCommunicationRequest::SEQUENTIAL, TuningMethod::kSequential},
                    {v1::OptimizeCommunicationRequest::LIBRA_M, TuningMethod::kLibraM},
                    {v1::OptimizeCommunicationRequest::MG_CF, TuningMethod::kMgCf}}};
inline constexpr EnumTable<v1::PathTime::Kind, PathKind, kPathKinds> kPathKindTable{
    {{v1::PathTime::COMPUTATION, PathKind::kComputation},
     {v1::PathTime::SERVER, PathKind::kServer},
     {v1::PathTime::COMMUNICATION, PathKind::kCommunication},
     {v1::PathTime::WAITING, PathKind::kWaiting},
     {v1::PathTime::GAP, PathKind::kGap}}};
inline constexpr EnumTable<v1::WhatIf::Change, WhatIf, kWhatIfCount> kWhatIfs{
    {{v1::WhatIf::NO_STRAGGLERS, WhatIf::kNoStragglers},
     {v1::WhatIf::LINKS_TWICE_AS_FAST, WhatIf::kLinksTwiceAsFast},
     {v1::WhatIf::NO_LATENCY, WhatIf::kNoLatency},
     {v1::WhatIf::COMPUTATION_TWICE_AS_FAST, WhatIf::kComputationTwiceAsFast},
     {v1::WhatIf::ONE_WORKER_FEWER, WhatIf::kOneWorkerFewer},
     {v1::WhatIf::BEST_BUCKETS, WhatIf::kBestBuckets},
     {v1::WhatIf::BEST_TRANSFER_ORDER, WhatIf::kBestTransferOrder},
     {v1::WhatIf::SERVERS_TWICE_AS_FAST, WhatIf::kServersTwiceAsFast},
     {v1::WhatIf::NO_HOST_WAIT, WhatIf::kNoHostWait},
     {v1::WhatIf::DATA_LOADING_TWICE_AS_FAST, WhatIf::kDataLoadingTwiceAsFast},
     {v1::WhatIf::NO_DATA_WAIT, WhatIf::kNoDataWait},
     {v1::WhatIf::EQUAL_STAGES, WhatIf::kEqualStages},
     {v1::WhatIf::FREE_TRANSFERS, WhatIf::kFreeTransfers},
     {v1::WhatIf::FREE_REDUCTIONS, WhatIf::kFreeReductions},
     {v1::WhatIf::NO_STEP_END, WhatIf::kNoStepEnd},
     {v1::WhatIf::TWICE_THE_MICRO_BATCHES, WhatIf::kTwiceTheMicroBatches},
     {v1::WhatIf::TWICE_THE_CHUNKS, WhatIf::kTwiceTheChunks},
     {v1::WhatIf::EAGER_RECEIVES, WhatIf::kEagerReceives}}};
inline constexpr EnumTable<v1::JobStrategy::MemoryPass, MemoryPass, 3> kMemoryPasses{
    {{v1::JobStrategy::NONE, MemoryPass::kNone},
     {v1::JobStrategy::RECOMPUTATION, MemoryPass::kRecomputation},
     {v1::JobStrategy::GRADIENT_ACCUMULATION, MemoryPass::kGradientAccumulation}}};
inline constexpr EnumTable<v1::OrderMethod, OrderMethod, 7> kOrderMethods{
    {{v1::TIC, OrderMethod::kTic},
     {v1::TAC, OrderMethod::kTac},
     {v1::SEARCH, OrderMethod::kSearch},
     {v1::REVERSE, OrderMethod::kReverse},
     {v1::RANDOM, OrderMethod::kRandom},
     {v1::RECORDED, OrderMethod::kRecorded},
     {v1::GRAPH, OrderMethod::kGraph}}};
inline constexpr EnumTable<v1::AllocateWorkersRequest::Objective, AllocationObjective, 3>
    kAllocationObjectives{
        {{v1::AllocateWorkersRequest::TOTAL_UTILITY, AllocationObjective::kTotalUtility},
         {v1::AllocateWorkersRequest::MAX_MIN_FAIR, AllocationObjective::kMaxMinFair},
         {v1::AllocateWorkersRequest::MIN_MAKESPAN, AllocationObjective::kMinMakespan}}};
inline constexpr EnumTable<v1::ModelPrediction::Model, ComparedModel, 10> kComparedModels{
    {{v1::ModelPrediction::QUEUEING, ComparedModel::kQueueing},
     {v1::ModelPrediction::CYNTHIA, ComparedModel::kCynthia},
     {v1::ModelPrediction::CYNTHIA_HALVED, ComparedModel::kCynthiaHalved},
     {v1::ModelPrediction::COARSE_TENSORS, ComparedModel::kCoarseTensors},
     {v1::ModelPrediction::POLLUX, ComparedModel::kPollux},
     {v1::ModelPrediction::NO_OVERLAP, ComparedModel::kNoOverlap},
     {v1::ModelPrediction::PALEO, ComparedModel::kPaleo},
     {v1::ModelPrediction::BUBBLE_FORMULA, ComparedModel::kBubbleFormula},
     {v1::ModelPrediction::LINEAR_SCALING, ComparedModel::kLinearScaling},
     {v1::ModelPrediction::SIMAI, ComparedModel::kSimai}}};
inline constexpr EnumTable<v1::UploadProfileRequest::Encoding, ProfileEncoding, 3>
    kProfileEncodings{{{v1::UploadProfileRequest::BINARY, ProfileEncoding::kBinary},
                       {v1::UploadProfileRequest::JSON, ProfileEncoding::kJson},
                       {v1::UploadProfileRequest::TEXT, ProfileEncoding::kText}}};
inline constexpr EnumTable<v1::ModelZooOptions::Communication, ZooCommunication, 2>
    kZooCommunications{
        {{v1::ModelZooOptions::PARAMETER_SERVERS, ZooCommunication::kParameterServers},
         {v1::ModelZooOptions::ALL_REDUCE, ZooCommunication::kAllReduce}}};
inline constexpr EnumTable<v1::ProfileView, ProfileView, 2> kProfileViews{
    {{v1::BASIC, ProfileView::kBasic}, {v1::FULL, ProfileView::kFull}}};

// The first value where the core has one the contract does not know: which the tables' tests rule
// out.
template <typename Wire, typename Core, size_t n>
Wire WireOf(const EnumTable<Wire, Core, n>& table, Core core) {
  for (const auto& pair : table) {
    if (pair.core == core) return pair.wire;
  }
  return Wire{};
}

// None for 0, which is every enum's "unspecified", and for an unknown number, which is a fault at
// `path`.
template <typename Wire, typename Core, size_t n>
std::optional<Core> CoreOf(const EnumTable<Wire, Core, n>& table, Wire wire,
                           const std::string& path, FaultList& faults) {
  for (const auto& pair : table) {
    if (pair.wire == wire) return pair.core;
  }
  if (wire != Wire{})
    faults.Add(path, absl::StrCat(static_cast<int>(wire), " is not a known number of this enum"));
  return std::nullopt;
}

}  // namespace stepcast::server
