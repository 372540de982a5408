#include "launch/plan/gpu_mapping.h"

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch::gpu_mapping_test {
namespace {

using Ids = std::vector<std::string>;
using Shares = std::vector<std::vector<int>>;

TEST_CASE("without any choice every GPU gets one worker") {
  const GpuMapping mapping = map_gpus({.present = 3});
  CHECK(mapping.visible == Ids{"0", "1", "2"});
  CHECK(mapping.of_worker == Shares{{0}, {1}, {2}});
}

TEST_CASE("chosen GPUs become the visible ones, and workers pick by index") {
  const GpuMapping mapping = map_gpus({.gpus = "4, 5", .present = 8});
  CHECK(mapping.visible == Ids{"4", "5"});
  CHECK(mapping.of_worker == Shares{{0}, {1}});
  CHECK(mapping.note.empty());
}

TEST_CASE("what the environment makes visible is kept word for word") {
  const GpuMapping mapping = map_gpus({.visible = "GPU-8932f937,MIG-41b5", .present = 8});
  CHECK(mapping.visible == Ids{"GPU-8932f937", "MIG-41b5"});
  CHECK(mapping.of_worker == Shares{{0}, {1}});
}

TEST_CASE("an empty CUDA_VISIBLE_DEVICES is as good as none") {
  CHECK(map_gpus({.visible = "", .present = 2}).visible == Ids{"0", "1"});
}

TEST_CASE("chosen GPUs must be visible, and the change of numbers is said as the original says it") {
  const GpuMapping mapping = map_gpus({.gpus = "4,5", .visible = "4,5", .present = 8});
  CHECK(mapping.visible == Ids{"4", "5"});
  CHECK(
      mapping.note ==
      "Change selected_gpus into reletive values. --ips:4,5 will change into relative_ips:[0, 1] according to your "
      "CUDA_VISIBLE_DEVICES:['4', '5']");
  CHECK_THROWS_WITH_AS(map_gpus({.gpus = "3", .visible = "4,5", .present = 8}),
                       "--gpus lists 3, but CUDA_VISIBLE_DEVICES is 4,5", Error);
}

TEST_CASE("several GPUs of one worker lie side by side") {
  CHECK(map_gpus({.present = 4, .workers = 2}).of_worker == Shares{{0, 1}, {2, 3}});
  CHECK_THROWS_WITH_AS(map_gpus({.present = 4, .workers = 3}),
                       "--nproc_per_node is 3, which does not divide the 4 devices", Error);
  CHECK_THROWS_AS(map_gpus({.present = 2, .workers = 4}), Error);
}

TEST_CASE("GPUs that are listed twice, empty or absent are refused") {
  CHECK_THROWS_WITH_AS(map_gpus({.gpus = "0,1,0", .present = 2}), "--gpus lists 0 twice", Error);
  CHECK_THROWS_WITH_AS(map_gpus({.gpus = "0,,1", .present = 2}),
                       "--gpus has an empty item, must be ids like 0,1,2,3", Error);
  CHECK_THROWS_WITH_AS(map_gpus({.gpus = "2", .present = 2}),
                       "--gpus lists 2, this machine has the GPUs 0 to 1", Error);
}

TEST_CASE("a range of GPUs is refused with the list to write, and ids with a dash stay ids") {
  CHECK_THROWS_WITH_AS(map_gpus({.gpus = "0-3", .present = 4}), "--gpus lists 0-3, wanted 0,1,2,3", Error);
  CHECK_THROWS_WITH_AS(map_gpus({.gpus = "0,2-3", .visible = "0,1,2,3", .present = 4}),
                       "--gpus lists 2-3, wanted 2,3", Error);
  CHECK(map_gpus({.gpus = "GPU-8932f937-1,MIG-41b5-2", .present = 8}).visible ==
        Ids{"GPU-8932f937-1", "MIG-41b5-2"});
}

}  // namespace
}  // namespace fleetrun::launch::gpu_mapping_test
