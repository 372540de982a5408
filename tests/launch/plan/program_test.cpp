#include "launch/plan/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <doctest/doctest.h>

#include "base/error/error.h"
#include "support/temporary_folder.h"
#include "support/without_rights.h"

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
      find_program({.name = name}, environment);
    } catch (const Error& error) {
      return error.exit_code();
    }
    return 0;
  }

  TemporaryFolder folder;
  Environment environment;
};

std::string why_not_found(const Programs& programs, const std::string& name) {
  try {
    find_program({.name = name}, programs.environment);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST_CASE("the end of a name tells what it is") {
  CHECK(kind_of({.name = "configs/job.json"}) == ProgramKind::job);
  CHECK(kind_of({.name = "./train.py"}) == ProgramKind::python);
  CHECK(kind_of({.name = "a.out"}) == ProgramKind::executable);
  CHECK(kind_of({.name = "json"}) == ProgramKind::executable);
}

TEST_CASE("a program is found on PATH or by its path, and keeps the name it was called by") {
  const Programs programs;
  const Program found = find_program({.name = "tool", .arguments = {"-x", ""}}, programs.environment);
  CHECK(found.executable == programs.folder / "tool");
  CHECK(found.argv == Words{"tool", "-x", ""});
  CHECK(find_program({.name = programs.folder / "tool"}, programs.environment).executable ==
        programs.folder / "tool");
}

TEST_CASE("a script runs under python3 without buffering") {
  const Programs programs;
  const Program program = find_program({.name = programs.folder / "train.py", .arguments = {"--lr", "0.1"}},
                                       programs.environment);
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
  CHECK_THROWS_WITH_AS(find_program({.name = programs.folder / "trian.py"}, programs.environment),
                       ("the script " + (programs.folder / "trian.py") + " does not exist; did you mean " +
                        (programs.folder / "train.py") + "?")
                           .c_str(),
                       Error);
}

TEST_CASE("the error about a link to nothing says so, and suggests no script") {
  const Programs programs;
  for (const char* name : {"dang.py", "dang"}) {
    const std::string link = programs.folder / name;
    std::filesystem::create_symlink("nosuch", link);
    CHECK(programs.code_of(link) == 127);
    CHECK(why_not_found(programs, link) == link + " is a link to nosuch, which does not exist");
  }
  const std::string circle = programs.folder / "circle";
  std::filesystem::create_symlink("circle", circle);
  CHECK(programs.code_of(circle) == 127);
  CHECK(why_not_found(programs, circle) ==
        circle + " is a link to circle, and this chain of links is a circle");
  CHECK(why_not_found(programs, programs.folder / "dangg.py") ==
        "the script " + (programs.folder / "dangg.py") + " does not exist");
}

TEST_CASE("a script without an interpreter is 127") {
  const Programs programs;
  Environment poor;
  poor.set("PATH", "/nonexistent");
  CHECK_THROWS_WITH_AS(find_program({.name = programs.folder / "train.py"}, poor),
                       "the program python3 is neither on PATH nor in this folder", Error);
}

TEST_CASE("what is there and cannot be executed is 126") {
  const Programs programs;
  CHECK(programs.code_of("plain") == 126);
  CHECK(programs.code_of(programs.folder / "plain") == 126);
  CHECK(programs.code_of(programs.folder.path()) == 126);
}

TEST_CASE("what does not exist is named on one line") {
  const Programs programs;
  CHECK(why_not_found(programs, "a\nfleetrun: b.py") == "the script a?fleetrun: b.py does not exist");
  CHECK(why_not_found(programs, "./a\nb") == "the program ./a?b does not exist");
  CHECK(why_not_found(programs, "a\nb") == "the program a?b is neither on PATH nor in this folder");
}

TEST_CASE("a program or script in a folder that may not be searched is 126, not missing") {
  const Programs programs;
  std::filesystem::create_directory(programs.folder / "closed");
  programs.folder.write("closed/tool", "#!/bin/sh\n");
  programs.folder.write("closed/train.py", "print()");
  ::chmod(programs.folder.path().c_str(), 0755);
  ::chmod((programs.folder / "closed").c_str(), 0);
  for (const char* name : {"closed/tool", "closed/train.py"}) {
    const std::string path = programs.folder / name;
    CHECK(holds_without_rights([&] { return programs.code_of(path) == 126; }));
    CHECK(holds_without_rights(
        [&] { return why_not_found(programs, path) == path + " is in a folder that may not be searched"; }));
  }
  ::chmod((programs.folder / "closed").c_str(), 0755);
}

TEST_CASE("hunt 19: a pipe that has the name of a script or a program is told as what it is, with 126") {
  const Programs programs;
  for (const char* name : {"pipe.py", "pipe"}) {
    const std::string pipe = programs.folder / name;
    REQUIRE(::mkfifo(pipe.c_str(), 0755) == 0);
    CHECK_THROWS_WITH_AS(find_program({.name = pipe}, programs.environment),
                         (pipe + " is not a regular file").c_str(), Error);
    CHECK(programs.code_of(pipe) == 126);
  }
}

TEST_CASE("the interpreter of a script is looked for, as the kernel reads its first line") {
  const Programs programs;
  const auto why_not = [&](const std::string& text) -> std::string {
    programs.folder.write("script", text);
    ::chmod((programs.folder / "script").c_str(), 0755);
    try {
      find_program({.name = programs.folder / "script"}, programs.environment);
    } catch (const Error& error) {
      CHECK(error.exit_code() == 127);
      return error.message();
    }
    return "";
  };
  const std::string script = programs.folder / "script";
  for (const char* good : {"#!/bin/sh\n", "#! /bin/sh", "#!\t/bin/sh -e\r\n", "#!\n", "#", "", "echo\r\n"})
    CHECK(why_not(good) == "");
  CHECK(why_not("#!/no/sh -e\n") == script + " needs the interpreter /no/sh, which does not exist");
  CHECK(why_not("#!/no/\x1b[1msh\n") == script + " needs the interpreter /no/?[1msh, which does not exist");
  CHECK(why_not("#!/bin/sh\r\n") ==
        "the line #!/bin/sh of " + script +
            " ends with a carriage return, as on Windows, so Linux does not find the interpreter");
  CHECK(why_not("#!/usr/bin/env python3\r\n").starts_with("the line #!/usr/bin/env python3 of " + script));
  CHECK(why_not("#!/usr/bin/env -S python3 -u\r\n").empty());  // env -S takes it as a blank
  CHECK(why_not("#!/no/python3 -u\r\n") ==
        script + " needs the interpreter /no/python3, which does not exist");
}

TEST_CASE("torchrun's ways to run a program win over the end of its name") {
  using Form = ProgramRequest::Form;
  const Programs programs;
  const auto argv_of = [&](const std::string& name, Form form) {
    return find_program({.name = name, .arguments = {"--lr", "1"}, .form = form}, programs.environment).argv;
  };
  CHECK(argv_of("pkg.train", Form::module) == Words{"python3", "-u", "-m", "pkg.train", "--lr", "1"});
  CHECK(argv_of(programs.folder / "plain", Form::script) ==
        Words{"python3", "-u", programs.folder / "plain", "--lr", "1"});
  const Words by_path = argv_of(programs.folder / "train.py", Form::run_path);
  CHECK(by_path[2] == "-c");
  CHECK(by_path[4] == programs.folder / "train.py");
  CHECK(kind_of({.name = "train.py", .form = Form::program}) == ProgramKind::executable);
  CHECK(kind_of({.name = "pkg.json", .form = Form::module}) == ProgramKind::python);
}

TEST_CASE("torchrun does not give a job file to Python, which would take it for an expression") {
  const Programs programs;
  CHECK_THROWS_WITH_AS(
      find_program({.name = "job.json", .form = ProgramRequest::Form::script}, programs.environment),
      "job.json is a job file, and torchrun gives its program to Python", Error);
}

TEST_CASE("PYTHON_EXEC names another interpreter, as for torchrun") {
  Programs programs;
  programs.environment.set("PYTHON_EXEC", programs.folder / "tool");
  const Program program = find_program({.name = programs.folder / "train.py"}, programs.environment);
  CHECK(program.executable == programs.folder / "tool");
  CHECK(program.argv.front() == programs.folder / "tool");
}

TEST_CASE("flags decide how the program is run, and a link called torchrun runs everything by Python") {
  LaunchOptions options;
  CHECK(requested_program(options).form == ProgramRequest::Form::by_name);
  options.called_as = CalledAs::torchrun;
  CHECK(requested_program(options).form == ProgramRequest::Form::script);
  options.no_python.value = true;
  CHECK(requested_program(options).form == ProgramRequest::Form::program);
  options.run_path.value = true;
  CHECK(requested_program(options).form == ProgramRequest::Form::run_path);
}

}  // namespace
}  // namespace fleetrun::launch::program_test
