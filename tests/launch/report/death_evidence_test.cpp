#include "launch/report/death_evidence.h"

#include <csignal>
#include <filesystem>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace fleetrun::launch::death_evidence_test {
namespace {

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

TEST_CASE("an error file of another kind is not an error of ours") {
  DeathEvidence evidence;
  for (const char* text : {"", "{", "[]", "{}", R"({"message": 3})", R"({"message": {"extraInfo": 3}})"})
    read_error_file(text, evidence);
  CHECK(evidence.exception.empty());
}

// Recorded of Linux 6.1, with other numbers.
const std::string kOutOfMemory =
    "<4>[  871.104220] python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n"
    "<6>[  871.104291] memory: usage 65536kB, limit 65536kB, failcnt 90\n"
    "<6>[  871.104312] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
    "oom_memcg=/job,task_memcg=/job,task=python3,pid=42,uid=0\n"
    "<3>[  871.104330] Memory cgroup out of memory: Killed process 42 (python3) total-vm:90000kB, "
    "anon-rss:61000kB, file-rss:5120kB, shmem-rss:0kB, UID:0 pgtables:200kB oom_score_adj:0\n"
    "<3>[  905.000001] Out of memory: Killed process 4242 (other) total-vm:9000kB, anon-rss:6000kB\n";

std::string find(const std::string& log, pid_t pid, double since) {
  return find_oom_kills(log, {.pid = pid, .pid_namespace = "pid:[4026531836]", .since = since}).line;
}

TEST_CASE("the kernel's line about the end of a process for want of memory is found by its number") {
  CHECK(
      find(kOutOfMemory, 42, 800) ==
      "Killed process 42 (python3) total-vm:90000kB, anon-rss:61000kB, file-rss:5120kB, shmem-rss:0kB, UID:0 "
      "pgtables:200kB oom_score_adj:0");
  CHECK(find(kOutOfMemory, 424, 800).empty());
}

TEST_CASE("a line of the kernel's that is older than the run, or without a time, is about another process") {
  CHECK(find(kOutOfMemory, 42, 871.2).empty());
  CHECK_FALSE(find(kOutOfMemory, 4242, 871.2).empty());
  CHECK(find("<3>Out of memory: Killed process 42 (python3) total-vm:9000kB\n", 42, 0).empty());
  CHECK_FALSE(find("[    1.000000] Out of memory: Killed process 42 (python3)\n", 42, 0).empty());
}

TEST_CASE("in another namespace of processes the kernel's numbers are about others") {
  for (const char* other : {"pid:[4026532201]", ""}) {
    const OomKills kills = find_oom_kills(kOutOfMemory, {.pid = 42, .pid_namespace = other, .since = 800});
    CHECK(kills.line.empty());
    CHECK(kills.line_of_other.empty());
  }
}

const DeathScene kKilled = {.status = {ExitStatus::How::signaled, SIGKILL}};
// A shell, whose program was killed.
const DeathScene kWrapper = {.status = {ExitStatus::How::exited, 128 + SIGKILL}};

TEST_CASE(
    "a rank is out of memory when the kernel's log names it, or when its cgroup counted and nothing else is known") {
  CHECK(is_out_of_memory(kKilled, {.line = "Killed process 42"}));
  CHECK(is_out_of_memory(kKilled, {.counted = 1}));
  CHECK_FALSE(is_out_of_memory(kKilled, {}));
  CHECK_FALSE(is_out_of_memory({.status = {ExitStatus::How::exited, 1}}, {.counted = 1}));
  CHECK_FALSE(is_out_of_memory({.status = {ExitStatus::How::signaled, SIGTERM}}, {.counted = 1}));
}

TEST_CASE("that the kernel killed another process for lack of memory does not put a rank out of memory") {
  const OomKills other =
      find_oom_kills(kOutOfMemory, {.pid = 7, .pid_namespace = "pid:[4026531836]", .since = 800});
  CHECK(other.line_of_other == "Killed process 4242 (other) total-vm:9000kB, anon-rss:6000kB");
  CHECK_FALSE(is_out_of_memory(kKilled, {.line_of_other = other.line_of_other, .counted = 1}));
}

TEST_CASE("a rank that somebody killed through fleetrun is not out of memory, whatever its cgroup counted") {
  DeathScene scene = kKilled;
  scene.origin = "process 7 sent with fleetrun signal";
  CHECK_FALSE(is_out_of_memory(scene, {.counted = 1}));
  CHECK(is_out_of_memory(scene, {.line = "Killed process 42", .counted = 1}));
}

TEST_CASE("a shell that ends with 137 is out of memory when the kernel killed a process of the cgroup") {
  CHECK(is_out_of_memory(kWrapper, {.counted = 1}));
  CHECK(is_out_of_memory(kWrapper, {.line_of_other = "Killed process 43", .counted = 1}));  // its program
  CHECK_FALSE(is_out_of_memory(kWrapper, {.line_of_other = "Killed process 43"}));
  CHECK_FALSE(is_out_of_memory(kWrapper, {}));
}

TEST_CASE("an exception of the log is the evidence of an exit, and none of a kill") {
  DeathScene scene = {
      .status = {ExitStatus::How::exited, 1},
      .log_end =
          "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'x'\n\n"
          "The above exception was the direct cause of the following exception:\n\n"
          "Traceback (most recent call last):\n  File \"a.py\", line 5, in g\nValueError: y\n"};
  const DeathEvidence evidence = gather_evidence(scene);
  CHECK(evidence.exception == "ValueError: y");
  CHECK(evidence.exception_place == "a.py:5, in g");
  REQUIRE_FALSE(evidence.facts.empty());
  CHECK(evidence.facts.front() == "raised from KeyError: 'x' (a.py:3, in f)");
  scene.status = {ExitStatus::How::signaled, SIGTERM};
  CHECK(gather_evidence(scene).exception.empty());
}

TEST_CASE(
    "hunt 150: after SIGTERM, the facts name the error with which the log ends, if nobody sent the signal through us") {
  const std::string error =
      "Traceback (most recent call last):\n  File \"w.py\", line 5, in <module>\nRuntimeError: w failed\n";
  DeathScene scene = {.status = {ExitStatus::How::signaled, SIGTERM}, .log_end = error};
  REQUIRE(gather_evidence(scene).facts.size() == 1);
  CHECK(
      gather_evidence(scene).facts.front() ==
      "its log ends with RuntimeError: w failed (w.py:5, in <module>); perhaps a trap of its script, such as "
      "`kill 0`, sent the signal then");
  scene.origin = "process 4711 sent with fleetrun signal";
  CHECK(gather_evidence(scene).facts.empty());
  scene.origin = "";
  for (int i = 0; i < 20; ++i) scene.log_end += "step " + std::to_string(i) + " loss 0.5\n";
  CHECK(gather_evidence(scene).facts.empty());
  scene = {.status = {ExitStatus::How::signaled, SIGKILL}, .log_end = error};
  CHECK(gather_evidence(scene).facts.empty());
}

TEST_CASE("hunt 120: if more than two exceptions are chained, the facts name the first one, too") {
  const std::string chained =
      "\nDuring handling of the above exception, another exception occurred:\n\n"
      "Traceback (most recent call last):\n  File \"a.py\", line 5, in g\nValueError: y\n";
  const DeathScene scene = {
      .status = {ExitStatus::How::exited, 1},
      .log_end = "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'x'\n" +
                 chained + chained};
  const std::vector<std::string> facts = gather_evidence(scene).facts;
  REQUIRE(facts.size() == 2);
  CHECK(facts[0] == "raised while handling ValueError: y (a.py:5, in g)");
  CHECK(facts[1] == "the first of these 3 exceptions: KeyError: 'x' (a.py:3, in f)");
}

TEST_CASE("hunt 120: the facts name the error of a process that the rank had started") {
  const DeathScene scene = {
      .status = {ExitStatus::How::exited, 1},
      .log_end =
          "Process Process-1:\nTraceback (most recent call last):\n"
          "  File \"/usr/lib/python3.11/multiprocessing/process.py\", line 314, in _bootstrap\n"
          "  File \"a.py\", line 3, in f\nKeyError: 'x'\n"
          "Traceback (most recent call last):\n  File \"a.py\", line 5, in g\nEOFError\n"};
  const DeathEvidence evidence = gather_evidence(scene);
  CHECK(evidence.exception == "EOFError");
  REQUIRE(evidence.facts.size() == 1);
  CHECK(evidence.facts.front() == "its Process-1 failed before: KeyError: 'x' (a.py:3, in f)");
}

TEST_CASE("an error file says no more than a line, and nothing that a terminal obeys") {
  DeathEvidence evidence;
  read_error_file(R"({"message": "RuntimeError: \u001b[31mred\nmore"})", evidence);
  CHECK(evidence.exception == "RuntimeError: ?[31mred");
  read_error_file("{\"message\": \"" + std::string(10000, 'x') + "\"}", evidence);
  CHECK(evidence.exception.size() == 300);
}

TEST_CASE("low: a rank that changed its folder may have left its core file there") {
  CHECK(describe_missing_core("core", RLIM_INFINITY) ==
        "no core file core found here; it lies in the folder in which the rank ended");
  CHECK(describe_missing_core("/cores/%e.%p", 4096) ==
        "no core file found for the core pattern /cores/%e.%p");
}

TEST_CASE("low: a limit that leaves no core file, or a part of one, is named") {
  CHECK(describe_missing_core("core", 0) == "no core file: the limit is 0 (ulimit -c unlimited allows one)");
  CHECK(describe_missing_core("core", 1024) ==
        "no core file: the limit is 1024 bytes (ulimit -c unlimited allows one)");
  const TemporaryFolder folder;
  folder.write("core", std::string(100'000, 'c'));
  const std::string path = folder / "core";
  CHECK(describe_core(path, RLIM_INFINITY) == "core file: " + path);
  CHECK(describe_core(path, 1 << 20) == "core file: " + path);
  CHECK(describe_core(path, 102'400) ==
        "core file, cut off at the limit of 102400 bytes (ulimit -c unlimited allows all of it): " + path);
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
