#include "launch/report/stack_dump.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <doctest/doctest.h>

#include "launch/process/orphans.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::stack_dump_test {
namespace {

// A machine whose only debugger is this script.
struct Debugger {
  explicit Debugger(const std::string& script) {
    folder.write("gdb", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder / "gdb", std::filesystem::perms::owner_all);
    environment.set("PATH", folder.path() + ":/usr/bin:/bin");
  }
  ~Debugger() { end_all_children(std::chrono::seconds(5)); }

  TemporaryFolder folder;
  Environment environment;
};

std::vector<StackTarget> to_file(const std::string& path) {
  std::vector<StackTarget> targets(1);
  targets.front() = {::getpid(), path, UniqueFd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600))};
  return targets;
}

TEST_CASE("row 'a second Ctrl-\\ while debuggers run': who asks meanwhile learns of the end, too") {
  const Debugger machine("read nothing < $0.go");
  REQUIRE(::mkfifo((machine.folder / "gdb.go").c_str(), 0600) == 0);
  EventLoop loop;
  StackDump stacks(loop, machine.environment);
  int told = 0;
  const auto done = [&] {
    if (++told == 2) loop.stop();
  };
  CHECK(stacks.begin(to_file(machine.folder / "stacks"), done).size() == 1);
  CHECK(stacks.begin(to_file(machine.folder / "stacks"), done).empty());
  CHECK(told == 0);
  machine.folder.write("gdb.go", "now\n");  // opens when the debugger does
  loop.run();
  CHECK(told == 2);
}

TEST_CASE("where there is no debugger the end is reported at once") {
  Environment environment;
  environment.set("PATH", "/nowhere");
  EventLoop loop;
  StackDump stacks(loop, environment);
  bool told = false;
  CHECK(stacks
            .begin(to_file("/nowhere/stacks"),
                   [&] {
                     told = true;
                     loop.stop();
                   })
            .empty());
  loop.run();
  CHECK(told);
}

}  // namespace
}  // namespace fleetrun::launch::stack_dump_test
