// Ranks that fail by themselves, although they or their helpers also tell of other errors: lost connections, and what goes wrong while Python
// leaves the script.
#include <sys/stat.h>

#include <fmt/format.h>

#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::own_error_test {
namespace {

// Rank 1 fails by itself. When it has ended, rank 0 fails because of that, in other words than those of a lost connection.
// The report has to name the error of rank 1, and nothing of rank 0.
void check_rank_1_is_the_cause(const std::string& part) {
  const Launch launch;
  launch.folder.write("fail.py", "import sys\n" + part);
  REQUIRE(::mkfifo((launch.folder / "pid").c_str(), 0600) == 0);
  launch.folder.write("train.py",
                      "import os, select\n"
                      "if os.environ['RANK'] == '1':\n"
                      "    with open('pid', 'w') as pid: pid.write(str(os.getpid()))\n"
                      "    os.execvp('python3', ['python3', '-u', 'fail.py'])\n"
                      "with open('pid') as pid: rank_1 = os.pidfd_open(int(pid.read()))\n"
                      "select.select([rank_1], [], [])\n"  // until it ends
                      "raise RuntimeError('unpack requires a buffer of 4 bytes')\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "train.py"});
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "fleetrun: ValueError: label 1000 is out of range ("), result.err);
  CHECK_FALSE_MESSAGE(contains(result.err, "had written an error before"), result.err);
  CHECK(launch.report()["first_failed_rank"] == 1);
}

TEST_CASE(
    "hunt 78: a connection that a destructor loses while Python leaves the rank does not replace the cause") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  check_rank_1_is_the_cause(
      "class Loader:\n"
      "    def __del__(self): raise ConnectionResetError(104, 'Connection reset by peer')\n"
      "loader = Loader()\n"
      "raise ValueError('label 1000 is out of range')\n");
}

// The lines of a thread that loses its connection stand between those of the exception.
TEST_CASE("hunt 78: a thread that loses its connection while the rank fails does not replace the cause") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  check_rank_1_is_the_cause(
      "sys.stderr.write(\"\"\"Traceback (most recent call last):\n"
      "Exception in thread Thread-1 (pin):\n"
      "Traceback (most recent call last):\n"
      "  File \"threading.py\", line 1045, in _bootstrap_inner\n"
      "    self.run()\n"
      "ConnectionResetError: [Errno 104] Connection reset by peer\n"
      "  File \"train.py\", line 34, in <module>\n"
      "    main()\n"
      "ValueError: label 1000 is out of range\n\"\"\")\n"
      "sys.exit(1)\n");
}

TEST_CASE("hunt 78: a lost connection that the rank survived does not replace the cause") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  struct Case {
    const char *end, *told;
    int code;
  };
  for (const Case& one :
       {Case{"os.kill(os.getpid(), signal.SIGKILL)", "fleetrun: rank 0 was killed by SIGKILL (9)", 137},
        {"import ctypes; ctypes.string_at(0)", "fleetrun: Fatal Python error: Segmentation fault", 139},
        {"sys.stderr.write(\"terminate called after throwing an instance of 'std::bad_alloc'\\n  what():  "
         "std::bad_alloc\\n\"); sys.stderr.flush(); os.abort()",
         "fleetrun: std::bad_alloc", 134}}) {
    CAPTURE(one.end);
    const Launch launch;
    launch.folder.write("train.py",
                        fmt::format("import logging, os, signal, sys, time\n"
                                    "rank = os.environ['RANK']\n"
                                    "def fail(error):\n    raise error\n"
                                    "def handle(error):\n"
                                    "    try: fail(error)\n"
                                    "    except Exception: logging.exception('goes on')\n"
                                    "if rank == '0': handle(ConnectionResetError(104, 'reset by peer: "
                                    "Connection reset'))\n"
                                    "for i in range(40): print('step', i, 'loss 0.5', flush=True)\n"
                                    "if rank == '1':\n"
                                    "    handle(OSError('cannot identify image file'))\n"
                                    "    open('failed', 'w')\n    time.sleep(60)\n"
                                    "while not os.path.exists('failed'): time.sleep(0.01)\n"
                                    "{}\n",
                                    one.end));
    const ChildResult result = launch.run_words({"--nproc_per_node=2", "train.py"});
    CHECK(result.code == one.code);
    CHECK_MESSAGE(contains(result.err, one.told), result.err);
    CHECK_FALSE_MESSAGE(contains(result.err, "ConnectionResetError"), result.err);
    CHECK_FALSE_MESSAGE(contains(result.err, "had written an error before"), result.err);
  }
}

