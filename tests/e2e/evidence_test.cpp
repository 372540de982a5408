// What the report says about why a rank died, and what becomes of logs that are odd, with the real launcher.
#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::evidence_test {
namespace {

// The exception that the report names for a script; "" when it names none.
std::string exception_of(const std::string& script) {
  const Launch launch;
  launch.folder.write("train.py", script);
  const ChildResult result = launch.run_words({"train.py"});
  CHECK(result.code != 0);
  const auto exception = launch.report()["exception"];
  if (exception.is_null()) return "";
  CHECK(contains(result.err, "fleetrun: " + exception.get<std::string>() + "\n"));
  return exception;
}

TEST_CASE("deep_traceback.py, rank_prefix.py, exception_group.py, a SyntaxError: the exception is named") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  CHECK(exception_of("def f(n):\n    if n == 0: raise ValueError('the real cause')\n    g(n)\n"
                     "def g(n):\n    f(n - 1)\nf(12)\n")
            .starts_with("ValueError: the real cause ("));
  CHECK(exception_of("import sys, io\nold = sys.excepthook\n"
                     "def hook(*a):\n    e = sys.stderr; sys.stderr = b = io.StringIO()\n"
                     "    try: old(*a)\n    finally: sys.stderr = e\n"
                     "    for s in b.getvalue().split('\\n'): e.write(f'[rank0]: {s}\\n' if s else '\\n')\n"
                     "sys.excepthook = hook\ndef main(): raise RuntimeError('CUDA out of memory')\nmain()\n")
            .starts_with("RuntimeError: CUDA out of memory ("));
  CHECK(exception_of("def f(:\n    pass\n").starts_with("SyntaxError: "));
  CHECK(exception_of("class Überlauf(Exception): pass\nraise Überlauf('voll')\n").find("Überlauf: voll (") !=
        std::string::npos);
  CHECK(exception_of("def f():\n    class Full(Exception): pass\n    raise Full('no space')\nf()\n")
            .find("Full: no space (") != std::string::npos);
  if (run_child({"/bin/sh", "-c", "python3 -c 'ExceptionGroup'"}).code != 0)
    LEAVE_OUT("exception groups need Python 3.11");
  CHECK(exception_of("raise ExceptionGroup('eg', [ValueError('a'), KeyError('b')])\n")
            .starts_with("ExceptionGroup: eg (2 sub-exceptions): ValueError: a; KeyError: 'b' ("));
}

TEST_CASE("hunt 4: what the helpers of a rank write after its death is not why it failed") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  for (const char* end : {"raise RuntimeError('terminated by SIGTERM')",
                          "[print('closing connection', i) for i in range(100)], sys.exit(0)"}) {
    const Launch launch;
    launch.folder.write("helper.py", std::string("import os, signal, sys, time, traceback\n"
                                                 "def end(*_):\n  ") +
                                         end +
                                         "\n"
                                         "signal.signal(signal.SIGTERM, end)\nopen('up', 'w').close()\n"
                                         "while True: time.sleep(0.02)\n");
    launch.folder.write("train.py",
                        "import os, subprocess, sys, time\n"
                        "subprocess.Popen([sys.executable, 'helper.py'])\n"
                        "while not os.path.exists('up'): time.sleep(0.01)\n"
                        "raise ValueError('label 12 is out of range')\n");
    const ChildResult result = launch.run_words({"train.py"});
    CHECK(result.code == 1);
    CHECK(launch.report()["exception"].get<std::string>().starts_with(
        "ValueError: label 12 is out of range ("));
    CHECK(contains(launch.report()["last_lines"].dump(), "ValueError: label 12"));
  }
}

// The end of a helper that loses its rank, and how the rank's program is started.
void check_helper_is_not_named(const std::string& end, const Words& command) {
  const Launch launch;
  launch.folder.write("helper.py", "import json, logging, sys\nprint('up', flush=True)\n" + end + "\n");
  launch.folder.write("train.py",
                      "import subprocess, sys\nfrom subprocess import PIPE\n"
                      "helper = subprocess.Popen([sys.executable, 'helper.py'], stdin=PIPE, stdout=PIPE)\n"
                      "helper.stdout.readline()\n"
                      "raise ValueError('label 12 is out of range')\n");
  CHECK(launch.run_words(command).code == 1);
  CHECK(
      launch.report()["exception"].get<std::string>().starts_with("ValueError: label 12 is out of range ("));
}

