#include "launch/evidence/log_cause.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <doctest/doctest.h>
#include <re2/re2.h>

#include "base/text/printable.h"
#include "launch/evidence/echoes.h"
#include "launch/evidence/recognisers.h"
#include "support/processor_time.h"
#include "support/slowdown.h"

namespace fleetrun::launch::log_cause_test {
namespace {

ExitStatus exited(int code) { return {ExitStatus::How::exited, code}; }
ExitStatus killed_by(int signal) { return {ExitStatus::How::signaled, signal}; }

// A file of logs/: a log, how its process ended, and the sentence that we want.
struct Example {
  std::string name;
  std::map<std::string, std::string> head;
  std::string log;

  ExitStatus status() const {
    std::istringstream text(head.at("ended"));
    std::string how;
    int value = 0;
    text >> how >> value;
    REQUIRE((how == "exited" || how == "signal"));
    return how == "exited" ? exited(value) : killed_by(value);
  }
};

Example read_example(const std::filesystem::path& path) {
  Example example = {.name = path.stem()};
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const auto colon = line.find(':');
    REQUIRE(colon != std::string::npos);
    example.head[line.substr(0, colon)] = line.substr(std::min(line.size(), colon + 2));
  }
  example.log = {std::istreambuf_iterator<char>(file), {}};
  return example;
}

std::vector<Example> examples() {
  std::vector<Example> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(FLEETRUN_SOURCE_DIR "/tests/launch/evidence/logs"))
    if (entry.path().extension() == ".txt") all.push_back(read_example(entry.path()));
  return all;
}

TEST_CASE("60 logs name the cause that a reader would name, or none") {
  const std::vector<Example> all = examples();
  REQUIRE(all.size() >= 60);
  CHECK(std::count_if(all.begin(), all.end(), [](const Example& example) {
          return example.head.at("written") == "after the code";
        }) >= 20);
  for (const Example& example : all) {
    CAPTURE(example.name);
    const LogCause cause = find_log_cause(example.log, example.status());
    CHECK(describe(cause) == example.head.at("wanted"));
    CHECK(describe(find_log_cause(example.log, example.status(), "train.py")) == example.head.at("wanted"));
    const auto from = example.head.find("from");
    CHECK(cause.from == (from == example.head.end() ? "" : from->second));
    const auto beside = example.head.find("beside");
    CHECK(cause.beside == (beside == example.head.end() ? "" : beside->second));
  }
}

TEST_CASE("a zero byte, which PyTorch's DataLoader writes after the message of a crash, changes nothing") {
  Example example =
      read_example(FLEETRUN_SOURCE_DIR "/tests/launch/evidence/logs/after_dataloader_crashed.txt");
  example.log.insert(example.log.find("[rank1]: Traceback"), 1, '\0');
  const LogCause cause = find_log_cause(example.log, example.status());
  CHECK(describe(cause) == example.head.at("wanted"));
  CHECK(cause.beside == example.head.at("beside"));
}

TEST_CASE("hunt 72: an error that the process seems to have survived is found if little follows it") {
  const std::string error =
      "Traceback (most recent call last):\n  File \"a.py\", line 9, in <module>\n    main()\n"
      "  File \"a.py\", line 4, in main\n    read()\nFileNotFoundError: /data/shard-3.bin\n";
  const auto rows = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "step " + std::to_string(i) + " loss 0.5\n";
    return text;
  };
  CHECK(find_log_cause(error + rows(60), exited(1)).what.empty());
  CHECK(describe(find_survived_error(error + rows(60), exited(1))) ==
        "FileNotFoundError: /data/shard-3.bin (a.py:4, in main)");
  CHECK(describe(find_survived_error(
            "At line 6 of file f.f90\nFortran runtime error: File 'mesh.dat' does not exist\n" + rows(60),
            exited(2))) == "Fortran runtime error: File 'mesh.dat' does not exist (f.f90:6)");
  CHECK(find_survived_error(error + rows(5000), exited(1)).what.empty());
  CHECK(find_survived_error(error + rows(60), exited(0)).what.empty());
}

