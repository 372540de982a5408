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
  const ProfileMark begin = {
      .time_ns = 1000, .data_ns = 50, .step_ns = 100, .op_ns = {10, 20, 30}, .op_runs = {1, 1, 1}};
  const ProfileMark end = {.time_ns = 4'001'000,
                           .data_ns = 1'000'050,
                           .step_ns = 3'000'100,
                           .op_ns = {200'010, 400'020, 2'000'030},
                           .op_runs = {3, 3, 3}};
  const Profile profile =
      make_profile(program, begin, end, 2,
                   {{"relu", "a", 5e-5, 0}, {"relu", "b", 1e-4, 1}, {"elementwise_add", "sum", 1e-3, 2}});
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

TEST_CASE("hunt 127: an op that runs only in the last of several merged steps counts for its share of them") {
  const Program program = parse_program(kProgram, all_ops());
  const ProfileMark begin = {.op_ns = {0, 0, 0}, .op_runs = {0, 0, 0}};
  const ProfileMark end = {
      .time_ns = 8'000'000, .op_ns = {400'000, 400'000, 4'000'000}, .op_runs = {8, 8, 2}};
  const Profile profile = make_profile(program, begin, end, 8, {{"elementwise_add", "sum", 1e-3, 2}});
  CHECK(profile.kinds[0].type == "elementwise_add");
  CHECK(profile.kinds[0].ops == doctest::Approx(0.25));
  CHECK(profile.kinds[0].seconds == doctest::Approx(5e-4));
  CHECK(profile.kinds[0].alone_seconds == doctest::Approx(2.5e-4));
  CHECK(profile.kinds[0].bytes == doctest::Approx(750));
  CHECK(profile.kinds[1].ops == 2);
  CHECK(describe(profile).find("elementwise_add                     0.25      0.50") != std::string::npos);
}

TEST_CASE("an op that ran in none of the steps has no row in a profile") {
  const Program program = parse_program(kProgram, all_ops());
  const ProfileMark end = {.time_ns = 8'000'000, .op_ns = {400'000, 400'000, 0}, .op_runs = {8, 8, 0}};
  const Profile profile = make_profile(program, {.op_ns = {0, 0, 0}, .op_runs = {0, 0, 0}}, end, 8, {});
  REQUIRE(profile.kinds.size() == 1);
  CHECK(profile.kinds[0].type == "relu");
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
