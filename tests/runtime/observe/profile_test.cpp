#include "runtime/observe/profile.h"

#include <doctest/doctest.h>

#include "runtime/graph/program_text.h"

namespace fleetrun::runtime::profile_test {
namespace {

const std::string kProgram =
    "feed x f32[250]\n"
    "activation a f32[250]\n"
    "activation b f32[250]\n"
    "activation sum f32[250]\n"
    "relu x=x -> y=a {} forward\n"
    "relu x=a -> y=b {} forward\n"
    "elementwise_add x=a y=b -> sum=sum {} forward\n";

TEST_CASE("a profile sums what the ops of a kind took, per step, the longest kind first") {
  const Program program = parse_program(kProgram, all_ops());
  const ProfileMark begin = {.time_ns = 1000, .data_ns = 50, .step_ns = 100, .op_ns = {10, 20, 30}};
  const ProfileMark end = {.time_ns = 4'001'000,
                           .data_ns = 1'000'050,
                           .step_ns = 3'000'100,
                           .op_ns = {200'010, 400'020, 2'000'030}};
  const Profile profile = make_profile(
      program, begin, end, 2, {{"relu", "a", 5e-5}, {"relu", "b", 1e-4}, {"elementwise_add", "sum", 1e-3}});
  CHECK(profile.seconds == doctest::Approx(2e-3));
  CHECK(profile.data_seconds == doctest::Approx(5e-4));
  CHECK(profile.idle_seconds == doctest::Approx(2e-4));
  REQUIRE(profile.kinds.size() == 2);
  CHECK(profile.kinds[0].type == "elementwise_add");
  CHECK(profile.kinds[0].seconds == doctest::Approx(1e-3));
  CHECK(profile.kinds[0].bytes == 3000);
  CHECK(profile.kinds[1].ops == 2);
  CHECK(profile.kinds[1].seconds == doctest::Approx(3e-4));
  CHECK(profile.kinds[1].alone_seconds == doctest::Approx(1.5e-4));
  CHECK(profile.kinds[1].bytes == 4000);
}

TEST_CASE("a profile is reported as a table, with what the ops by themselves would reach") {
  const Profile profile = {.steps = 3,
                           .seconds = 0.1,
                           .data_seconds = 0.001,
                           .idle_seconds = 0.002,
                           .kinds = {{"conv2d", 53, 0.06, 0.054, 400'000'000},
                                     {"reorder", 2, 0.02, 0.018, 20'000'000},
                                     {"all_reduce", 5, 0.01, 0, 100'000'000}}};
  CHECK(describe(profile) ==
        "profile of 3 steps, 100.0 ms each:\n"
        "kind of op                           ops        ms   share  alone ms of limit  MB moved    GB/s\n"
        "conv2d                                53     60.00   60.0%     54.00     0.90     400.0     6.7\n"
        "reorder                                2     20.00   20.0%     18.00     0.90      20.0     1.0\n"
        "all_reduce                             5     10.00   10.0%                        100.0    10.0\n"
        "reorders: 2 a step, 20.0 MB\n"
        "ops but collectives: 0.90 of their limit; idle in steps: 2.00 %, waiting for batches: 1.00 %\n");
}

}  // namespace
}  // namespace fleetrun::runtime::profile_test