TEST_CASE("no log names a cause for SIGKILL, SIGTERM or a process that ended well") {
  for (const Example& example : examples()) {
    CAPTURE(example.name);
    for (const ExitStatus& status : {killed_by(SIGKILL), killed_by(SIGTERM), exited(0), exited(137)})
      CHECK(find_log_cause(example.log, status).what.empty());
  }
}

TEST_CASE("a log that is cut anywhere, or has wild bytes, gives short and valid text") {
  for (const Example& example : examples()) {
    CAPTURE(example.name);
    for (std::size_t cut = 0; cut < example.log.size(); cut += 97) {
      std::string log = example.log.substr(0, cut) + "\xff\x1b[31m\xc2\x9b" + example.log.substr(cut / 2);
      const LogCause cause = find_log_cause(log, example.status());
      for (const std::string* part : {&cause.what, &cause.place, &cause.from, &cause.beside}) {
        CHECK(part->size() <= 300);
        CHECK(*part == printable(*part));
      }
    }
  }
}

// What any line is compared with most often, or begins a search; 30 MB/s would be 9 ms for the most that is read.
TEST_CASE("a log that is made to keep us busy is judged in less than a second") {
  for (const char* line :
       {"Traceback (most recent call last):\n", "  File \"a.py\", line 3, in f\n", "panic: x\n", ": line \n",
        "Fatal Python error: \n", "  | \n", "\n", "╭ Traceback (most recent call last)\n",
        "(): ", "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: x\n",
        "During handling of the above exception, another exception occurred:\n", "x"}) {
    std::string log;
    while (log.size() < 300 * 1024) log += line;
    CHECK(testing::processor_seconds_of([&] { find_log_cause(log, exited(1)); }) < 1 * testing::kSlowdown);
  }
}

TEST_CASE("lines after a traceback that could be its message or work are judged in less than a second") {
  std::size_t number = 0;
  for (const char* line :
       {"step %: loss 2\n", "line % of the compiler\n", "10:41:03 %\n", "\n", "retrying %\n", "1 %"}) {
    std::string log =
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nValueError: x\n";
    const std::string text = line;
    for (std::string filler; filler.size() < 120 * 1024; ++number) {
      const auto place = text.find('%');
      filler += place == std::string::npos
                    ? text
                    : text.substr(0, place) + std::to_string(number) + text.substr(place + 1);
      if (filler.size() >= 120 * 1024) log = filler + log + filler;
    }
    CHECK(testing::processor_seconds_of([&] { find_log_cause(log, exited(1)); }) < 1 * testing::kSlowdown);
  }
}

TEST_CASE("programs of a script that fail because the script has ended are not named") {
  const std::string own =
      "Traceback (most recent call last):\n  File \"/me/train.py\", line 6, in <module>\nValueError: label 12\n";
  const std::string helper =
      "Traceback (most recent call last):\n  File \"/me/help.py\", line 2, in <module>\nRuntimeError: no data\n";
  const std::string fragment = "  File \"/lib/json.py\", line 355, in raw_decode\nJSONDecodeError: x\n";
  const auto named = [](const std::string& log, const char* script) {
    return find_log_cause(log, exited(1), script).what;
  };
  CHECK(named(own + helper, "train.py") == "ValueError: label 12");
  CHECK(named(own + helper + fragment + fragment, "./train.py") == "ValueError: label 12");
  CHECK(named(helper + own, "train.py") == "ValueError: label 12");
  CHECK(named(own + helper, "") == "RuntimeError: no data");
  CHECK(named(own + "loading data\n" + helper, "train.py") == "RuntimeError: no data");
  CHECK(named(helper, "train.py") == "RuntimeError: no data");
  const std::string on_helper =
      "Traceback (most recent call last):\n  File \"/me/train.py\", line 9, in <module>\n"
      "subprocess.CalledProcessError: Command 'help.py' returned non-zero exit status 1.\n";
  CHECK(named(helper + on_helper, "train.py") == "RuntimeError: no data");
  CHECK(named(own + "step 5, loss 2\nstep 6, loss 1\n" + helper + on_helper, "train.py") ==
        "RuntimeError: no data");
}

