#include "runtime/models/model.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "runtime/compile/build_program.h"

namespace fleetrun::runtime::model_test {
namespace {

struct Case {
  job::ModelName name;
  int side;
  int classes;
  std::int64_t parameters;
  std::size_t gradients;
};

Program training_program(job::ModelName name, int side, int classes) {
  job::JobSpec job;
  job.model.name = name;
  job.data.batch_size = 2;
  return build_training_program(job, {.input_shape = {3, side, side}, .classes = classes}, all_ops(), {});
}

std::int64_t parameters_of(const Program& program) {
  std::int64_t count = 0;
  for (const ValueId id : program.of_kind(ValueKind::parameter)) count += count_of(program.value(id).shape);
  return count;
}

TEST_CASE("models have the parameters of torchvision's and of their papers, and a gradient for each") {
  const std::vector<Case> cases = {
      {job::ModelName::resnet18, 224, 1000, 11'689'512, 62},
      {job::ModelName::resnet34, 224, 1000, 21'797'672, 110},
      {job::ModelName::resnet50, 224, 1000, 25'557'032, 161},
      {job::ModelName::resnet50, 224, 102, 23'717'030, 161},
      {job::ModelName::resnet101, 224, 1000, 44'549'160, 314},
      {job::ModelName::resnet152, 224, 1000, 60'192'808, 467},
      {job::ModelName::vgg16, 224, 1000, 138'357'544, 32},
      {job::ModelName::mobilenet_v1, 224, 1000, 4'231'976, 83},
      {job::ModelName::resnet20, 32, 10, 272'474, 65},
      {job::ModelName::lenet, 28, 10, 32 * 75 + 32 + 64 * 800 + 64 + 3136 * 512 + 512 + 5130, 8},
  };
  for (const Case& model : cases) {
    const Program program = training_program(model.name, model.side, model.classes);
    CAPTURE(model.parameters);
    CHECK(parameters_of(program) == model.parameters);
    CHECK(program.of_kind(ValueKind::gradient).size() == model.gradients);
  }
}

TEST_CASE("parameters have torchvision's names") {
  const Program resnet = training_program(job::ModelName::resnet50, 224, 10);
  for (const char* name : {"conv1.weight", "bn1.bias", "bn1.running_var", "layer1.0.downsample.0.weight",
                           "layer4.2.bn3.weight", "fc.bias"})
    CHECK_MESSAGE(resnet.find(name) != kNone, name);
  const Program vgg = training_program(job::ModelName::vgg16, 224, 10);
  for (const char* name :
       {"features.0.weight", "features.28.bias", "classifier.0.weight", "classifier.6.bias"})
    CHECK_MESSAGE(vgg.find(name) != kNone, name);
}

TEST_CASE("a model says which images it wants when it cannot take the job's") {
  CHECK_THROWS_WITH_AS(training_program(job::ModelName::vgg16, 64, 10),
                       "model.name: vgg16 wants images with sides of 224 to 255 pixels, found 64 x 64",
                       Error);
  CHECK_THROWS_AS(training_program(job::ModelName::lenet, 2, 10), Error);
}

}  // namespace
}  // namespace fleetrun::runtime::model_test
