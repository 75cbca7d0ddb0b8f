// The requests that a question of advice makes, and the advice that replies are read as.
//
// Pure functions: who calls is Adviser.
#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "stepcast/advice.h"
#include "stepcast/v1/prediction.pb.h"
#include "stepcast/v1/recommendation.pb.h"

namespace stepcast::client {

// The request that chooses. To the byte as `stepcast recommend` writes it with the same objective
// and range, so that a server that has answered one answers the other at once. It has no time
// budget: the server keeps no answer that was cut short.
// REQUIRES: the question is OK.
v1::RecommendWorkersRequest RequestOf(const AdviceQuestion& question);

// True where the knee is to be asked for besides, because another objective looks at other counts.
bool NeedsKneeRequest(const AdviceQuestion& question);

// The request for the knee, of the one that chooses.
v1::RecommendWorkersRequest KneeRequestOf(const v1::RecommendWorkersRequest& request);

// True where it must be known first how the profile's workers communicate.
bool NeedsCommunication(const AdviceQuestion& question);

// The request whose reply says so.
v1::PredictThroughputRequest CommunicationRequestOf(const AdviceQuestion& question);

// Puts the workers of a node and the rate of its links into the scenario.
void SetNode(const AdviceQuestion& question, v1::RecommendWorkersRequest& request);

// The same where the reply says that the profile's workers meet in collectives; else, since
// parameter servers know no nodes, the numbers of workers that fill some, and a node's price spread
// over its workers. Errors: INTERNAL where the reply does not say.
absl::Status SetWorkersPerNode(const AdviceQuestion& question,
                               const v1::PredictThroughputResponse& reply,
                               v1::RecommendWorkersRequest& request);

// The advice of a reply. `knee`: the reply to KneeRequestOf, or null.
// Errors: FAILED_PRECONDITION, reason INFEASIBLE, where no count keeps the constraints; INTERNAL
// where the reply is not about the question.
absl::StatusOr<Advice> AdviceOf(const AdviceQuestion& question,
                                const v1::RecommendWorkersResponse& reply,
                                const v1::RecommendWorkersResponse* knee);

// Equal for equal questions.
std::string KeyOf(const AdviceQuestion& question);

}  // namespace stepcast::client