TEST_CASE(
    "an error of a helper that came after the death of the rank is not named, whatever stands before it") {
  const std::string own =
      "Traceback (most recent call last):\n  File \"/me/train.py\", line 6, in <module>\nValueError: label 12\n";
  const std::string helper =
      "the trainer is gone\nTraceback (most recent call last):\n"
      "  File \"/me/help.py\", line 2, in <module>\nRuntimeError: no data\n";
  const auto named = [](const std::string& before, const std::string& after, const char* script) {
    return find_log_cause(before + after, exited(1), script, after.size()).what;
  };
  CHECK(named(own, helper, "train.py") == "ValueError: label 12");
  CHECK(named(own, helper, "") == "RuntimeError: no data");  // a shell may have survived the first one
  CHECK(named(own + helper, "", "train.py") == "RuntimeError: no data");
  CHECK(named("", helper, "train.py") == "RuntimeError: no data");
  CHECK(named("", own + helper, "train.py") == "RuntimeError: no data");
  CHECK(named(own + "loading data\n", helper, "train.py") == "RuntimeError: no data");  // through a slow pipe
  const std::string later =
      "Traceback (most recent call last):\n  File \"/me/train.py\", line 9, in <module>\nKeyError: 'lr'\n";
  CHECK(named(own, later, "train.py") == "KeyError: 'lr'");
}

TEST_CASE("pieces of tracebacks and a complaint between two errors are no work, and everything else is") {
  const std::string own =
      "Traceback (most recent call last):\n  File \"/me/train.py\", line 6, in <module>\nValueError: label 12\n";
  const std::string helper =
      "Traceback (most recent call last):\n  File \"/me/help.py\", line 2, in <module>\nRuntimeError: no data\n";
  const auto named = [&](const std::string& between) {
    return find_log_cause(own + between + helper, exited(1), "train.py").what;
  };
  CHECK(named("    ^^^^^^^^\njson.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n") ==
        "ValueError: label 12");
  CHECK(named("  File \"/lib/json.py\", line 3, in loads\n    decode(x)\n\n") == "ValueError: label 12");
  CHECK(named("2026-11-28 19:02:11,004 ERROR root: the server stops\n") == "ValueError: label 12");
  CHECK(named("Traceback (most recent call last):\n  File \"/me/help.py\", line 2, in <module>\n"
              "        loads(x)loads(x)\n\n                    ^^^^^^^\n   x\n") == "ValueError: label 12");
  // The script has caught its exception, and a program that it runs then fails.
  for (const char* between : {"loading data\n", " 99%|######### | 40/41 [00:03<00:00, 12.3it/s]\n",
                              "  epochs: 3\n# of parameters: 5\n", "WARNING: a\nWARNING: b\nWARNING: c\n",
                              "ERROR:root:GPU run failed, retrying on the CPU\n"}) {
    CAPTURE(std::string(between));
    CHECK(named(between) == "RuntimeError: no data");
  }
}

TEST_CASE("the script of a command is found") {
  CHECK(script_of({"python3", "-u", "a/train.py", "--lr", "1"}) == "a/train.py");
  CHECK(script_of({"/usr/bin/python3", "-um", "pk.train", "other.py"}) == "other.py");
  CHECK(script_of({"/usr/bin/python3", "-u", "-m", "pk.train", "other.py"}) == "pk/train.py");
  CHECK(script_of({"python3", "-mpk.train"}) == "pk/train.py");
  CHECK(script_of({"numactl", "-m", "0", "python3", "train.py"}) == "");
  CHECK(script_of({"bash", "-c", "python3 train.py"}) == "");
}

TEST_CASE("the main file of a package that runs with -m is its script") {
  const std::string own =
      "Traceback (most recent call last):\n  File \"<frozen runpy>\", line 198, in _run_module_as_main\n"
      "  File \"/me/pk/__main__.py\", line 6, in <module>\nValueError: label 12\n";
  const std::string helper =
      "Traceback (most recent call last):\n  File \"/me/help.py\", line 2, in <module>\nRuntimeError: no data\n";
  CHECK(find_log_cause(own + helper, exited(1), "pk.py").what == "ValueError: label 12");
}