TEST_CASE(
    "hunt 81: what an exit handler or a child reports after the exception of the script is not the cause") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  for (const char* part : {"import atexit, logging\n"
                           "def send(): raise OSError(113, 'No route to host')\n"
                           "def flush():\n"
                           "    try: send()\n"
                           "    except OSError: logging.exception('cannot upload the last metrics')\n"
                           "atexit.register(flush)\n"
                           "def main(): raise KeyError('image_42')\n",
                           "import multiprocessing, os, tempfile\n"
                           "multiprocessing.set_start_method('fork')\n"
                           "def write(path, go, gone):\n"
                           "    go.set(); gone.wait(); open(path + '/batch', 'w')\n"
                           "def main():\n"
                           "    go, gone = multiprocessing.Event(), multiprocessing.Event()\n"
                           "    folder = tempfile.TemporaryDirectory()\n"
                           "    multiprocessing.Process(target=write, args=(folder.name, go, gone)).start()\n"
                           "    go.wait()\n"
                           "    import atexit; atexit.register(gone.set); atexit.register(folder.cleanup)\n"
                           "    raise KeyError('image_42')\n"}) {
    const Launch launch;
    launch.folder.write("train.py", std::string(part) + "for i in range(3): print('step', i)\nmain()\n");
    const ChildResult result = launch.run_words({"--nproc_per_node=1", "train.py"});
    CHECK(result.code == 1);
    CHECK_MESSAGE(contains(result.err, "fleetrun: KeyError: 'image_42' ("), result.err);
  }
}

// Rank 1 fails, and its exit handlers log another exception and never end. Rank 0 waits for it.
TEST_CASE(
    "hunt 81: the report of a hang has the exception that ended a script, not that of its exit handler") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import atexit, logging, os, time\n"
                      "def push():\n"
                      "    try: raise ConnectionRefusedError(111, 'Connection refused')\n"
                      "    except OSError: logging.exception('cannot upload the last metrics')\n"
                      "def main(): raise KeyError('image_42')\n"
                      "if os.environ['RANK'] == '1':\n"
                      "    atexit.register(time.sleep, 60)\n    atexit.register(push)\n    main()\n"
                      "time.sleep(60)\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "--hang_timeout=2", "train.py"});
  CHECK(result.code == 75);
  CHECK_MESSAGE(contains(result.err, "fleetrun: rank 1 had written an error before: KeyError: 'image_42' ("),
                result.err);
}

// multiprocessing.Pool starts another worker, and map() waits for the result of the first one for ever. `after`: what rank 1 does in place of that.
ChildResult run_with_crash(const std::string& after) {
  const Launch launch;
  launch.folder.write("train.py",
                      "import ctypes, multiprocessing, os, threading, traceback\n"
                      "def decode(i): ctypes.string_at(0)\n"
                      "if __name__ == '__main__':\n"
                      "    if os.environ['RANK'] == '0': threading.Event().wait()\n"
                      "    try: open('settings')\n"
                      "    except OSError: traceback.print_exc()\n"
                      "    for step in range(20): print('step', step, 'loss 0.1')\n"
                      "    " +
                          after + "\n");
  return launch.run_words({"--nproc_per_node=2", "--hang_timeout=5", "train.py"});
}

TEST_CASE("hunt 140: the report of a hang has the crash of a process that the rank waits for") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const ChildResult result = run_with_crash("with multiprocessing.Pool(1) as pool: pool.map(decode, [0])");
  CHECK(result.code == 75);
  CHECK_MESSAGE(contains(result.err,
                         "fleetrun: rank 1 had written an error before: "
                         "Fatal Python error: Segmentation fault ("),
                result.err);
}

TEST_CASE("the report of a hang has no crash of a process after which the rank went on") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const ChildResult result = run_with_crash(
      "crash = multiprocessing.Process(target=decode, args=[0]); crash.start(); crash.join(); "
      "[print('step', step) for step in range(3)]; threading.Event().wait()");
  CHECK(result.code == 75);
  CHECK_FALSE_MESSAGE(contains(result.err, "had written an error before"), result.err);
}

}  // namespace
}  // namespace fleetrun::own_error_test
