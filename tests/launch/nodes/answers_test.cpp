#include "launch/nodes/answers.h"

#include <sys/socket.h>

#include <doctest/doctest.h>

#include "launch/loop/listen_on.h"

namespace fleetrun::launch::answers_test {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a host answers where something listens, and also where nothing does") {
  Endpoint place = {"127.0.0.1", 0};
  UniqueFd listener = listen_on(place, SOMAXCONN);
  CHECK(answers(place, 10s));
  listener.reset();
  CHECK(answers(place, 10s));
}

TEST_CASE("no host answers at what is not an address") { CHECK_FALSE(answers({"nowhere", 7}, 10s)); }

}  // namespace
}  // namespace fleetrun::launch::answers_test
