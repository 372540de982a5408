#include "launch/death_evidence.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::death_evidence_test {
namespace {

TEST_CASE("the exception of the last traceback and its innermost place are found") {
  DeathEvidence evidence;
  find_traceback(
      {"Traceback (most recent call last):", "  File \"old.py\", line 1, in <module>", "KeyError: 'old'",
       "loss 0.5", "Traceback (most recent call last):", "  File \"train.py\", line 20, in <module>",
       "    main()", "  File \"/home/me/train.py\", line 12, in main", "    raise ValueError(\"bad batch\")",
       "ValueError: bad batch", "some thread says good bye"},
      evidence);
  CHECK(evidence.exception == "ValueError: bad batch");
  CHECK(evidence.exception_place == "/home/me/train.py:12, in main");
}

TEST_CASE("a log without a traceback, or with the start of one only, has no exception") {
  DeathEvidence evidence;
  find_traceback({"all is well"}, evidence);
  find_traceback({"Traceback (most recent call last):"}, evidence);
  find_traceback({}, evidence);
  CHECK(evidence.exception.empty());
}

TEST_CASE("an error file of torch's @record is understood in both of its forms") {
  DeathEvidence evidence;
  read_error_file(R"({"message": {"message": "RuntimeError: boom", "extraInfo": {
      "py_callstack": "Traceback (most recent call last):\n  File \"a.py\", line 3, in work\n    boom()\n",
      "timestamp": "1611067852"}}})",
                  evidence);
  CHECK(evidence.exception == "RuntimeError: boom");
  CHECK(evidence.exception_place == "a.py:3, in work");
  read_error_file(R"({"message": "SignalException: 15", "timestamp": 1})", evidence);
  CHECK(evidence.exception == "SignalException: 15");
}

TEST_CASE("an error file of another kind is no error of ours") {
  DeathEvidence evidence;
  for (const char* text : {"", "{", "[]", "{}", R"({"message": 3})", R"({"message": {"extraInfo": 3}})"})
    read_error_file(text, evidence);
  CHECK(evidence.exception.empty());
}

TEST_CASE("the kernel's line about the end of a process for want of memory is found by its number") {
  const std::string log =
      "<6>[ 1.0] memory: usage 65536kB, limit 65536kB\n"
      "<3>[ 1.1] Memory cgroup out of memory: Killed process 42 (python3) total-vm:9000kB, anon-rss:6000kB\n"
      "<3>[ 1.2] Out of memory: Killed process 4242 (other) total-vm:9000kB\n";
  CHECK(find_oom_kill(log, 42) == "Killed process 42 (python3) total-vm:9000kB, anon-rss:6000kB");
  CHECK(find_oom_kill(log, 424).empty());
}

TEST_CASE("low: a core file is a regular one, and not that of an earlier crash") {
  const TemporaryFolder folder;
  const auto started = std::chrono::system_clock::now();
  std::filesystem::create_directory(folder / "core");
  CHECK(find_core(folder / "core", 7, started).empty());
  folder.write("core.7", "of the process");
  CHECK(find_core(folder / "core", 7, started) == folder / "core.7");
  CHECK(find_core(folder / "core.%p", 7, started) == folder / "core.7");
  CHECK(find_core(folder / "core", 8, started).empty());
  CHECK(find_core(folder / "core", 7, started + std::chrono::hours(1)).empty());
  std::filesystem::create_symlink("core.7", folder / "core.9");
  CHECK(find_core(folder / "core", 9, started).empty());
}

}  // namespace
}  // namespace fleetrun::launch::death_evidence_test
