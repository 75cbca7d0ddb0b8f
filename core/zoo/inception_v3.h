// Inception-v3.
#pragma once

#include "core/zoo/architecture.h"

namespace stepcast {

// Source: Szegedy et al., "Rethinking the Inception architecture for computer vision", 2015, Table
// 1 and Figs. 5 to 7, 10, with the auxiliary head of Fig. 8; the sizes that the paper leaves open
// are those of TF-slim. Batch normalisation has an offset and no scale.
Architecture InceptionV3();

}  // namespace stepcast
