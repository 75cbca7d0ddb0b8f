// GoogLeNet, the first Inception network.
#pragma once

#include "core/zoo/architecture.h"

namespace stepcast {

// Source: Szegedy et al., "Going deeper with convolutions", 2014, Table 1. Without the two
// auxiliary heads of its Fig. 3: see README.md.
Architecture GoogLeNet();

}  // namespace stepcast
