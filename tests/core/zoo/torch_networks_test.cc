#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/zoo/networks.h"

namespace stepcast::torch_networks_test {
namespace {

using ::testing::ElementsAre;

std::vector<Variable> VariablesOf(const Architecture& network) {
  std::vector<Variable> variables;
  for (const Layer& layer : network.layers)
    variables.insert(variables.end(), layer.variables.begin(), layer.variables.end());
  return variables;
}

struct Published {
  std::string model;
  Architecture (*build)();
  size_t tensors;
  int64_t parameters;
  double multiply_adds;  // of one forward pass
};

class TorchNetworkTest : public ::testing::TestWithParam<Published> {};

TEST_P(TorchNetworkTest, HasTheParametersOfTheModule) {
  const std::vector<Variable> variables = VariablesOf(GetParam().build());
  int64_t parameters = 0;
  for (const Variable& variable : variables) parameters += variable.elements;
  EXPECT_EQ(variables.size(), GetParam().tensors);
  EXPECT_EQ(parameters, GetParam().parameters);
}

// Normalisation, activations, pools and softmax are what is above the count of multiply-adds.
TEST_P(TorchNetworkTest, ForwardArithmeticIsWhatIsPublishedOrMore) {
  double flops = 0;
  for (const Layer& layer : GetParam().build().layers) flops += layer.forward_flops;
  EXPECT_GE(flops / 2, GetParam().multiply_adds * 0.997);
  EXPECT_LE(flops / 2, GetParam().multiply_adds * 1.04);
}

TEST_P(TorchNetworkTest, BackwardIsTwiceForwardWhereThereAreVariables) {
  const Architecture network = GetParam().build();
  double forward = 0;
  double backward = 0;
  for (const Layer& layer : network.layers) {
    forward += layer.forward_flops;
    backward += layer.backward_flops;
    if (!layer.variables.empty() && !layer.inputs.empty()) {
      EXPECT_EQ(layer.backward_flops, 2 * layer.forward_flops) << layer.name;
    }
  }
  EXPECT_GT(backward, 1.9 * forward);
  EXPECT_LE(backward, 2 * forward);
}

TEST_P(TorchNetworkTest, InputsAreEarlierLayersAndNamesAreUnique) {
  const Architecture network = GetParam().build();
  std::vector<std::string> names;
  for (size_t i = 0; i < network.layers.size(); ++i) {
    names.push_back(network.layers[i].name);
    for (const int32_t input : network.layers[i].inputs)
      EXPECT_LT(input, static_cast<int32_t>(i)) << names.back();
  }
  for (const Variable& variable : VariablesOf(network)) names.push_back(variable.name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

// Multiply-adds of a transformer's layer: its four dense layers of 12 hidden^2 weights together, at
// each token, and the two products of attention.
constexpr double TransformerLayers(double tokens) {
  return 12 * (12 * 768. * 768 * tokens + 2 * tokens * tokens * 768);
}

// Parameters and, for torchvision's networks, multiply-adds: those of the weights' documentation;
// Xception's parameters are those of its paper's Table 3, its multiply-adds timm's (of Inception-v3
// the parameters with its auxiliary head); of the ResNet-18 for CIFAR the multiply-adds are summed
// by hand. BERT without its pooler, with two outputs a token; GPT-2's last layer has the token
// embedding's weights.
INSTANTIATE_TEST_SUITE_P(
    All, TorchNetworkTest,
    ::testing::Values(Published{"resnet18", torch::ResNet18, 62, 11'689'512, 1.81e9},
                      Published{"resnet18_cifar", torch::ResNet18Cifar, 62, 11'173'962, 0.556e9},
                      Published{"resnet50", torch::ResNet50, 161, 25'557'032, 4.09e9},
                      Published{"resnet101", torch::ResNet101, 314, 44'549'160, 7.8e9},
                      Published{"resnet152", torch::ResNet152, 467, 60'192'808, 11.51e9},
                      Published{"vgg16", torch::Vgg16, 32, 138'357'544, 15.47e9},
                      Published{"vgg19", torch::Vgg19, 38, 143'667'240, 19.63e9},
                      Published{"xception", torch::Xception, 156, 22'855'952, 8.4e9},
                      Published{"inception_v3", torch::InceptionV3, 292, 27'161'264, 5.71e9},
                      Published{"bert_base", torch::BertBase, 199, 108'893'186,
                                TransformerLayers(384)},
                      Published{"gpt2_small", torch::Gpt2Small, 148, 124'439'808,
                                TransformerLayers(1024) + 1024 * 768. * 50257}),
    [](const auto& published) { return published.param.model; });

std::vector<std::string> NamesOf(const std::vector<Variable>& variables, size_t first,
                                 size_t count) {
  std::vector<std::string> names;
  for (size_t i = first; i < first + count; ++i) names.push_back(variables[i].name);
  return names;
}

TEST(TorchNetworksTest, VariablesHaveTheModulesNamesInTheOrderOfRegistration) {
  const std::vector<Variable> resnet = VariablesOf(torch::ResNet50());
  EXPECT_THAT(NamesOf(resnet, 0, 4),
              ElementsAre("conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight"));
  EXPECT_THAT(NamesOf(resnet, 9, 7),
              ElementsAre("layer1.0.conv3.weight", "layer1.0.bn3.weight", "layer1.0.bn3.bias",
                          "layer1.0.downsample.0.weight", "layer1.0.downsample.1.weight",
                          "layer1.0.downsample.1.bias", "layer1.1.conv1.weight"));
  EXPECT_THAT(NamesOf(resnet, 159, 2), ElementsAre("fc.weight", "fc.bias"));
  EXPECT_THAT(NamesOf(VariablesOf(torch::Vgg16()), 24, 8),
              ElementsAre("features.28.weight", "features.28.bias", "classifier.0.weight",
                          "classifier.0.bias", "classifier.3.weight", "classifier.3.bias",
                          "classifier.6.weight", "classifier.6.bias"));
  const std::vector<Variable> bert = VariablesOf(torch::BertBase());
  EXPECT_THAT(NamesOf(bert, 0, 6),
              ElementsAre("bert.embeddings.word_embeddings.weight",
                          "bert.embeddings.position_embeddings.weight",
                          "bert.embeddings.token_type_embeddings.weight",
                          "bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.bias",
                          "bert.encoder.layer.0.attention.self.query.weight"));
  EXPECT_THAT(NamesOf(VariablesOf(torch::Gpt2Small()), 0, 4),
              ElementsAre("transformer.wte.weight", "transformer.wpe.weight",
                          "transformer.h.0.ln_1.weight", "transformer.h.0.ln_1.bias"));
}

// Layers that both zoos have in common they say alike.
TEST(TorchNetworksTest, ConvolutionsAreThoseOfTheNetworksForParameterServers) {
  const auto matrices = [](const Architecture& network) {
    std::vector<int64_t> sizes;
    for (const Layer& layer : network.layers) {
      if (!layer.variables.empty() && layer.name.find("norm") == std::string::npos &&
          layer.name.find("bn") == std::string::npos &&
          layer.name.find("downsample.1") == std::string::npos)
        sizes.push_back(layer.variables[0].elements);
    }
    std::sort(sizes.begin(), sizes.end());
    return sizes;
  };
  EXPECT_EQ(matrices(torch::ResNet50()), matrices(ResNet50()));
  EXPECT_EQ(matrices(torch::ResNet101()), matrices(ResNet101()));
  EXPECT_EQ(matrices(torch::Vgg16()), matrices(Vgg16()));
  EXPECT_EQ(matrices(torch::Vgg19()), matrices(Vgg19()));
  EXPECT_EQ(matrices(torch::InceptionV3()), matrices(InceptionV3()));
}

}  // namespace
}  // namespace stepcast::torch_networks_test
