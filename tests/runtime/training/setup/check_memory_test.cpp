#include "runtime/training/setup/check_memory.h"

#include <doctest/doctest.h>

#include "runtime/data/expect_error.h"

namespace fleetrun::runtime::check_memory_test {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

job::JobSpec lenet_with(int batch) {
  job::JobSpec job;
  job.model.name = job::ModelName::lenet;
  job.data.batch_size = batch;
  return job;
}

Error refusal_of(const job::JobSpec& job, int ranks, std::int64_t memory) {
  const RankEnv env = {.world_size = ranks, .local_size = ranks};
  return error_of([&] { check_memory(job, {{3, 32, 32}, 10}, env, {.total = memory, .free = memory / 2}); });
}

void check_fits(const job::JobSpec& job, int ranks, std::int64_t memory) {
  const RankEnv env = {.world_size = ranks, .local_size = ranks};
  CHECK_NOTHROW(check_memory(job, {{3, 32, 32}, 10}, env, {.total = memory, .free = memory / 2}));
}

TEST_CASE("a batch that cannot fit is refused with what it needs, what there is, and one that fits") {
  const Error error = refusal_of(lenet_with(1'000'000), 1, 16 * kGiB);
  CHECK(error.kind() == ErrorKind::config);
  CHECK_MESSAGE(error.message().starts_with("data.batch_size is 1000000: a training step needs about "),
                error.message());
  CHECK_MESSAGE(error.message().ends_with(" GiB of memory, but this host has 16.0 GiB (8.0 GiB of it free)"),
                error.message());
  REQUIRE_MESSAGE(error.hint().starts_with("about data.batch_size="), error.hint());
  const int fits = std::stoi(error.hint().substr(22));
  CHECK(fits > 10'000);
  check_fits(lenet_with(fits), 1, 16 * kGiB);
  check_fits(lenet_with(32), 8, 16 * kGiB);
}

TEST_CASE("the ranks of a host share its memory, and a global batch is named as such") {
  const Error error = refusal_of(lenet_with(200'000), 8, 16 * kGiB);
  CHECK_MESSAGE(error.message().find(" GiB of memory for 8 ranks, ") != std::string::npos, error.message());
  job::JobSpec job = lenet_with(32);
  job.train.global_batch = 1'600'000;
  const Error global = refusal_of(job, 8, 16 * kGiB);
  CHECK_MESSAGE(global.message().starts_with("train.global_batch is 1600000: "), global.message());
  CHECK(global.hint().starts_with("about train.global_batch="));
}

TEST_CASE("where not one sample fits, no batch is advised") {
  CHECK(refusal_of(lenet_with(32), 1, kGiB / 2000).hint() ==
        "a smaller model, smaller images (image_size) or strategy.recompute=true need less");
}

}  // namespace
}  // namespace fleetrun::runtime::check_memory_test
