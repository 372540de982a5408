#include "launch/cli/flags/peer_values.h"

#include <csignal>

#include <doctest/doctest.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

template <typename Parse>
std::string error_of(Parse parse, const std::string& text) {
  try {
    parse("--flag", text);
  } catch (const Error& error) {
    CHECK(error.exit_code() == 2);
    return error.message();
  }
  return "no error";
}

TEST_CASE("a number of workers is a number, or what the host has") {
  CHECK(parse_worker_count("", "4") == WorkerCount(4));
  CHECK(parse_worker_count("", "auto").of == WorkerCount::Of::automatic);
  CHECK(parse_worker_count("", "gpu").of == WorkerCount::Of::gpus);
  CHECK(parse_worker_count("", "cpu").of == WorkerCount::Of::cores);
  for (const char* text : {"4", "auto", "gpu", "cpu"})
    CHECK(show_value(parse_worker_count("", text)) == text);
}

TEST_CASE("streams are given for all ranks or for some") {
  CHECK(parse_streams("", "3").of(7) == kBothStreams);
  const StreamMap some = parse_streams("", "0:1,2:3");
  CHECK(some.of(0) == kOut);
  CHECK(some.of(1) == kNoStream);
  CHECK(some.of(2) == kBothStreams);
  for (const char* wrong : {"4", "", "x", "0:4", "0:", "-1:2", "0:1,"})
    CHECK(error_of(parse_streams, wrong) ==
          "--flag is \"" + std::string(wrong) +
              "\", must be 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or that by local rank as 0:1,1:2");
}

TEST_CASE("signals are known by their names") {
  CHECK(parse_signals("", "SIGTERM,SIGUSR1").numbers == std::vector<int>{SIGTERM, SIGUSR1});
  CHECK(error_of(parse_signals, "SIGKILL") ==
        "--flag is \"SIGKILL\", must be a list of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2");
}

TEST_CASE("a meeting point may have no port, or 0") {
  CHECK(parse_meeting_point("", "localhost").port == 0);
  CHECK(parse_meeting_point("", "localhost:0").port == 0);
  CHECK(parse_meeting_point("", "10.0.0.1:29400").host == "10.0.0.1");
  CHECK(parse_meeting_point("", "10.0.0.1:29400").port == 29400);
  for (const char* text : {"10.0.0.1", "10.0.0.1:29400", "[fd00::1]:29400"})
    CHECK(show_value(parse_meeting_point("", text)) == text);
  CHECK(parse_meeting_point("", "[fd00::1]").host == "fd00::1");
  CHECK(error_of(parse_meeting_point, "a:b") == "--flag is \"a:b\", must be HOST or HOST:PORT");
  CHECK(error_of(parse_meeting_point, ":5") == "--flag is \":5\", must be HOST or HOST:PORT");
}

TEST_CASE("hosts have slots or none") {
  const HostList list = parse_host_list("", "localhost:4,node7");
  REQUIRE(list.hosts.size() == 2);
  CHECK(list.hosts[0].host == "localhost");
  CHECK(list.hosts[0].slots == 4);
  CHECK_FALSE(list.hosts[1].slots.has_value());
  CHECK(error_of(parse_host_list, "localhost:x") ==
        "--flag is \"localhost:x\", must be hosts with their slots, as localhost:4");
}

TEST_CASE("a variable has a name that a shell takes, and is none of ours") {
  CHECK(parse_variable("", "LR=0.1").setting == "LR=0.1");
  CHECK(parse_variable("", "LR").setting == "LR");
  CHECK(error_of(parse_variable, "1A=2") ==
        "--flag is \"1A=2\", must be NAME, NAME=VALUE, or RANK:NAME=VALUE for one rank");
  CHECK(
      error_of(parse_variable, "FLEETRUN_RANK=2") ==
      "--flag sets FLEETRUN_RANK, but names that begin with FLEETRUN_ are reserved: set it in fleetrun's own environment");
}

TEST_CASE("a rank in front of a variable chooses who gets it") {
  const RankVariable variable = parse_variable("", "3:URL=a:b=c");
  CHECK(variable.rank == 3);
  CHECK(variable.setting == "URL=a:b=c");
  CHECK(variable.is_for(3));
  CHECK_FALSE(variable.is_for(2));
  CHECK_FALSE(parse_variable("", "URL=3:4").rank);
  CHECK(show_value(variable) == "3:URL=a:b=c");
  for (const char* text : {"3:LR", "x:LR=1", ":LR=1", "-1:LR=1", "1:2:LR=1", "1:=2"})
    CHECK_THROWS_AS(parse_variable("--env", text), Error);
  CHECK(
      error_of(parse_variable, "0:FLEETRUN_RANK=2") ==
      "--flag sets FLEETRUN_RANK, but names that begin with FLEETRUN_ are reserved: set it in fleetrun's own environment");
}

TEST_CASE("a template of torchrun becomes one of ours") {
  const auto prefix_of = [](const char* text) { return parse_torch_prefix("--flag", text).prefix.text; };
  CHECK(prefix_of("[${role_name}${local_rank}]:") == "[{role}{local_rank}]:");
  CHECK(prefix_of("$hostname/${rank}: ") == "{host}/{rank}: ");
  CHECK(prefix_of("$$5") == "$5");
  CHECK(
      error_of(parse_torch_prefix, "${rnak}") ==
      "--flag is \"${rnak}\", must be a text with only the names ${role_name}, ${local_rank}, ${rank} and ${hostname}");
  CHECK(error_of(parse_torch_prefix, "{rank}") ==
        "--flag is \"{rank}\", must be a text with braces only in names such as ${rank}");
  CHECK(prefix_of(TeePrefix().text.c_str()) == TeePrefix().prefix.text);
}

}  // namespace
}  // namespace fleetrun::launch