TEST_CASE("hunt 7: a helper that sees at once that its rank is dead is not named as the cause") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  check_helper_is_not_named("json.loads(sys.stdin.readline())", {"train.py"});
}

TEST_CASE("hunt 13: a helper that first logs an error, and one below `-m`, are not named") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  check_helper_is_not_named(
      "sys.stdin.read()\nprint('ERROR worker: lost the trainer', file=sys.stderr)\nraise OSError('gone')",
      {"train.py"});
  check_helper_is_not_named(
      "try: json.loads(sys.stdin.readline())\n"
      "except Exception: logging.exception('the server stops'); sys.exit(1)",
      {"train.py"});
  check_helper_is_not_named("json.loads(sys.stdin.readline())", {"-m", "train"});
}

TEST_CASE("hunt 7: a process of multiprocessing that loses its parent is not named as the cause") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const std::string named = exception_of(
      "import multiprocessing as mp\n"
      "def work(queue, up):\n    up.set()\n    queue.get()\n"
      "if __name__ == '__main__':\n"
      "    queue, up = mp.Manager().Queue(), mp.Event()\n"
      "    mp.Process(target=work, args=(queue, up)).start()\n"
      "    up.wait()\n"
      "    raise ValueError('label 12 is out of range')\n");
  CHECK_MESSAGE(named.starts_with("ValueError: label 12 is out of range ("), named);
  const std::string late = exception_of(
      "import multiprocessing as mp, socket\n"
      "def work(queue, up, address):\n"
      "    end = socket.socket(socket.AF_UNIX)\n"
      "    end.connect(address)\n"
      "    up.set()\n"
      "    while end.recv(1000): pass\n"  // until the manager has ended
      "    queue.get()\n"
      "if __name__ == '__main__':\n"
      "    manager = mp.Manager()\n"
      "    queue, up = manager.Queue(), mp.Event()\n"
      "    mp.Process(target=work, args=(queue, up, manager.address)).start()\n"
      "    up.wait()\n"
      "    raise ValueError('label 12 is out of range')\n");
  CHECK_MESSAGE(late.starts_with("ValueError: label 12 is out of range ("), late);
}

TEST_CASE("an exception is named whatever its message says, and not if the script caught it and trained on") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  CHECK(
      exception_of(
          "raise RuntimeError('compile failed\\n' + '\\n'.join('line %d of the compiler' % i for i in range(1000)))\n")
          .starts_with("RuntimeError: compile failed ("));
  CHECK(exception_of(
            "for i in range(120): print(f'step {i}, loss {9 - i / 100}', flush=True)\n"
            "def check(): raise FloatingPointError('the loss is not finite\\nstep 120, loss nan')\ncheck()\n")
            .starts_with("FloatingPointError: the loss is not finite ("));
  CHECK(exception_of("raise ValueError('shapes differ:\\nbatch 32 of the input\\nbatch 16 of the labels')\n")
            .starts_with("ValueError: shapes differ: ("));
  CHECK(exception_of("import sys, traceback\n"
                     "try: raise ConnectionError('mirror 1 timed out')\n"
                     "except ConnectionError: traceback.print_exc()\n"
                     "for i in range(3): print('step', i, 'loss 0.1', flush=True)\n"
                     "sys.exit('the accuracy is too low')\n")
            .empty());
}

TEST_CASE(
    "hunt 63: with stderr apart, an error there is not the cause if the script caught it and went on to stdout") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import os, sys, time, traceback\n"
                      "def load():\n    raise OSError('shard 3: checksum mismatch')\n"
                      "def main():\n"
                      "    try: load()\n"
                      "    except OSError: traceback.print_exc()\n"
                      "    os.utime(2, (time.time() - 10, time.time() - 10))\n"  // as if it was written then
                      "    print('ERROR: the validation loss diverged', flush=True)\n"
                      "    sys.exit(1)\n"
                      "main()\n");
  for (const char* apart : {"--tee=2", "--redirects=1"}) {
    const ChildResult result = launch.run_words({"--nproc_per_node=1", apart, "train.py"});
    CHECK(result.code == 1);
    CHECK_FALSE_MESSAGE(contains(result.err, "rank 0 exited with code 1: OSError"), result.err);
    CHECK_MESSAGE(contains(result.err, "ERROR: the validation loss diverged\n"), result.err);
  }
}