TEST_CASE("a process of multiprocessing that has lost its parent is the last choice") {
  const std::string own =
      "Traceback (most recent call last):\n  File \"train.py\", line 6, in main\nValueError: label 12\n";
  const std::string child =
      "Process SpawnProcess-2:\nTraceback (most recent call last):\n"
      "  File \"/lib/multiprocessing/process.py\", line 314, in _bootstrap\n    self.run()\nEOFError\n";
  CHECK(find_log_cause(own + child, exited(1)).what == "ValueError: label 12");
  CHECK(find_log_cause(child, exited(1)).what == "EOFError");
  CHECK(find_log_cause("cannot open shard 7\n" + child, exited(3)).what.empty());
}

TEST_CASE("an exception is named, however many lines its message has") {
  for (const int count : {0, 1, 10, 11, 15, 100, 1000, 5000}) {
    CAPTURE(count);
    std::string log =
        "step 1, loss 2.3\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n"
        "RuntimeError: compile failed\n";
    for (int i = 0; i < count; ++i) log += "line " + std::to_string(i) + " of the compiler\n";
    CHECK(describe(find_log_cause(log, exited(1))) == "RuntimeError: compile failed (a.py:3, in <module>)");
  }
}

TEST_CASE("a traceback of 1,000 frames is named with its innermost place") {
  std::string log = "Traceback (most recent call last):\n";
  for (int i = 0; i < 1000; ++i)
    log += "  File \"/home/me/a/rather/long/path/tree.py\", line " + std::to_string(i + 1) +
           ", in visit\n    self.visit(node.children[0], depth + 1)\n    ^^^^^^^^^^^^^^^^^^^^^^^^^\n";
  const LogCause cause = find_log_cause(log + "ValueError: deep\n", exited(1));
  CHECK(describe(cause) == "ValueError: deep (/home/me/a/rather/long/path/tree.py:1000, in visit)");
}

TEST_CASE("the start of a traceback may be out of sight") {
  CHECK(describe(find_log_cause("    g(n)\n  File \"a.py\", line 3, in g\n    f()\nValueError: deep\n",
                                exited(1))) == "ValueError: deep (a.py:3, in g)");
}

TEST_CASE("the exception of the last traceback and its innermost place are found") {
  const char* log =
      "Traceback (most recent call last):\n  File \"old.py\", line 1, in <module>\nKeyError: 'old'\nloss 0.5\n"
      "Traceback (most recent call last):\n  File \"train.py\", line 20, in <module>\n    main()\n"
      "  File \"/home/me/train.py\", line 12, in main\n    raise ValueError(\"bad batch\")\n"
      "ValueError: bad batch\nsome thread says good bye\n";
  CHECK(describe(find_log_cause(log, exited(1))) == "ValueError: bad batch (/home/me/train.py:12, in main)");
}

TEST_CASE("a log without a traceback, or with the start of one only, has no exception") {
  for (const char* log : {"all is well", "Traceback (most recent call last):", ""})
    CHECK(find_log_cause(log, exited(1)).what.empty());
}

TEST_CASE("a shell's code for a signal is the signal") {
  const char* log = "s.sh: line 1: 19075 Aborted                 ./count\n";
  CHECK(describe(find_log_cause(log, exited(134))) == "Aborted: ./count (s.sh:1)");
  CHECK(find_log_cause("Traceback (most recent call last):\nValueError: x\n", exited(137)).what.empty());
}

TEST_CASE("breakpoint() and input() of a rank have a hint, since ranks do not read the terminal") {
  const auto ended_with = [](const std::string& exception) {
    return find_log_cause(
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n" + exception + "\n", exited(1));
  };
  CHECK(ended_with("bdb.BdbQuit").hint.find("--interactive=RANK") != std::string::npos);
  CHECK(ended_with("EOFError: EOF when reading a line").hint.find("do not read the terminal") !=
        std::string::npos);
  CHECK(ended_with("ValueError: x").hint.empty());
}

TEST_CASE("every row of the table has a pattern that compiles, and uses only groups that it has") {
  for (const Recogniser& row : recognisers()) {
    CAPTURE(row.pattern);
    const re2::RE2 pattern(re2::StringPiece(row.pattern.data(), row.pattern.size()));
    REQUIRE(pattern.ok());
    std::string problem;
    for (const std::string_view text : {row.what, row.place})
      CHECK(pattern.CheckRewriteString(re2::StringPiece(text.data(), text.size()), &problem));
    CHECK(row.endings != 0);
  }
}

}  // namespace
}  // namespace fleetrun::launch::log_cause_test
