// AlexNet, second version.
#pragma once

#include "core/zoo/architecture.h"

namespace stepcast {

// Source: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014: the
// single-column network, as TF-slim has it: no response normalisation, first convolution and first
// dense layer without padding.
Architecture AlexNetV2();

}  // namespace stepcast
