#include "launch/plan/world_lists.h"

#include <doctest/doctest.h>

#include "launch/host/limits.h"

namespace fleetrun::launch::world_lists_test {
namespace {

const std::string kFile = "/run/log/endpoints.log";

std::string filled(const std::string& name, std::size_t bytes) {
  return std::string(bytes - name.size() - 1, '1');
}

TEST_CASE("lists that fit are variables, and no file is named") {
  Environment environment;
  environment.set("FLEETRUN_TRAINER_ENDPOINTS_FILE", "of another run");
  CHECK(write_world_lists({"a:1,b:2", "0,1:2"}, kFile, environment).empty());
  CHECK(environment.variables() ==
        Variables{{"PADDLE_TRAINER_ENDPOINTS", "a:1,b:2"}, {"PADDLE_WORLD_DEVICE_IDS", "0,1:2"}});
  CHECK(describe_left_out({}, kFile) == "");
}

TEST_CASE("the longest list that Linux passes on is a variable, and with one more byte it is left out") {
  Environment environment;
  const std::string longest = filled("PADDLE_TRAINER_ENDPOINTS", kLongestString);
  CHECK(write_world_lists({longest, "0"}, kFile, environment).empty());
  const Variables left_out = write_world_lists({longest + "1", "0"}, kFile, environment);
  CHECK(left_out == Variables{{"PADDLE_TRAINER_ENDPOINTS", longest + "1"}});
  CHECK(environment.variables() ==
        Variables{{"FLEETRUN_TRAINER_ENDPOINTS_FILE", kFile}, {"PADDLE_WORLD_DEVICE_IDS", "0"}});
  CHECK(
      describe_left_out(left_out, "log/endpoints.log") ==
      "the workers do not get PADDLE_TRAINER_ENDPOINTS (131072 bytes): Linux passes on 131071 bytes at most; the endpoints are in log/endpoints.log, which FLEETRUN_TRAINER_ENDPOINTS_FILE names");
}

TEST_CASE("a list of devices can be too long, too") {
  Environment environment;
  const std::string devices = filled("PADDLE_WORLD_DEVICE_IDS", kLongestString + 1);
  CHECK(write_world_lists({"a:1", devices}, kFile, environment).size() == 1);
  CHECK(environment.variables() == Variables{{"PADDLE_TRAINER_ENDPOINTS", "a:1"}});
  CHECK(write_world_lists({devices, devices}, kFile, environment).size() == 2);
  CHECK(environment.variables() == Variables{{"FLEETRUN_TRAINER_ENDPOINTS_FILE", kFile}});
}

}  // namespace
}  // namespace fleetrun::launch::world_lists_test
