// Ranks that lose their peer, and the error of the peer, which may have closed its connections long before it ends.
#include <fmt/format.h>

#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::lost_peer_test {
namespace {

// Rank 1 fails, closes its connections, and still tidies up when rank 0 has lost the connection and has ended.
const char* const kPartsBeforeItEnds =
    "import os, sys, time\n"
    "def read_shard():\n    raise FileNotFoundError('/data/shard-3.bin')\n"
    "def all_reduce():\n"
    "    while not os.path.exists('closed'): time.sleep(0.01)\n"
    "    raise RuntimeError('[gloo/transport/tcp/pair.cc:547] Connection closed by peer')\n"
    "if os.environ['RANK'] == '0': all_reduce()\n"
    "import atexit\n"
    "def end():\n    open('closed', 'w')\n    time.sleep(60)\n"
    "atexit.register(end)\n"
    "WHAT\n";

ChildResult run_with_error_of_rank_1(const Launch& launch, const std::string& what) {
  std::string script = kPartsBeforeItEnds;
  launch.folder.write("train.py", script.replace(script.find("WHAT"), 4, what));
  return launch.run_words({"--nproc_per_node=2", "train.py"});
}

TEST_CASE("hunt 42: the report has the error of a rank that closes its connections long before it ends") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  const ChildResult result = run_with_error_of_rank_1(launch, "read_shard()");
  CHECK(result.code == 1);
  const std::string sentence = "rank 1 had written an error before: FileNotFoundError: /data/shard-3.bin (";
  CHECK_MESSAGE(contains(result.err, "fleetrun: " + sentence), result.err);
  CHECK_MESSAGE(contains(result.err, "fleetrun: the last lines of log/workerlog.1:\n"), result.err);
  const nlohmann::json report = launch.report();
  CHECK(contains(report["message"].get<std::string>(), "; " + sentence));
  CHECK(report["first_failed_rank"] == 0);
  CHECK(report["earlier_error"]["rank"] == 1);
  CHECK(report["earlier_error"]["log"] == "log/workerlog.1");
}

TEST_CASE(
    "hunt 42: an error that a rank has handled, or has by the signal that ends it, is not told as an earlier one") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  for (const char* what : {"import traceback\ntry: read_shard()\nexcept OSError: traceback.print_exc()\n"
                           "for i in range(30): print('step', i, 'loss 0.5', flush=True)\nend()",
                           "import signal\nsignal.signal(signal.SIGTERM, lambda *_: read_shard())\nend()"}) {
    const Launch launch;
    const ChildResult result = run_with_error_of_rank_1(launch, what);
    CHECK(result.code == 1);
    CHECK_FALSE_MESSAGE(contains(result.err, "had written an error before"), result.err);
    CHECK(launch.report()["earlier_error"].is_null());
  }
}

TEST_CASE("hunt 45: the report tells the oldest error of the running ranks, and skips lost connections") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write(
      "train.py",
      "import atexit, os, time\n"
      "rank = int(os.environ['RANK'])\n"
      "def wait_for(name):\n    while not os.path.exists(name): time.sleep(0.01)\n"
      "def end():\n    open(f'failed.{rank}', 'w')\n    time.sleep(60)\n"
      "if rank < 3: atexit.register(end)\n"
      "if rank == 2: raise KeyError('culprit')\n"
      "wait_for('failed.2')\n"
      "if rank == 1: raise RuntimeError('Failed to recv, got 0 bytes. Connection was likely closed.')\n"
      "wait_for('failed.1')\n"
      "if rank == 0: raise ValueError('after the others')\n"
      "wait_for('failed.0')\n"
      "raise RuntimeError('Connection closed by peer')\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=4", "train.py"});
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "fleetrun: rank 2 had written an error before: KeyError: 'culprit' ("),
                result.err);
}

TEST_CASE("hunt 45: an error that the rank had handled before it lost its peer does not hide the peer's") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import atexit, os, time, traceback\n"
                      "try: import a_module_that_nobody_has\n"
                      "except ImportError: traceback.print_exc()\n"
                      "def end():\n    open('failed', 'w')\n    time.sleep(60)\n"
                      "if os.environ['RANK'] == '0':\n"
                      "    atexit.register(end)\n    raise FileNotFoundError('/data/shard-3.bin')\n"
                      "while not os.path.exists('failed'): time.sleep(0.01)\n"
                      "raise RuntimeError('Connection closed by peer')\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "train.py"});
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "fleetrun: RuntimeError: Connection closed by peer ("), result.err);
  CHECK_MESSAGE(
      contains(result.err,
               "fleetrun: rank 0 had written an error before: FileNotFoundError: /data/shard-3.bin ("),
      result.err);
}

