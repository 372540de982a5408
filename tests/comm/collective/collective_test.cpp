#include "comm/collective/collective.h"

#include <doctest/doctest.h>

#include <array>

#include "comm/collective/solo.h"
#include "support/run_world.h"

namespace fleetrun::comm::collective_test {
namespace {

TEST_CASE("a communicator counts the bytes that a rank sends if collectives go round a ring") {
  testing::run_world(4, [](Communicator& communicator) {
    std::array<float, 8> values{};
    std::array<float, 2> mine{};
    const BufferView all = {values.data(), values.size(), DType::f32},
                     own = {mine.data(), mine.size(), DType::f32};
    CHECK(communicator.sent_bytes() == 0);
    communicator.all_reduce(all, ReduceOp::sum);
    CHECK(communicator.sent_bytes() == 48);  // 2 * 3/4 of 32
    communicator.all_gather(own, all);
    CHECK(communicator.sent_bytes() == 72);
    communicator.broadcast(all, 0);
    CHECK(communicator.sent_bytes() == 96);
    communicator.barrier();
    CHECK(communicator.sent_bytes() == 96);
  });
}

TEST_CASE("one rank sends nothing") {
  const auto solo = make_solo();
  float value = 1;
  solo->all_reduce({&value, 1, DType::f32}, ReduceOp::sum);
  CHECK(solo->sent_bytes() == 0);
}

}  // namespace
}  // namespace fleetrun::comm::collective_test
