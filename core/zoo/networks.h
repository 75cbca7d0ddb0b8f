// The architectures of the zoo.
#pragma once

#include "core/zoo/architecture_builder.h"

namespace stepcast {

// AlexNet, second version.
// Source: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014: the
// single-column network, as TF-slim has it: no response normalisation, first convolution and first
// dense layer without padding.
Architecture AlexNetV2();

// GoogLeNet, the first Inception network.
// Source: Szegedy et al., "Going deeper with convolutions", 2014, Table 1. Without the two
// auxiliary heads of its Fig. 3: see README.md.
Architecture GoogLeNet();

// Inception-v2, GoogLeNet with batch normalisation.
// Source: Ioffe and Szegedy, "Batch normalization: accelerating deep network training by reducing
// internal covariate shift", 2015, Fig. 5 and its appendix: two convolutions of 3 x 3 in place of
// one of 5 x 5, the first convolution separable with a depth multiplier of 8. Batch normalisation
// has an offset and no scale.
Architecture InceptionV2();

// Inception-v3.
// Source: Szegedy et al., "Rethinking the Inception architecture for computer vision", 2015, Table
// 1 and Figs. 5 to 7, 10, with the auxiliary head of Fig. 8; the sizes that the paper leaves open
// are those of TF-slim. Batch normalisation has an offset and no scale.
Architecture InceptionV3();

// The ResNet family, version 1, with bottleneck blocks.
// Source: He et al., "Deep residual learning for image recognition", 2015, Table 1 and Fig. 5
// (right); projections where the shape changes (option B). Batch normalisation has an offset and no
// scale, as in TicTac's Table 1: see README.md.
Architecture ResNet50();
Architecture ResNet101();

// The ResNet family, version 2: normalisation and ReLU before each convolution.
// Source: He et al., "Identity mappings in deep residual networks", 2016, Fig. 4e and its appendix:
// a block's projection reads what its first normalisation made, the last addition is normalised
// once more. Convolutions that no normalisation follows, which are the first, each unit's last and
// the projections, have biases.
Architecture ResNet50V2();
Architecture ResNet101V2();

// The VGG family.
// Source: Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
// recognition", 2014, Table 1: columns A, D and E.
Architecture Vgg11();
Architecture Vgg16();
Architecture Vgg19();

}  // namespace stepcast