// Rank 1 closes its connections and is then busy for a while, as in a `finally`, and does what `end` says. The others lose their peer.
ChildResult run_with_slow_end_of_rank_1(const Launch& launch, const std::string& end,
                                        const std::string& loss) {
  launch.folder.write(
      "train.py",
      "import os, signal, sys, time, traceback\n"
      "rank = int(os.environ['RANK'])\n"
      "def wait_for(name):\n    while not os.path.exists(name): time.sleep(0.01)\n"
      "def wait_for_end_of(other):\n"
      "    while not os.path.islink(f'pid.{other}'): time.sleep(0.01)\n"
      "    pid = os.readlink(f'pid.{other}')\n"
      "    while os.path.exists(f'/proc/{pid}/exe'): time.sleep(0.01)\n"  // not of one that has ended
      "def main():\n"
      "    try:\n"
      "        if rank == 1: raise KeyError('img_path')\n"
      "        wait_for('closed')\n"
      "        " +
          loss +
          "\n"
          "    finally:\n"
          "        if rank == 1:\n"
          "            open('closed', 'w')\n"
          "            for other in (0, 2): wait_for_end_of(other)\n"
          "            time.sleep(0.3)\n"  // what it tidies up takes longer than a stop would
          "            " +
          end +
          "\n"
          "if rank != 1: os.symlink(str(os.getpid()), f'pid.{rank}')\n"
          "main()\n");
  return launch.run_words({"--nproc_per_node=3", "train.py"});
}

constexpr const char* kLostPeer =
    "raise RuntimeError('[gloo/transport/tcp/pair.cc:547] Connection closed by peer')";

TEST_CASE("hunt 51: a rank that closes its connections in a `finally` has the time to print its error") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  const ChildResult result = run_with_slow_end_of_rank_1(launch, "pass", kLostPeer);
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "fleetrun: rank 1 had written an error before: KeyError: 'img_path' ("),
                result.err);
  CHECK_MESSAGE(
      contains(result.err, "fleetrun: rank 1 exited with code 1 before fleetrun asked it to stop\n"),
      result.err);
  CHECK(launch.report()["ranks"][1]["role"] == "failed_too");
}

TEST_CASE("hunt 54: a rank that ends by itself while the death of its peer waits is not told as stopped") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  struct Case {
    const char *end, *told;
  };
  for (const Case& one : {Case{"os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL (9)"},
                          {"os._exit(3)", "exited with code 3"}}) {
    const Launch launch;
    const ChildResult result = run_with_slow_end_of_rank_1(launch, one.end, kLostPeer);
    CHECK(result.code == 1);
    CHECK_MESSAGE(
        contains(result.err, fmt::format("fleetrun: rank 1 {} before fleetrun asked it to stop\n", one.told)),
        result.err);
    CHECK_FALSE_MESSAGE(contains(result.err, "stopped by fleetrun: rank 1"), result.err);
  }
}

// Rank 1 has an uncaught exception, closes its connections, and loses two of them itself while it leaves its `with` blocks.
TEST_CASE(
    "hunt 81: if a rank fails and then loses two connections while it cleans up, the report has its first error") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  const ChildResult result =
      run_with_slow_end_of_rank_1(launch,
                                  "try: raise BrokenPipeError(32, 'Broken pipe')\n"
                                  "            finally: raise BrokenPipeError(32, 'Broken pipe')",
                                  kLostPeer);
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "fleetrun: rank 1 had written an error before: KeyError: 'img_path' ("),
                result.err);
}

