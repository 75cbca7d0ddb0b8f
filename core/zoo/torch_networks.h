// The networks that PyTorch's users train, with the parameters that torchvision's and HuggingFace
// transformers' modules register, by their names and in the order in which a forward pass uses
// them.
//
// Batch normalisation has weight and bias. Dropout is left out, as in networks.h.
#pragma once

#include "core/zoo/architecture_builder.h"

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
