#include "launch/console/console_plan.h"

#include <doctest/doctest.h>

#include "base/error/error.h"
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

TEST_CASE("an evaluation shows what the ranks say to people, and keeps their log lines in the logs") {
  CHECK(plan({"--eval=folder"}).logs == Logs{{0, out}});
  CHECK(plan({"--eval=folder"}).apart == std::vector<bool>{true, true});
}

ConsolePlan plan_on(const ConsoleNode& node, std::vector<std::string> words,
                    CalledAs called_as = CalledAs::fleetrun) {
  words.emplace_back("train.py");
  return plan_console(parse_launch_options(words, {}, called_as).options, node);
}

TEST_CASE("among several nodes --console lists ranks of the run: a node shows its own, the first one all") {
  const ConsoleNode first = {0, 2, 6}, second = {2, 2, 6};
  CHECK(plan_on(first, {"--console=0,3,5"}).logs == Logs{{0, both}});
  CHECK(plan_on(first, {"--console=0,3,5"}).elsewhere == std::vector{3, 5});
  CHECK(plan_on(first, {"--console=0,3,5"}).shows_many());
  CHECK_FALSE(plan_on(first, {"--console=3"}).shows_many());
  CHECK(plan_on(second, {"--console=0,3,5"}).logs == Logs{{1, both}});
  CHECK(plan_on(second, {"--console=0,3,5"}).elsewhere.empty());
  CHECK(plan_on(first, {"--console=all"}).elsewhere == std::vector{2, 3, 4, 5});
  CHECK(plan_on(second, {"--console=all"}).logs == Logs{{0, both}, {1, both}});
  CHECK(plan_on(first, {"--console=none"}).elsewhere.empty());
  CHECK_THROWS_WITH_AS(plan_on(second, {"--console=6"}),
                       "--console lists rank 6, the run has the ranks 0 to 5", Error);
  CHECK(plan_on({2, 2, {}}, {"--console=3,6"}).logs ==
        Logs{{1, both}});  // how many there are is not known yet
}

TEST_CASE("among several nodes each shows its first rank by default, and as torchrun all of its own") {
  const ConsoleNode second = {2, 2, 6};
  CHECK(plan_on(second, {}).logs == Logs{{0, both}});
  CHECK(plan_on(second, {"--local_ranks_filter=1"}, CalledAs::torchrun).logs == Logs{{1, out}, {1, err}});
  CHECK(plan_on({0, 2, 6}, {}, CalledAs::torchrun).elsewhere.empty());
}

}  // namespace
}  // namespace fleetrun::launch