TEST_CASE(
    "hunt 66: with stderr apart, the cause is found in either log, and the last lines of both are shown") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const std::string load = "import logging, os, sys, time\ndef load():\n    raise OSError('no shard 3')\n";
  const std::string logged = "try: load()\nexcept OSError: logging.exception('the training failed')\n";
  const std::vector<std::string> scripts = {
      load + "logging.basicConfig()\n" + logged +
          "os.utime(2, (time.time() - 2, time.time() - 2))\nprint('closing the writers')\nsys.exit(1)\n",
      load + "logging.basicConfig(stream=sys.stdout)\n" + logged +
          "print('process group has NOT been destroyed', file=sys.stderr)\nsys.exit(1)\n"};
  for (const std::string& script : scripts) {
    const Launch launch;
    launch.folder.write("train.py", script);
    const ChildResult result = launch.run_words({"--nproc_per_node=1", "--redirects=2", "train.py"});
    CHECK(result.code == 1);
    CHECK_MESSAGE(contains(result.err, "fleetrun: OSError: no shard 3 ("), result.err);
    for (const char* log : {"workerlog.0", "workerlog.0.err"})
      CHECK_MESSAGE(contains(result.err, std::string("the last lines of log/") + log + ":\n"), result.err);
  }
}

TEST_CASE("hunt 66: with stderr apart, the earlier error of a rank may be in either log") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import logging, os, sys, time, warnings\n"
                      "warnings.warn('deprecated')\n"
                      "logging.basicConfig(stream=sys.stdout)\n"
                      "if os.environ['RANK'] == '1':\n"
                      "    try: open('/no/such/shard')\n"
                      "    except OSError: logging.exception('rank 1 gives up')\n"
                      "    open('failed', 'w')\n"
                      "    time.sleep(60)\n"
                      "while not os.path.exists('failed'): time.sleep(0.01)\n"
                      "raise ConnectionResetError('Connection reset by peer')\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "--redirects=2", "train.py"});
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "rank 1 had written an error before: FileNotFoundError: "), result.err);
}

TEST_CASE("handled_then_killed.py: an exception that was handled is not tied to a later SIGKILL") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  CHECK(exception_of("import traceback, os, signal\n"
                     "try: raise ConnectionError('mirror 1 timed out, trying mirror 2')\n"
                     "except ConnectionError: traceback.print_exc()\n"
                     "for i in range(10): print('step', i, 'loss 0.1', flush=True)\n"
                     "os.kill(os.getpid(), signal.SIGKILL)\n")
            .empty());
}

TEST_CASE("breakpoint() in a rank that does not read the terminal has a hint") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py", "breakpoint()\n");
  const ChildResult result = run_child(
      {"/bin/sh", "-c", "exec \"$@\" < /dev/null", "sh", FLEETRUN_BINARY, "train.py"}, launch.options());
  CHECK(result.code == 1);
  CHECK(contains(result.err, "fleetrun: bdb.BdbQuit ("));
  CHECK(contains(result.err, "--interactive=RANK gives one rank the terminal"));
}

TEST_CASE("tqdm_bar.py: a progress bar takes one line of the failure, in its last state") {
  const Launch launch;
  launch.folder.write("bar.sh",
                      "i=0; while [ $i -lt 900 ]; do printf '\\r%d of 1000 ##########' $i; i=$((i+1)); done\n"
                      "printf '\\n'; exit 3\n");
  const ChildResult result = launch.run_words({"/bin/sh", "bar.sh"});
  CHECK(result.code == 3);
  CHECK(contains(result.err, "fleetrun: the last lines of log/workerlog.0:\n    899 of 1000 ##########\n"));
  CHECK(launch.report()["last_lines"] == nlohmann::json({"899 of 1000 ##########"}));
}

