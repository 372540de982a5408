#include "launch/console/console_plan.h"

#include <doctest/doctest.h>

#include "launch/cli/command_line.h"

namespace fleetrun::launch {
namespace {

using Logs = std::vector<ShownLog>;
using enum LogStream;

ConsolePlan plan(const std::vector<std::string>& flags, CalledAs called_as = CalledAs::fleetrun) {
  std::vector<std::string> words = flags;
  words.emplace_back("train.py");
  return plan_console(parse_launch_options(words, {}, called_as).options, 2);
}

TEST_CASE("without flags the first rank is shown, stdout and stderr as one log") {
  CHECK(plan({}).logs == Logs{{0, both}});
  CHECK(plan({}).apart == std::vector<bool>{false, false});
  CHECK(plan({"--console=all"}).logs == Logs{{0, both}, {1, both}});
  CHECK_FALSE(plan({}).shows_many());
  CHECK(plan({"--console=all"}).shows_many());
}

TEST_CASE("what is redirected is not shown, what is teed is shown with its prefix, of all ranks") {
  CHECK(plan({"-r", "3"}).logs.empty());
  CHECK(plan({"-t", "3"}).logs == Logs{{0, both, true}, {1, both, true}});
  CHECK(plan({"-r", "3", "-t", "0:3"}).logs == Logs{{0, both, true}});
  CHECK(plan({"--redirects=0:3"}).logs == Logs{{1, both}});
}

TEST_CASE("where stdout and stderr go different ways, stderr has a log of its own") {
  const ConsolePlan redirected = plan({"-r", "1"});
  CHECK(redirected.logs == Logs{{0, err}, {1, err}});
  CHECK(redirected.apart == std::vector<bool>{true, true});
  const ConsolePlan some = plan({"-r", "0:2", "-t", "1:1"});
  CHECK(some.logs == Logs{{0, out}, {1, out, true}, {1, err}});
  CHECK(plan({"-r", "1:3"}).apart == std::vector<bool>{false, false});
}

TEST_CASE("a filter of ranks holds for teed streams, too") {
  CHECK(plan({"-t", "3", "--local-ranks-filter=1"}).logs == Logs{{1, both, true}});
  CHECK(plan({"--local_ranks_filter=0,1"}).logs == Logs{{0, both}, {1, both}});
}

TEST_CASE("called torchrun, all ranks are shown, and stderr stays stderr") {
  CHECK(plan({"--nproc-per-node=2"}, CalledAs::torchrun).logs ==
        Logs{{0, out}, {0, err}, {1, out}, {1, err}});
}

}  // namespace
}  // namespace fleetrun::launch
