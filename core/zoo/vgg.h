// The VGG family.
#pragma once

#include "core/zoo/architecture.h"

namespace stepcast {

// Source: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
// recognition", 2014, Table 1: columns A and D.
Architecture Vgg11();
Architecture Vgg16();

}  // namespace stepcast
