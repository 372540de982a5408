#include "job/keys/job_keys.h"
#include "job/keys/make_key.h"

namespace fleetrun::job {
namespace {

std::vector<Choice> models() {
  return {
      choice("mlp", ModelName::mlp),
      choice("lenet", ModelName::lenet),
      choice("resnet20", ModelName::resnet20),
      choice("resnet18", ModelName::resnet18),
      choice("resnet34", ModelName::resnet34),
      choice("resnet50", ModelName::resnet50),
      choice("resnet101", ModelName::resnet101),
      choice("resnet152", ModelName::resnet152),
      choice("vgg16", ModelName::vgg16),
      choice("mobilenet_v1", ModelName::mobilenet_v1),
  };
}

}  // namespace

Key model_keys() {
  const Section<ModelSpec> model{[](JobSpec& spec) -> ModelSpec& { return spec.model; }};
  return make_object_key(
      "model", "the network",
      {
          make_key("name", model(&ModelSpec::name), "network to train",
                   {.choices = models(), .required = true}),
          make_key("class_dim", model(&ModelSpec::class_dim), "number of classes",
                   {.range = Range::between(2, kMostClasses), .absent = "from the data set"}),
          make_key("input_shape", model(&ModelSpec::input_shape), "[channels, height, width] of an image",
                   {.range = Range::between(1, kLargestSide), .absent = "from the data set"}),
          make_key("hidden", model(&ModelSpec::hidden), "widths of the hidden layers",
                   {.range = Range::between(1, kLargestSide), .only_with = Condition{"name", {"mlp"}}}),
          make_key("dropout", model(&ModelSpec::dropout),
                   "probability of dropping a value before the last layer (vgg16: before each of the last "
                   "two)",
                   {.range = {.least = 0, .most = 1, .below_most = true}}),
          make_path_key(
              "pretrained", model(&ModelSpec::pretrained),
              "safetensors file with the initial weights, under the names of torchvision or PaddlePaddle",
              {.absent = "none"}),
          make_key("new_head", model(&ModelSpec::new_head),
                   "what to do if the last layer of the pretrained file has another number of classes, or "
                   "is missing; error: end the run; auto: make a new last layer",
                   {.choices = {choice("error", NewHead::error), choice("auto", NewHead::automatic)}}),
          make_key("freeze", model(&ModelSpec::freeze),
                   "layers that keep their weights, by name or pattern, such as [\"conv1\", \"layer1*\"]",
                   {}),
      },
      {.required = true});
}

}  // namespace fleetrun::job
