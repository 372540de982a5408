// Programs below shells and other wrappers, which get the signals that end a rank.
#include <fcntl.h>

#include <cstdint>

#include "base/system/unique_fd.h"
#include "e2e/faults/faults.h"

namespace fleetrun::wrapped_program_fault_test {
namespace {

const std::string kUp = "\necho $$ > up.new && mv up.new up\n";

// program.sh waits for signals with these traps, and is up once it has them.
void write_program(const ScriptLaunch& launch, const std::string& traps,
                   const std::string& name = "program.sh") {
  launch.folder.write(name, traps + kUp + "while :; do sleep 0.02; done\n");
}

TEST_CASE(
    "hunt 93: a program that ignores Ctrl-C while it saves has the grace, also if the shell above it has ended") {
  const ScriptLaunch launch;
  write_program(
      launch,
      "trap 'trap \"\" INT; sleep 0.4; echo saved; exit 0' INT\ntrap 'echo interrupted; exit 1' TERM");
  ChildProcess process(
      launch.script_command({"--grace=60"}, "exec bash -c 'flock lock sh program.sh; echo end'\n"),
      launch.options());
  launch.pid_in("up");
  process.send(SIGINT);
  CHECK(process.wait().code == 130);
  CHECK_MESSAGE(contains(launch.folder.read("log/workerlog.0"), "saved\n"),
                launch.folder.read("log/workerlog.0"));
}

TEST_CASE(
    "hunt 99: Ctrl-C reaches the program of a shell below a wrapper that has no handler, as in a terminal") {
  const ScriptLaunch launch;
  write_program(launch, "trap 'echo saved; exit 0' INT");
  launch.folder.write("run.sh", "bash program.sh\necho end\n");
  ChildProcess process(launch.script_command({"--grace=60"}, "exec flock lock bash run.sh\n"),
                       launch.options());
  const pid_t program = launch.pid_in("up");
  process.send(SIGINT);
  const ChildResult result = process.wait();
  CHECK(result.code == 130);
  CHECK(result.seconds < seconds_within(5s));
  CHECK(launch.folder.read("log/workerlog.0") == "saved\nend\n");
  CHECK_FALSE(is_alive(program));
}

TEST_CASE(
    "hunt 99: below a wrapper, Ctrl-C ends a program without a handler, and a helper that ignores it holds nothing up") {
  for (const std::string program : {"sh long.sh\n", "(trap '' INT; exec sleep 100) &\nbash saves.sh\n"}) {
    const ScriptLaunch launch;
    launch.folder.write("long.sh", kUp + "exec sleep 100\n");
    write_program(launch, "trap 'echo saved; exit 0' INT", "saves.sh");
    launch.folder.write("run.sh", program + "echo end\n");
    ChildProcess process(launch.script_command({"--grace=60"}, "exec flock lock bash run.sh\n"),
                         launch.options());
    launch.pid_in("up");
    process.send(SIGINT);
    const ChildResult result = process.wait();
    CHECK(result.code == 130);
    CHECK(result.seconds < seconds_within(5s));
  }
}

TEST_CASE("hunt 99: what a program starts after Ctrl-C to save something is not interrupted") {
  const ScriptLaunch launch;
  launch.folder.write("save.sh",
                      "trap 'echo interrupted; exit 1' INT\n"
                      "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.05; done\necho saved\n");
  write_program(launch, "trap 'bash save.sh; exit 0' INT");
  ChildProcess process(launch.script_command({"--grace=60"}, "exec flock lock bash program.sh\n"),
                       launch.options());
  launch.pid_in("up");
  process.send(SIGINT);
  CHECK(process.wait().code == 130);
  CHECK(launch.folder.read("log/workerlog.0") == "saved\n");
}

enum class SigtermTo : std::uint8_t { fleetrun, all, all_but_the_shell_is_slow };

// Runs a shell script that starts program.sh. The program ignores SIGTERM while it saves for longer than a second. A slow shell has not got
// its signal when fleetrun gets one.
void check_that_it_saves(const std::string& script, SigtermTo to) {
  const ScriptLaunch launch;
  write_program(launch,
                "trap 'trap \"\" TERM; echo $$ > new && mv new saving; sleep 1.5; echo saved; exit 0' TERM");
  ChildProcess process(launch.script_command({"--grace=60"}, script), launch.options());
  const pid_t program = launch.pid_in("up"), shell = parent_of(program);
  if (to == SigtermTo::all_but_the_shell_is_slow) {
    ::kill(shell, SIGSTOP);
    REQUIRE(comes_true([&] { return state_of(shell) == 'T'; }, within(5s)));
  }
  if (to != SigtermTo::fleetrun)
    for (const pid_t pid : {program, shell}) ::kill(pid, SIGTERM);
  if (to == SigtermTo::all_but_the_shell_is_slow) launch.pid_in("saving");
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  CHECK_MESSAGE(contains(launch.folder.read("log/workerlog.0"), "saved\n"),
                launch.folder.read("log/workerlog.0"));
}

TEST_CASE(
    "hunt 96: if somebody sends SIGTERM to all processes, a program that then ignores it has the grace") {
  check_that_it_saves("sh program.sh\necho end\n", SigtermTo::all);
}

TEST_CASE("hunt 96: a program that saves has the grace, also if fleetrun gets its signal before the shell") {
  check_that_it_saves("sh program.sh\necho end\n", SigtermTo::all_but_the_shell_is_slow);
}

TEST_CASE("hunt 96: if a wrapper passes SIGTERM on and ends, its program has the grace") {
  check_that_it_saves("sh program.sh &\ntrap 'kill -TERM $!; exit 1' TERM\nwait\n", SigtermTo::fleetrun);
}

TEST_CASE("hunt 108: the program of an interactive bash, which ignores SIGTERM, has the grace to save") {
  if (const UniqueFd terminal(::open("/dev/tty", O_RDONLY | O_CLOEXEC)); terminal)
    LEAVE_OUT("an interactive bash would use the terminal of this test");
  const ScriptLaunch launch;
  write_program(launch, "trap 'echo saved; exit 0' TERM");
  ChildProcess process(
      launch.script_command({"--grace=60"}, "exec bash --norc -ic 'sh program.sh; echo end'\n"),
      launch.options());
  launch.pid_in("up");
  process.send(SIGTERM);
  const ChildResult result = process.wait();
  CHECK(result.code == 143);
  CHECK(result.seconds < seconds_within(5s));
  CHECK(contains(launch.folder.read("log/workerlog.0"), "saved\nend\n"));
}

TEST_CASE("hunt 105: a shell below the shell of a rank does not go on when its program has saved") {
  const ScriptLaunch launch;
  write_program(launch, "trap 'sleep 0.2; echo saved; exit 0' TERM");
  launch.folder.write("inner.sh", "sh program.sh" + kReader + "\nsh program.sh\necho trained > done\n");
  ChildProcess process(launch.script_command({"--grace=60"}, "bash inner.sh\necho end\n"), launch.options());
  const pid_t program = launch.pid_in("up");
  launch.pid_in("reader");
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  CHECK(launch.folder.read("log/workerlog.0") == "saved\n");
  CHECK_FALSE(launch.folder.has("done"));
  CHECK_FALSE(is_alive(program));
}

TEST_CASE("hunt 105: after Ctrl-C, a shell without a handler does not go on when its program has saved") {
  const ScriptLaunch launch;
  write_program(launch, "trap 'sleep 0.2; echo saved; exit 0' INT");
  launch.folder.write("run.sh", "bash program.sh\necho trained > done\n");
  ChildProcess process(launch.script_command({"--grace=60"}, "exec flock lock dash run.sh\n"),
                       launch.options());
  launch.pid_in("up");
  process.send(SIGINT);
  CHECK(process.wait().code == 130);
  CHECK(launch.folder.read("log/workerlog.0") == "saved\n");
  CHECK_FALSE(launch.folder.has("done"));
}

TEST_CASE("hunt 105: a shell that reads what its program prints stays until the program has saved") {
  const ScriptLaunch launch;
  write_program(launch, "trap 'sleep 0.2; echo printed; echo yes > saved; exit 0' TERM");
  launch.folder.write("inner.sh", "text=$(sh program.sh)\n");
  ChildProcess process(launch.script_command({"--grace=60"}, "bash inner.sh\necho end\n"), launch.options());
  launch.pid_in("up");
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
  CHECK(launch.folder.read("saved") == "yes\n");
}

}  // namespace
}  // namespace fleetrun::wrapped_program_fault_test
