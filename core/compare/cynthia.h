// Cynthia's formula for asynchronous training.
//
// Source: Zheng et al.: "Cynthia: Cost-Efficient Cloud Resource Provisioning for Predictable
// Distributed Deep Neural Network Training", ICPP 2019, as ICPE 2020 prints it in section 1:
// examples per second of W workers with batches of K are W K / (T_P max(1, W U_1) + 2 T_C). How U_1
// is measured is left open there. Taken here: the part of one worker's step, T_P + 2 T_C, in which
// the busiest server's link carries something, which is what makes halving T_C "affect utilization
// U_1 and throughput" (section 4.4). With U_1 W above 1 and W without bound the formula tends to 1
// / (T_P U_1) steps per second, which may be more than the link can carry: that is the model's.
// Threads: pure functions.
#pragma once

#include <cstdint>

namespace stepcast {

struct CynthiaInputs {
  double computation_seconds = 0;  // T_P: a batch on the worker
  double transfer_seconds = 0;  // T_C: the model, or its updates, over the worker's link; the mean
                                // of the two where they differ
  double busiest_server_share = 1;  // of the bytes of a step; 1 with one server

  // U_1, from 0 to 1. REQUIRES, here and below: a step takes time.
  double NetworkUtilization() const;
  // With T_C reduced to half, the two directions being resources of their own (ICPE 2020,
  // section 4.4).
  CynthiaInputs Halved() const;
};

// Of all workers together.
double CynthiaStepsPerSecond(const CynthiaInputs& inputs, int32_t workers);

}  // namespace stepcast
