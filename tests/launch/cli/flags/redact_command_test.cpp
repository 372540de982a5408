#include "launch/cli/flags/redact_command.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::redact_command_test {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("each form of a flag that sets variables is shown without its secret") {
  CHECK(redact_command({"fleetrun", "--env", "A_TOKEN=a", "--env=1:A_KEY=b", "-x", "A_PASS=c", "-xA_AUTH=d",
                        "--env", "A_TOKEN", "train.py"}) ==
        Words{"fleetrun", "--env", "A_TOKEN=***", "--env=1:A_KEY=***", "-x", "A_PASS=***", "-xA_AUTH=***",
              "--env", "A_TOKEN", "train.py"});
  CHECK(redact_command({"--env"}) == Words{"--env"});
}

TEST_CASE("what is not secret by its name stays visible, and so do other flags") {
  const Words words = {"fleetrun",
                       "--key_file=/home/me/key",
                       "--env=LEVEL=3",
                       "--nccl",
                       "NCCL_DEBUG=INFO",
                       "-m",
                       "train",
                       "--token=a",
                       "-",
                       "--"};
  CHECK(redact_command(words) == words);
}

TEST_CASE("the variables of a job are shown without their secrets") {
  CHECK(redact_command({"job.json", "env.A_TOKEN=a", "train.epochs=2"}) ==
        Words{"job.json", "env.A_TOKEN=***", "train.epochs=2"});
}

}  // namespace
}  // namespace fleetrun::launch::redact_command_test