TEST_CASE("logs --grep: a line of 60,000 letters is searched, and a bad pattern is refused with its place") {
  const Launch launch;
  std::filesystem::create_directory(launch.folder / "log");
  launch.folder.write("log/workerlog.0", std::string(60000, 'a') + "\n" + std::string(60000, 'a') + "b\n");
  const ChildResult result = launch.run_words({"logs", "--grep", "a.*b"});
  CHECK(result.code == 0);
  CHECK(result.out == std::string(60000, 'a') + "b\n");
  const ChildResult bad = launch.run_words({"logs", "--grep", "(a)\\1"});
  CHECK(bad.code == 2);
  CHECK(contains(
      bad.err,
      "--grep is \"(a)\\1\", not a regular expression: back references like \\1 are not supported, at character 4\n"));
}

TEST_CASE("a log rule that a line could keep busy for ever holds up nothing") {
  const Launch launch;
  launch.folder.write("x.sh",
                      "for i in 1 2 3; do printf 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx%s'"
                      " xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done\n"
                      "echo; exec sleep 100\n");
  const ChildResult result =
      launch.run_words({"--log_rule=(x+x+)+y within 1s", "--grace=0.1", "/bin/sh", "x.sh"});
  CHECK(result.code == 75);
  CHECK(result.seconds < 20);
}

// Lines come every 50 ms. The log is emptied when it is much longer than what comes after that, and when the rule's time
// has passed once, so that the rule and the console have read it.
TEST_CASE(
    "truncated_log_rule.py, truncated_log.py: a log that is emptied goes on, on the console and for rules") {
  const Launch launch;
  launch.folder.write("lines.sh",
                      "printf 'loss: start %01000d\\n' 0 1 2 3 4 5 6 7 8 9; n=0\n"
                      "while [ ! -e over ]; do echo 'loss: goes on'; n=$((n+1)); [ $n = 30 ] && : > up; "
                      "sleep 0.05; done\necho the end\n");
  ChildProcess process(
      {FLEETRUN_BINARY, "--log_rule=loss: within 1.5s", "--grace=0.1", "/bin/sh", "lines.sh"},
      launch.options());
  REQUIRE(comes_true([&] { return launch.folder.has("up"); }, 20s));
  std::ofstream(launch.folder / "log/workerlog.0", std::ios::trunc).close();
  const auto lines = [&] { return launch.folder.read("log/workerlog.0").size() / sizeof "loss: goes on"; };
  REQUIRE(comes_true([&] { return lines() >= 60; }, 30s));  // twice the rule's time
  launch.folder.write("over", "");
  const ChildResult result = process.wait();
  CHECK(result.code == 0);
  CHECK(contains(result.out, "loss: goes on\n"));
  CHECK(contains(result.out, "the end\n"));
}

TEST_CASE("long_lines.py: lines over 8 KiB of two ranks are not glued together") {
  const Launch launch;
  launch.folder.write("long.sh",
                      "long() { printf '%09000d' $1; }\n"
                      "if [ $RANK = 0 ]; then long 7; while [ ! -e two ]; do sleep 0.02; done; long 7; "
                      "echo END0; exit; fi\n"
                      "while [ $(wc -c < out) -lt 9000 ]; do sleep 0.02; done; echo short line; : > two\n");
  const ChildResult result = run_child({"/bin/sh", "-c", "exec \"$@\" > out", "sh", FLEETRUN_BINARY,
                                        "--nproc_per_node=2", "--console=all", "/bin/sh", "long.sh"},
                                       launch.options());
  CHECK(result.code == 0);
  CHECK(contains(launch.folder.read("out"), "\n[1] short line\n"));
}

TEST_CASE("own_file.py: a rank that writes its own file is not taken for one that hangs") {
  const Launch launch;
  launch.folder.write(
      "own.sh",
      "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do head -c 200000 /dev/zero >> own; sleep 0.2; done\n");
  CHECK(launch.run_words({"--hang_timeout=1", "--grace=0.1", "/bin/sh", "own.sh"}).code == 0);
  const ChildResult idle =
      launch.run_words({"--hang_timeout=1", "--grace=0.1", "/bin/sh", "-c", "sleep 100"});
  CHECK(idle.code == 75);
}

}  // namespace
}  // namespace fleetrun::evidence_test