TEST_CASE("hunt 54: ranks that tell of a lost connection in another way wait for their peer, too") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  struct Case {
    const char* loss;
    int code;
  };
  for (const Case& one :
       {Case{"sys.stderr.write('terminate called ... NCCL error: remote process exited\\n'); os.abort()",
             134},
        {"try: raise ConnectionResetError('Connection reset by peer')\n"
         "        except OSError: traceback.print_exc(); os._exit(2)",
         2},
        {"try: raise ConnectionResetError('Connection reset by peer')\n"
         "        except OSError as e: raise RuntimeError('the gradients cannot be summed') from e",
         1},
        {"sys.exit('error: failed to recv, got 0 bytes')", 1},
        // hunt 81
        {"try:\n"
         "            try: raise ConnectionResetError('Connection reset by peer')\n"
         "            except OSError as e: raise RuntimeError('all_reduce failed') from e\n"
         "        except RuntimeError as e: raise ValueError('step 3 failed') from e",
         1},
        {"sys.stderr.write('all_reduce failed: Connection reset by peer\\n')\n"
         "        raise RuntimeError('training stopped') from None",
         1},
        {"sys.stderr.write('training failed: Connection reset by peer\\n')\n"
         "        print('saved emergency checkpoint at step 3')\n"
         "        sys.exit(1)",
         1},
        {"sys.stderr.write('training failed: Connection reset by peer\\n')\n"
         "        for i in range(12): print('wandb: metric', i, 'of the run' + 60 * '.')\n"
         "        sys.exit(1)",
         1}}) {
    CAPTURE(one.loss);
    const Launch launch;
    const ChildResult result = run_with_slow_end_of_rank_1(launch, "pass", one.loss);
    CHECK(result.code == one.code);
    CHECK_MESSAGE(
        contains(result.err, "fleetrun: rank 1 had written an error before: KeyError: 'img_path' ("),
        result.err);
  }
}

TEST_CASE("hunt 60: a rank that has lost its peer waits for it also if its log goes on with another error") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  const ChildResult result = run_with_slow_end_of_rank_1(
      launch, "pass",
      std::string("import atexit; atexit.register(lambda: {}['tracker is closed']); ") + kLostPeer);
  CHECK(result.code == 1);
  CHECK_MESSAGE(contains(result.err, "fleetrun: rank 1 had written an error before: KeyError: 'img_path' ("),
                result.err);
}

TEST_CASE("hunt 60: an error counts also if the rank then lost its peers itself") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  for (const char* then :
       {"raise RuntimeError('Timed out waiting 30000ms for recv operation to complete')",
        "import threading\n"
        "            def pin():\n"
        "                threading.main_thread().join()\n"  // which ends after it has printed its exception
        "                raise ConnectionResetError('Connection reset by peer')\n"
        "            threading.Thread(target=pin).start()"}) {
    CAPTURE(then);
    const Launch launch;
    const ChildResult result = run_with_slow_end_of_rank_1(launch, then, kLostPeer);
    CHECK(result.code == 1);
    CHECK_MESSAGE(
        contains(result.err, "fleetrun: rank 1 had written an error before: KeyError: 'img_path' ("),
        result.err);
  }
}

TEST_CASE("hunt 54: an error that a silent rank has logged long before is not told as an earlier one") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import logging, os, time\n"
                      "if os.environ['RANK'] == '1':\n"
                      "    try: open('/no/such/shard')\n"
                      "    except OSError: logging.exception('shard 3 is missing, another one is read')\n"
                      "    os.utime(2, (time.time() - 10, time.time() - 10))\n"  // as if it was written then
                      "    open('logged', 'w')\n"
                      "    time.sleep(60)\n"
                      "while not os.path.exists('logged'): time.sleep(0.01)\n"
                      "raise ConnectionResetError('Connection reset by peer')\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "train.py"});
  CHECK(result.code == 1);
  CHECK_FALSE_MESSAGE(contains(result.err, "had written an error before"), result.err);
}

// Every rank warns at the start, and then prints nothing for a long time.
const char* const kWarnsAtStart =
    "import atexit, os, time, traceback\n"
    "rank = int(os.environ['RANK'])\n"
    "def wait_for(name):\n    while not os.path.exists(name): time.sleep(0.01)\n"
    "try: import no_such_fast_attention\nexcept ImportError: traceback.print_exc()\n"
    "os.utime(2, (time.time() - 10, time.time() - 10))\n"  // as if it was written then
    "open(f'warned.{rank}', 'w')\n";

TEST_CASE("hunt 63: the error of one rank comes before what several ranks have written at the start") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py", std::string(kWarnsAtStart) +
                                      "def end():\n    open('failed', 'w')\n    time.sleep(60)\n"
                                      "if rank == 2:\n"
                                      "    atexit.register(end)\n"
                                      "    raise ValueError('bad label 1001')\n"
                                      "wait_for('failed')\n"
                                      "time.sleep(60)\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=3", "--timeout=3", "train.py"});
  CHECK_MESSAGE(contains(result.err, "rank 2 had written an error before: ValueError: bad label 1001 ("),
                result.err);
}

