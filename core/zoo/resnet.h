// The ResNet family, version 1, with bottleneck blocks.
#pragma once

#include "core/zoo/architecture.h"

namespace stepcast {

// Source: He et al., "Deep residual learning for image recognition", 2015, Table 1 and Fig. 5
// (right); projections where the shape changes (option B). Batch normalisation has an offset and no
// scale, as in TicTac's Table 1: see README.md.
Architecture ResNet50();
Architecture ResNet101();

}  // namespace stepcast
