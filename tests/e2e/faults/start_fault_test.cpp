// W16: programs that cannot start.
#include "e2e/faults/faults.h"

namespace fleetrun::start_fault_test {
namespace {

TEST_CASE("a worker program without the permission to execute is named as that, with 126") {
  const Launch launch;
  launch.folder.write("fleetrun-worker", "");
  std::filesystem::copy_file(FLEETRUN_BINARY, launch.folder / "fleetrun");
  launch.folder.write("job.json", R"({
    "model": {"name": "lenet"},
    "data": {"train": {"format": "synthetic", "samples": 64, "shape": [1, 28, 28], "classes": 10}}})");
  const ChildResult result = run_child({"./fleetrun", "job.json"}, launch.options());
  CHECK(result.code == 126);
  CHECK_MESSAGE(contains(result.err, "/fleetrun-worker is not executable\n  hint: chmod +x "), result.err);
}

TEST_CASE("W16: a program that cannot run is said once, and nothing is made") {
  const Launch launch;
  launch.folder.write("plain", "no program");
  CHECK(launch.run_words({"--nproc_per_node=4", "no-such-program"}).code == 127);
  CHECK(launch.run_words({"no-such-script.py"}).code == 127);
  const ChildResult result = launch.run_words({"--nproc_per_node=4", "./plain"});
  CHECK(result.code == 126);
  CHECK(result.err == "fleetrun: error: ./plain is not executable\n  hint: chmod +x ./plain makes it so\n");
  CHECK(result.out.empty());
  launch.folder.write("packed.pyz", "no program");
  CHECK(contains(launch.run_words({"./packed.pyz"}).err, "hint: fleetrun -- python3 ./packed.pyz\n"));
  CHECK_FALSE(launch.folder.has("log"));
}

TEST_CASE("W16: the error names an interpreter that is missing, or that ends with a carriage return") {
  const Launch launch;
  launch.folder.write("script", "#! /no/such/interpreter -u\n");
  launch.folder.write("windows", "#!/bin/sh\r\nexit 0\r\n");
  for (const char* name : {"script", "windows"})
    std::filesystem::permissions(launch.folder / name, std::filesystem::perms::owner_all);
  const ChildResult script = launch.run_words({"--nproc_per_node=3", "./script"});
  CHECK(script.code == 127);
  CHECK(script.err ==
        "fleetrun: error: ./script needs the interpreter /no/such/interpreter, which does not exist\n");
  const ChildResult windows = launch.run_words({"./windows"});
  CHECK(windows.code == 127);
  CHECK(
      windows.err ==
      "fleetrun: error: the line #!/bin/sh of ./windows ends with a carriage return, as on Windows, so Linux "
      "does not find the interpreter\n  hint: sed -i 's/\\r$//' ./windows removes the carriage returns\n");
  CHECK_FALSE(launch.folder.has("log"));
}

TEST_CASE("W16: a program on a noexec mount is said to be on one, whatever its mode") {
  if (!is_root() || !can_mount()) LEAVE_OUT("nothing can be mounted here");
  const ScriptLaunch launch;
  std::filesystem::create_directory(launch.folder / "disk");
  launch.folder.write("run.sh", "#!/bin/sh\nexit 0\n");
  std::filesystem::permissions(launch.folder / "run.sh", std::filesystem::perms::owner_all);
  const ChildResult result = run_child(after_mount("mount -t tmpfs -o noexec tmpfs disk && cp -p run.sh disk",
                                                   {FLEETRUN_BINARY, "disk/run.sh"}),
                                       launch.options());
  CHECK(result.code == 126);
  CHECK(result.err ==
        "fleetrun: error: disk/run.sh is on a file system that is mounted noexec: no program there can run\n"
        "  hint: copy it to another file system\n");
}

TEST_CASE("W16: a program that the kernel refuses is a failure of its start, once and with a report") {
  const Launch launch;
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string elf(64, '\0');
  self.read(elf.data(), 64);
  elf[18] = elf[19] = '\x7f';  // e_machine: of no machine
  launch.folder.write("foreign", elf);
  // A program whose loader is missing is there, and the kernel says that it is not.
  std::string unloadable = read_all(FAKE_WORKER);
  const auto loader = unloadable.find("/ld-linux");
  REQUIRE(loader != std::string::npos);
  unloadable.replace(loader, 9, "/ld-absnt");
  launch.folder.write("unloadable", unloadable);
  for (const char* name : {"foreign", "unloadable"})
    std::filesystem::permissions(launch.folder / name, std::filesystem::perms::owner_all);
  const ChildResult foreign = launch.run_words({"--nproc_per_node=3", "./foreign"});
  CHECK(foreign.code == 126);
  CHECK(contains(
      foreign.err,
      "fleetrun: rank 0 could not be started: ./foreign: Exec format error (errno 8); it is neither a "
      "program for this machine nor a script with a first line such as #!/bin/sh\n"));
  const ChildResult missing = launch.run_words({"--nproc_per_node=3", "./unloadable"});
  CHECK(missing.code == 127);
  CHECK(
      contains(missing.err,
               "fleetrun: rank 0 could not be started: ./unloadable: No such file or directory (errno 2)\n"));
  CHECK_FALSE(contains(missing.err, "rank 1"));
  CHECK(launch.report()["cause"] == "spawn");
  CHECK(launch.report()["ranks"][2]["role"] == "never_started");
}

TEST_CASE("W16: a missing shared library is reported in the loader's words") {
  const Launch launch;
  const ChildResult result = launch.run_words({"--nproc_per_node=2", NEEDS_LIBRARY});
  CHECK(result.code == 127);
  CHECK(contains(result.err, "error while loading shared libraries: libnot_installed.so"));
}

}  // namespace
}  // namespace fleetrun::start_fault_test
