#include "runtime/passes/shared/gradient_groups.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "runtime/graph/program_text.h"
#include "support/built_model.h"

namespace fleetrun::runtime::gradient_groups_test {
namespace {

std::vector<std::size_t> sizes(const GradientGroups& groups) {
  std::vector<std::size_t> sizes;
  for (const auto& group : groups) sizes.push_back(group.size());
  return sizes;
}

// FleetX's example: ResNet-50 with 102 classes.
const Program& resnet50() {
  static const Program program = test::build_model(job::ModelName::resnet50, 102, 1).program;
  return program;
}

GradientGroups groups_of_resnet50(const GroupLimits& limits) {
  return gradient_groups(resnet50(), all_ops(), limits);
}

TEST_CASE("ResNet-50 has 161 gradients in 160 layers: weights and bias of the last are one") {
  const GradientGroups layers = layer_groups(resnet50(), all_ops());
  CHECK(layers.size() == 160);
  CHECK(layers.front().size() == 2);
}

TEST_CASE("ResNet-50 travels in the published numbers of groups") {
  CHECK(groups_of_resnet50({.megabytes = 32, .gradients = 50}).size() == 5);
  CHECK(groups_of_resnet50({.megabytes = 16, .gradients = 50}).size() == 6);
}

TEST_CASE("no gradient is lost or sent twice, whatever the limits") {
  for (const double megabytes : {-1.0, 0.0, 0.001, 1.0, 7.5, 32.0, 1000.0})
    for (const double gradients : {0.0, 1.0, 2.0, 7.0, 50.0, 1000.0})
      for (const std::optional<double> last : {std::optional<double>(), {0.5}, {1e6}}) {
        std::set<ValueId> seen;
        std::size_t count = 0;
        for (const auto& group : groups_of_resnet50({megabytes, gradients, last})) {
          CHECK_FALSE(group.empty());
          count += group.size();
          seen.insert(group.begin(), group.end());
        }
        CHECK(count == 161);
        CHECK(seen.size() == 161);
      }
}

TEST_CASE("0 MB is one group of everything by name, a negative size a group for each layer") {
  const GradientGroups one = groups_of_resnet50({.megabytes = 0});
  REQUIRE(one.size() == 1);
  std::vector<std::string> names;
  for (const ValueId id : one.front()) names.push_back(resnet50().value(id).name);
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(groups_of_resnet50({.megabytes = -1}).size() == 160);
}

// Four layers of one gradient of 1 MB each, made in the order d, c, b, a.
Program four_megabytes(const std::string& dtype_of_c = "f32") {
  std::string text;
  for (const char* name : {"a", "b", "c", "d"}) {
    const std::string dtype = std::string(name) == "c" ? dtype_of_c : "f32";
    const std::string shape = dtype == "f32" ? "[262144]" : "[524288]";
    text += "parameter " + std::string(name) + " " + dtype + shape + " constant 0.0\n";
    text += "gradient " + std::string(name) + "@GRAD " + dtype + shape + " of " + name + "\n";
  }
  Program program = parse_program(text, all_ops());
  for (const char* name : {"d", "c", "b", "a"})
    program.ops.push_back(
        {.type = "fill", .outputs = {program.find(std::string(name) + "@GRAD")}, .role = Role::backward});
  return program;
}

TEST_CASE("a group is closed by the gradient that reaches the size, or exceeds the count") {
  const Program program = four_megabytes();
  const auto sizes_with = [&](const GroupLimits& limits) {
    return sizes(gradient_groups(program, all_ops(), limits));
  };
  CHECK(sizes_with({.megabytes = 2}) == std::vector<std::size_t>{2, 2});
  CHECK(sizes_with({.megabytes = 1.5}) == std::vector<std::size_t>{2, 2});
  CHECK(sizes_with({.megabytes = 3}) == std::vector<std::size_t>{3, 1});
  CHECK(sizes_with({.megabytes = 100, .gradients = 2}) == std::vector<std::size_t>{3, 1});
  CHECK(sizes_with({.megabytes = 100, .gradients = 1}) == std::vector<std::size_t>{4});
}

TEST_CASE("the gradients that are made last travel by themselves when their size is limited") {
  const Program program = four_megabytes();
  const auto sizes_with = [&](double last) {
    return sizes(gradient_groups(program, all_ops(), {.megabytes = 100, .last_megabytes = last}));
  };
  CHECK(sizes_with(1) == std::vector<std::size_t>{3, 1});
  CHECK(sizes_with(2.5) == std::vector<std::size_t>{2, 2});
  CHECK(sizes_with(0.1) == std::vector<std::size_t>{3, 1});
  CHECK(sizes_with(4) == std::vector<std::size_t>{4});
}

TEST_CASE("a group of two dtypes is split, the one that appears first in front") {
  const Program program = four_megabytes("bf16");
  const GradientGroups groups = gradient_groups(program, all_ops(), {.megabytes = 100});
  REQUIRE(sizes(groups) == std::vector<std::size_t>{3, 1});
  CHECK(program.value(groups[0][0]).name == "d@GRAD");
  CHECK(program.value(groups[1][0]).name == "c@GRAD");
}

}  // namespace
}  // namespace fleetrun::runtime::gradient_groups_test
