#include "launch/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::program_test {
namespace {

using Words = std::vector<std::string>;

struct Programs {
  Programs() {
    folder.write("tool", "#!/bin/sh\n");
    ::chmod((folder / "tool").c_str(), 0755);
    folder.write("plain", "no program");
    folder.write("python3", "#!/bin/sh\n");
    ::chmod((folder / "python3").c_str(), 0755);
    folder.write("train.py", "print()");
    environment.set("PATH", "/nonexistent:" + folder.path());
  }
  int code_of(const std::string& name) const {
    try {
      find_program(name, {}, environment);
    } catch (const Error& error) {
      return error.exit_code();
    }
    return 0;
  }

  TemporaryFolder folder;
  Environment environment;
};

TEST_CASE("the end of a name tells what it is") {
  CHECK(kind_of_program("configs/job.json") == ProgramKind::job);
  CHECK(kind_of_program("./train.py") == ProgramKind::python);
  CHECK(kind_of_program("a.out") == ProgramKind::executable);
  CHECK(kind_of_program("json") == ProgramKind::executable);
}

TEST_CASE("a program is found on PATH or by its path, and keeps the name it was called by") {
  const Programs programs;
  const Program found = find_program("tool", {"-x", ""}, programs.environment);
  CHECK(found.executable == programs.folder / "tool");
  CHECK(found.argv == Words{"tool", "-x", ""});
  CHECK(find_program(programs.folder / "tool", {}, programs.environment).executable ==
        programs.folder / "tool");
}

TEST_CASE("a script runs under python3 without buffering") {
  const Programs programs;
  const Program program = find_program(programs.folder / "train.py", {"--lr", "0.1"}, programs.environment);
  CHECK(program.kind == ProgramKind::python);
  CHECK(program.executable == programs.folder / "python3");
  CHECK(program.argv == Words{"python3", "-u", programs.folder / "train.py", "--lr", "0.1"});
}

TEST_CASE("what does not exist is 127") {
  const Programs programs;
  CHECK(programs.code_of("no-such-tool") == 127);
  CHECK(programs.code_of(programs.folder / "nothing") == 127);
  CHECK(programs.code_of(programs.folder / "nothing.py") == 127);
}

TEST_CASE("a script that does not exist is told with the one that was probably meant") {
  const Programs programs;
  CHECK_THROWS_WITH_AS(find_program(programs.folder / "trian.py", {}, programs.environment),
                       ("the script " + (programs.folder / "trian.py") + " does not exist; did you mean " +
                        (programs.folder / "train.py") + "?")
                           .c_str(),
                       Error);
}

TEST_CASE("a script without an interpreter is 127") {
  const Programs programs;
  Environment poor;
  poor.set("PATH", "/nonexistent");
  CHECK_THROWS_WITH_AS(find_program(programs.folder / "train.py", {}, poor),
                       "the program python3 is neither on PATH nor in this folder", Error);
}

TEST_CASE("what is there and cannot be executed is 126") {
  const Programs programs;
  CHECK(programs.code_of("plain") == 126);
  CHECK(programs.code_of(programs.folder / "plain") == 126);
  CHECK(programs.code_of(programs.folder.path()) == 126);
}

}  // namespace
}  // namespace fleetrun::launch::program_test