TEST_CASE("hunt 63: what a rank that ended with 0 has written long before is not told as an earlier error") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py", std::string(kWarnsAtStart) +
                                      "if rank == 1: os._exit(0)\n"
                                      "wait_for('warned.1')\n"
                                      "os.ftruncate(2, 0)\n"  // its own warning is out of sight
                                      "raise ConnectionResetError('Connection reset by peer')\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "train.py"});
  CHECK(result.code == 1);
  CHECK_FALSE_MESSAGE(contains(result.err, "had written an error before"), result.err);
}

TEST_CASE("hunt 51: the lines below an exception may be those that tell of a lost peer") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  for (
      const char* message :
      {"NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error, NCCL version 2.20.5\\nncclSystemError: System call "
       "failed. \\nLast error:\\nsocketProgress: Connection closed by remote peer node1<51234>",
       "The client socket has timed out after 60000ms while trying to connect to (127.0.0.1, 29500).",
       "wait timeout after 300000ms, keys: /default_pg/0//1",
       "Horovod has been shut down. This was caused by an exception on one of the ranks"}) {
    CAPTURE(message);
    const Launch launch;
    std::string script = kPartsBeforeItEnds;
    const std::string usual = "[gloo/transport/tcp/pair.cc:547] Connection closed by peer";
    script.replace(script.find(usual), usual.size(), message);
    launch.folder.write("train.py", script.replace(script.find("WHAT"), 4, "read_shard()"));
    const ChildResult result = launch.run_words({"--nproc_per_node=2", "train.py"});
    CHECK(result.code == 1);
    CHECK_MESSAGE(contains(result.err, "fleetrun: rank 1 had written an error before: FileNotFoundError: "),
                  result.err);
  }
}

TEST_CASE("hunt 51: an aborted rank that tells of a lost peer leads to the error of the peer") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write(
      "train.py",
      "import atexit, os, sys, time\n"
      "def end():\n    open('closed', 'w')\n    time.sleep(60)\n"
      "if os.environ['RANK'] == '0':\n"
      "    atexit.register(end)\n    raise KeyError('img_path')\n"
      "while not os.path.exists('closed'): time.sleep(0.01)\n"
      "sys.stderr.write('[PG 0 Rank 1] Terminating the process after attempting to dump debug info, due to "
      "ProcessGroupNCCL watchdog hang.\\n')\n"
      "os.abort()\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "train.py"});
  CHECK(result.code == 134);
  CHECK_MESSAGE(contains(result.err, "fleetrun: rank 0 had written an error before: KeyError: 'img_path' ("),
                result.err);
}

TEST_CASE("hunt 51: the report of a hang tells the exception that came before it") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import atexit, os, time\n"
                      "if os.environ['RANK'] == '1':\n"
                      "    atexit.register(time.sleep, 60)\n    raise KeyError('img_path')\n"
                      "time.sleep(60)\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=2", "--hang_timeout=2", "train.py"});
  CHECK(result.code == 75);
  CHECK_MESSAGE(contains(result.err, "fleetrun: rank 1 had written an error before: KeyError: 'img_path' ("),
                result.err);
  CHECK(launch.report()["earlier_error"]["rank"] == 1);
}

TEST_CASE(
    "hunt 48: the report tells the error of a rank that logs it and ends with 0, and skips errors that all ranks have") {
  if (!has_program("python3")) LEAVE_OUT("python3 is not installed");
  const Launch launch;
  launch.folder.write("train.py",
                      "import logging, os, time, traceback\n"
                      "try: import a_module_that_nobody_has\n"
                      "except ImportError: traceback.print_exc()\n"
                      "def main(rank):\n"
                      "    if rank == 1: time.sleep(60)\n"
                      "    if rank == 2: raise FileNotFoundError('/data/shard-3.bin')\n"
                      "    while not os.path.exists('failed'): time.sleep(0.01)\n"
                      "    raise RuntimeError('Connection closed by peer')\n"
                      "rank = int(os.environ['RANK'])\n"
                      "if rank != 2: main(rank)\n"
                      "try: main(rank)\n"
                      "except Exception: logging.exception('training failed')\n"
                      "open('failed', 'w')\n");
  const ChildResult result = launch.run_words({"--nproc_per_node=3", "train.py"});
  CHECK(result.code == 1);
  CHECK_MESSAGE(
      contains(result.err,
               "fleetrun: rank 2 had written an error before: FileNotFoundError: /data/shard-3.bin ("),
      result.err);
}

}  // namespace
}  // namespace fleetrun::lost_peer_test
