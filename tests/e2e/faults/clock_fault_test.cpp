// What happens when somebody sets the time of day while a run goes on.
#include <regex>

#include "e2e/faults/faults.h"

namespace fleetrun::clock_fault_test {
namespace {

// Of the launcher and its workers, the file "moved" moves the time of day by its seconds.
struct ClockLaunch : ScriptLaunch {
  ChildOptions options() const {
    ChildOptions options = ScriptLaunch::options();
    options.environment["LD_PRELOAD"] = MOVED_CLOCK;
    options.environment["FLEETRUN_TEST_MOVED"] = folder / "moved";
    options.environment["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0";
    return options;
  }
};

constexpr double kMostSeconds = 60;  // that any of these runs takes

bool is_possible(const nlohmann::json& seconds) { return seconds >= 0 && seconds < kMostSeconds; }

TEST_CASE(
    "row 'wall clock set back an hour': no message, report or ps has negative seconds or an hour more") {
  for (const char* seconds : {"-3600", "3600"}) {
    const ClockLaunch launch;
    ChildProcess process(launch.script_command({},
                                               "echo hello; $FAKE ready up\n"
                                               "until [ -e go ]; do sleep 0.01; done; exit 3\n"),
                         launch.options());
    launch.pid_in("up");
    launch.folder.write("moved", seconds);
    const auto ps = nlohmann::json::parse(launch.run_words({"ps", "--json"}).out);
    CHECK_MESSAGE(is_possible(ps["seconds"]), ps.dump());
    CHECK_MESSAGE(is_possible(ps["ranks"][0]["seconds"]), ps.dump());
    CHECK_MESSAGE(is_possible(ps["ranks"][0]["log_seconds_ago"]), ps.dump());
    process.send(SIGQUIT);
    launch.folder.write("go", "");
    const ChildResult result = process.wait();
    CHECK(result.code == 3);
    std::smatch after;
    REQUIRE_MESSAGE(std::regex_search(result.err, after, std::regex(", after ([^ ]*) s\\)")), result.err);
    CHECK_MESSAGE(is_possible(std::stod(after[1])), result.err);
    CHECK(is_possible(launch.report()["seconds"]));
  }
}

TEST_CASE("a time of day that leaps forwards and back lets no timeout come early") {
  const ClockLaunch launch;
  const ChildResult result =
      run_child(launch.script_command({"--nproc_per_node=2", "--timeout=100", "--hang_timeout=100",
                                       "--grace=100", "--log_rule=step within 100s", "--early_exit_wait=100",
                                       "--kill_wait=100", "--max_restart=1", "--restart_delay=0.1"},
                                      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0\n"
                                      "[ $RANK = 0 ] && exit 0\n"
                                      "for s in 3600 -7200 0; do echo $s > moved; sleep 0.3; done; exit 1\n"),
                launch.options());
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(launch.report()["earlier_attempts"].size() == 1);
}

TEST_CASE("a time of day that is set back lets no timeout come late") {
  struct Case {
    const char* flag;
    int code;
  };
  for (const Case& one :
       {Case{"--timeout=0.5", 124}, Case{"--hang_timeout=0.5", 75}, Case{"--log_rule=step within 0.5s", 75},
        Case{"--early_exit_wait=0.5", 75}, Case{"--grace=0.5", 9}}) {
    const ClockLaunch launch;
    const ChildResult result =
        run_child(launch.script_command({"--nproc_per_node=2", "--grace=0.1", one.flag},
                                        "trap '' TERM; echo -3600 > moved\n"
                                        "[ $RANK = 0 ] && { " +
                                            std::string(one.code == 9 ? "exit 9" : "exit 0") +
                                            "; }\n"
                                            "exec $FAKE sleep 100\n"),
                  launch.options());
    CHECK_MESSAGE(result.code == one.code, one.flag << result.err);
    CHECK_MESSAGE(result.seconds < seconds_within(6s), one.flag);
  }
}

}  // namespace
}  // namespace fleetrun::clock_fault_test
