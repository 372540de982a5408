#include "runtime/compile/same_collectives.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::runtime::same_collectives_test {
namespace {

// A sum of gradients of that many elements, after an op on a batch.
Program with_sum(std::int64_t batch, std::int64_t elements, const std::string& layout = "") {
  Program program;
  const ValueId image = program.add_value({.name = "image", .shape = {batch, 3}, .kind = ValueKind::feed});
  const ValueId gradient =
      program.add_value({.name = "w@GRAD", .shape = {elements}, .kind = ValueKind::gradient});
  program.value(gradient).layout.name = layout;
  program.ops.push_back({.type = "fc", .inputs = {image}, .outputs = {gradient}, .role = Role::backward});
  program.ops.push_back({.type = "all_reduce",
                         .inputs = {gradient},
                         .outputs = {gradient},
                         .attributes = {{"op", std::string("sum")}},
                         .role = Role::communication});
  return program;
}

TEST_CASE("programs for different batches communicate alike") {
  CHECK_NOTHROW(check_same_collectives(with_sum(22, 8), with_sum(21, 8)));
}

TEST_CASE("a collective of another size, in another layout or too many is found") {
  CHECK_THROWS_WITH_AS(
      check_same_collectives(with_sum(22, 8), with_sum(21, 9)),
      "ranks with one sample less would communicate differently: collective 0 is all_reduce w@GRAD "
      "f32[9] op=\"sum\", and all_reduce w@GRAD f32[8] op=\"sum\" on the other ranks",
      Error);
  CHECK_THROWS_AS(check_same_collectives(with_sum(22, 8), with_sum(21, 8, "AB16b")), Error);
  Program more = with_sum(21, 8);
  more.ops.push_back(more.ops.back());
  CHECK_THROWS_WITH_AS(
      check_same_collectives(with_sum(22, 8), more),
      "ranks with one sample less would communicate differently: collective 1 is all_reduce w@GRAD "
      "f32[8] op=\"sum\", and nothing on the other ranks",
      Error);
}

}  // namespace
}  // namespace fleetrun::runtime::same_collectives_test
