#include "runtime/checkpoint/weight_names.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/system/environment.h"
#include "runtime/checkpoint/weights.h"
#include "runtime/compile/build_program.h"
#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::weight_names_test {
namespace {

using Lines = std::set<std::string>;

// "resnet18 conv1.weight [64,3,7,7]": what tests/peers/weight_files.py printed in the framework.
Lines names_in(const std::string& framework, const std::string& model) {
  // The build may have gone to another machine, the file with it.
  const std::string source =
      Environment::of_this_process().get_or("FLEETRUN_TEST_SOURCE", FLEETRUN_SOURCE_DIR);
  std::ifstream file(source + "/tests/runtime/checkpoint/names/" + framework + ".txt");
  Lines lines;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(model + " ") && !line.ends_with(".num_batches_tracked []")) lines.insert(line);
  REQUIRE(lines.size() > 100);
  return lines;
}

Lines names_in(const Safetensors& file, const std::string& model) {
  Lines lines;
  for (const auto& [name, tensor] : file.tensors)
    lines.insert(fmt::format("{} {} {}", model, name, describe(tensor.shape)));
  return lines;
}

// A tensor of 16-bit numbers, each with a value of its own as long as there are values.
void add(Safetensors& file, const std::string& name, const Shape& shape) {
  std::string& bytes = file.changed.emplace_back();
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    bytes.push_back(static_cast<char>(i & 0xff));
    bytes.push_back(static_cast<char>(i >> 8 & 0xff));
  }
  file.tensors[name] = {DType::f16, shape, bytes};
}

Safetensors file_with(const std::vector<std::pair<std::string, Shape>>& tensors) {
  Safetensors file;
  for (const auto& [name, shape] : tensors) add(file, name, shape);
  return file;
}

// The weights of one of our models for 10 classes.
Safetensors file_of(job::ModelName model) {
  job::JobSpec job;
  job.model.name = model;
  job.data.batch_size = 1;
  const Program program =
      build_evaluation_program(job, {.input_shape = {3, 64, 64}, .classes = 10}, all_ops());
  Safetensors file;
  for (const ValueId id : weights_of(program)) add(file, program.value(id).name, program.value(id).shape);
  return file;
}

Safetensors there_and_back(const Safetensors& file) {
  Safetensors copy;
  copy.tensors = file.tensors;  // the bytes stay with `file`
  return with_names(with_names(std::move(copy), WeightNames::paddle), WeightNames::torchvision);
}

void check_same(const Safetensors& found, const Safetensors& wanted) {
  CHECK(found.tensors.size() == wanted.tensors.size());
  for (const auto& [name, tensor] : wanted.tensors) {
    CAPTURE(name);
    REQUIRE(found.tensors.count(name) == 1);
    CHECK(found.tensors.at(name).shape == tensor.shape);
    CHECK(found.tensors.at(name).bytes == tensor.bytes);
  }
}

TEST_CASE("resnet18 has the names and shapes of torchvision") {
  CHECK(names_in(file_of(job::ModelName::resnet18), "resnet18") == names_in("torchvision", "resnet18"));
}

TEST_CASE("models get the names and shapes of paddle.vision, and their own ones back") {
  for (const auto& [model, name] : {std::pair{job::ModelName::resnet18, "resnet18"},
                                    std::pair{job::ModelName::mobilenet_v1, "mobilenet_v1"}}) {
    CAPTURE(name);
    const Safetensors ours = file_of(model);
    Safetensors copy;
    copy.tensors = ours.tensors;
    const Safetensors paddle = with_names(std::move(copy), WeightNames::paddle);
    CHECK(names_in(paddle, name) == names_in("paddle", name));
    CHECK(names_of(paddle) == WeightNames::paddle);
    CHECK(names_of(ours) == WeightNames::torchvision);
    check_same(there_and_back(ours), ours);
  }
}

TEST_CASE("the weight of a linear layer is transposed for PaddlePaddle") {
  const Safetensors file =
      with_names(file_with({{"fc.weight", {2, 3}}, {"fc.bias", {2}}}), WeightNames::paddle);
  CHECK(file.tensors.at("fc.weight").shape == Shape{3, 2});
  CHECK(file.tensors.at("fc.weight").as<std::uint16_t>() == std::vector<std::uint16_t>{0, 3, 1, 4, 2, 5});
  CHECK(file.tensors.at("fc.bias").shape == Shape{2});
  CHECK(file.metadata.at("format") == "paddle");
}

TEST_CASE("without running statistics, the shapes of a linear layer tell whose names a file has") {
  CHECK(names_of(file_with({{"fc.weight", {2, 3}}, {"fc.bias", {2}}})) == WeightNames::torchvision);
  CHECK(names_of(file_with({{"fc.weight", {3, 2}}, {"fc.bias", {2}}})) == WeightNames::paddle);
  CHECK(names_of(
            file_with({{"f1.weight", {4, 4}}, {"f1.bias", {4}}, {"f2.weight", {4, 2}}, {"f2.bias", {2}}})) ==
        WeightNames::paddle);
  CHECK(names_of({}) == WeightNames::torchvision);
}

TEST_CASE("a network of square layers goes to PaddlePaddle and back") {
  const Safetensors ours = file_with({{"fc.weight", {3, 3}}, {"fc.bias", {3}}});
  check_same(there_and_back(ours), ours);
}

TEST_CASE("PaddlePaddle gets no counters of PyTorch's batch norms") {
  Safetensors file = file_with({{"bn1.running_mean", {2}}, {"bn1.num_batches_tracked", {}}});
  CHECK(names_in(with_names(std::move(file), WeightNames::paddle), "x") == Lines{"x bn1._mean [2]"});
}

TEST_CASE("names that a file already has stay, with all its tensors") {
  Safetensors file =
      file_with({{"bn1.running_mean", {2}}, {"bn1.num_batches_tracked", {}}, {"other", {2, 2}}});
  CHECK(with_names(std::move(file), WeightNames::torchvision).tensors.size() == 3);
}

TEST_CASE("a weight with two sizes and no bias cannot be converted") {
  check_error(ErrorKind::data, "\"words.weight\" has two sizes, but its layer has no bias", [] {
    with_names(file_with({{"bn1.running_mean", {2}}, {"words.weight", {5, 2}}}), WeightNames::paddle);
  });
}

}  // namespace
}  // namespace fleetrun::runtime::weight_names_test
