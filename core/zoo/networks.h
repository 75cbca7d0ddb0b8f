// The architectures of the zoo: networks of papers as TF-slim has them, and those that PyTorch's
// users train (torch_networks.cc).
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

// The networks that PyTorch's users train, with the parameters that torchvision's and HuggingFace
// transformers' modules register, by their names and in the order in which a forward pass uses
// them.
//
// Batch normalisation has weight and bias. Dropout is left out, as of those above.
namespace stepcast::torch {

// torchvision.models.resnet18, 50, 101 and 152, 224 x 224: He et al., "Deep residual learning for
// image recognition", 2015, with the stride of a bottleneck block at its 3 x 3 convolution (v1.5).
Architecture ResNet18();
Architecture ResNet50();
Architecture ResNet101();
Architecture ResNet152();

// ResNet-18 for CIFAR-10's 32 x 32 images and 10 classes, as kuangliu/pytorch-cifar has it, which
// published measurements of scaling use: a 3 x 3 convolution in place of the first one and its
// pool.
Architecture ResNet18Cifar();

// torchvision.models.vgg16 and 19, 224 x 224: Simonyan and Zisserman, "Very deep convolutional
// networks for large-scale image recognition", 2014, columns D and E.
Architecture Vgg16();
Architecture Vgg19();

// timm's xception, 299 x 299: Chollet, "Xception: Deep learning with depthwise separable
// convolutions", 2017, Fig. 5. A block's projection runs after its convolutions.
Architecture Xception();

// torchvision.models.inception_v3, 299 x 299, with its auxiliary head, which is the default of
// training it: Szegedy et al., "Rethinking the Inception architecture for computer vision", 2015.
Architecture InceptionV3();

// transformers' BertForQuestionAnswering, bert-base-uncased: Devlin et al., "BERT: Pre-training of
// deep bidirectional transformers for language understanding", 2018; 12 layers of 768, 12 heads.
// An example is a text of 384 tokens, the question answering scripts' maximum. No pooler.
Architecture BertBase();

// transformers' GPT2LMHeadModel, gpt2: Radford et al., "Language models are unsupervised multitask
// learners", 2019; 12 layers of 768, 12 heads. An example is a text of 1,024 tokens, all that it
// has positions for. The last layer's weights are those of the token embedding.
Architecture Gpt2Small();

}  // namespace stepcast::torch
