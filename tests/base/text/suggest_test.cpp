#include "base/text/suggest.h"

#include <doctest/doctest.h>

namespace fleetrun::suggest_test {
namespace {

const std::vector<std::string> kNames = {"epochs", "max_steps", "seed", "log_every", "--nproc_per_node"};

TEST_CASE("one slip of typing finds the name") {
  CHECK(closest("epoch", kNames) == "epochs");    // missing
  CHECK(closest("epochss", kNames) == "epochs");  // too many
  CHECK(closest("epachs", kNames) == "epochs");   // wrong
  CHECK(closest("epohcs", kNames) == "epochs");   // swapped
  CHECK(closest("sede", kNames) == "seed");       // swapped, in a short name
  CHECK(closest("log_evrey", kNames) == "log_every");
}

TEST_CASE("case and dashes cost nothing") {
  CHECK(closest("Max-Steps", kNames) == "max_steps");
  CHECK(closest("--nproc-per-node", kNames) == "--nproc_per_node");
}

TEST_CASE("a name that was cut short is found, unless it is too short to tell") {
  CHECK(closest("--nproc", kNames) == "--nproc_per_node");
  CHECK(closest("--np", kNames) == std::nullopt);
}

TEST_CASE("the nearest of several wins, the first of equals") {
  CHECK(closest("beta", {"beta1", "beta2"}) == "beta1");
  CHECK(closest("labels", {"label", "labels_"}) == "label");
  CHECK(closest("fuse_bn_act_op", {"fuse_bn_add_act_ops", "fuse_bn_act_ops"}) == "fuse_bn_act_ops");
}

TEST_CASE("what resembles nothing has no suggestion") {
  CHECK(closest("wibble", kNames) == std::nullopt);
  CHECK(closest("", kNames) == std::nullopt);
  CHECK(closest("x", kNames) == std::nullopt);
  CHECK(closest("gpu", {"cpu", "cuda"}) == std::nullopt);
  CHECK(closest("epochs", {}) == std::nullopt);
  CHECK(closest(std::string(100'000, 'e'), kNames) == std::nullopt);
}

}  // namespace
}  // namespace fleetrun::suggest_test
