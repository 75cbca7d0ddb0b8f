#include "server/methods/prediction_methods.h"

namespace stepcast::server {

std::vector<SimulatingMethod> SimulatingMethods() {
  // A stream, which no row has.
  std::vector<SimulatingMethod> simulating = {{.name = "GenerateTrace", .kinds = kOneKind}};
  ForEachPredictionMethod([&]<typename Method>(Method) {
    if (Method::kKinds != kNothingSimulated)
      simulating.push_back({.name = Method::Name(), .kinds = Method::kKinds});
  });
  return simulating;
}

}  // namespace stepcast::server
