// Victims of a lost peer and ranks that fail by themselves, by the ends of their logs.
#include "launch/evidence/lost_peer.h"

#include <csignal>
#include <string>

#include <doctest/doctest.h>

#include "launch/evidence/log_cause.h"

namespace fleetrun::launch::lost_peer_test {
namespace {

constexpr const char* kScript = "train.py";

ExitStatus exited(int code) { return {ExitStatus::How::exited, code}; }

std::string traceback(const std::string& line, const std::string& in, const std::string& exception) {
  return "Traceback (most recent call last):\n  File \"/me/train.py\", line " + line + ", in " + in +
         "\n    work()\n" + exception + "\n";
}

const std::string kReset = "ConnectionResetError: [Errno 104] Connection reset by peer";
const std::string kHandling = "\nDuring handling of the above exception, another exception occurred:\n\n";
const std::string kDirect = "\nThe above exception was the direct cause of the following exception:\n\n";

bool fails_by_itself(const std::string& log) {
  return names_own_error(log, kScript, find_log_cause(log, exited(1), kScript).what);
}

TEST_CASE(
    "a rank whose own exception ends it fails by itself, whatever its threads and exit handlers say later") {
  const std::string own = traceback("30", "<module>", "ValueError: label 1000");
  for (const std::string& later :
       {std::string(),
        "Exception ignored in: <function Loader.__del__>\n" + traceback("9", "__del__", kReset),
        "Exception in thread Thread-1 (pin):\n" + traceback("9", "pin", kReset),
        "ERROR:root:cannot upload\n" + traceback("9", "flush", kReset),
        "Process Process-1:\n" + traceback("9", "produce", kReset)}) {
    CAPTURE(later);
    CHECK(fails_by_itself(own + later));
    CHECK_FALSE(find_lost_peer(own + later, kScript));
    CHECK_FALSE(is_victim(own + later, kScript));
    CHECK(find_log_cause(own + later, exited(1), kScript).what == "ValueError: label 1000");
  }
}

TEST_CASE("a rank that tells of a lost peer does not fail by itself, however it wraps that") {
  for (const std::string& log :
       {traceback("30", "<module>", kReset),
        traceback("30", "<module>", "ConnectionResetError: Connection lost"),
        traceback("30", "<module>", "BrokenPipeError"),
        traceback("30", "<module>", "aiohttp.ClientConnectionError: Cannot write to closing transport"),
        traceback("9", "reduce", kReset) + kDirect + traceback("12", "step", "CommError: all_reduce failed") +
            kDirect + traceback("30", "<module>", "TrainingError: step 3 failed"),
        "ERROR:root:all_reduce failed: Connection reset by peer\n" +
            traceback("30", "<module>", "RuntimeError: training stopped"),
        "ERROR:root:step failed\n" + traceback("9", "step", kReset) +
            traceback("30", "<module>", "RuntimeError: training aborted, see above")}) {
    CAPTURE(log);
    CHECK_FALSE(fails_by_itself(log));
  }
}

TEST_CASE("a lost peer that the rank survived does not count") {
  std::string log = "ERROR:root:upload failed\n" + traceback("9", "upload", kReset);
  for (int i = 0; i < 20; ++i) log += "step " + std::to_string(i) + " loss 0.5\n";
  CHECK_FALSE(find_lost_peer(log, kScript));
  CHECK_FALSE(ends_with_lost_peer(log, exited(3)));
  CHECK(ends_with_lost_peer(log + "error: Connection reset by peer\nsaved a checkpoint at step 19\n",
                            exited(3)));
}

// SharedMeeting writes these. The neighbour itself may have lost a rank on another node.
TEST_CASE("a rank of the embedded runtime that waited for a neighbour which is gone tells of a lost peer") {
  const std::string begin = "rank 3: error: rank 3: collective 66, broadcast of 3080 f32 from rank 2: ";
  const std::string end = "\n  while running all_reduce (f2.weight@GRAD)\n";
  for (const char* const words :
       {"waited for rank 2 (its process has ended)", "waited for rank 2 (it has left)",
        "waited for rank 0 (so did rank 2, in collective 33)"}) {
    CAPTURE(words);
    CHECK(ends_with_lost_peer(begin + words + end, exited(75)));
  }
  for (const char* const words : {"waited for rank 2 (nothing for 300 s; last seen in collective 65)",
                                  "rank 2 failed in collective 33, where it waited for this rank"})
    CHECK_FALSE(ends_with_lost_peer(begin + words + end, exited(75)));
}

TEST_CASE("the cause of a chain is kept: what was being handled, and the first exception") {
  const std::string cleanup = traceback("9", "read", "KeyError: 'path'") + kHandling +
                              traceback("12", "close", kReset) + kHandling +
                              traceback("30", "<module>", kReset);
  CHECK(find_log_cause(cleanup, exited(1), kScript).handled == "KeyError: 'path' (/me/train.py:9, in read)");
  const std::string words = traceback("9", "get", "_queue.Empty") + kDirect +
                            traceback("30", "<module>", "RuntimeError: Timed out waiting for rank 1");
  CHECK(find_log_cause(words, exited(1), kScript).handled.empty());
}

TEST_CASE("a signal other than SIGABRT is no lost peer, also below a shell") {
  CHECK(may_end_by_lost_peer(exited(1)));
  CHECK(may_end_by_lost_peer(exited(128 + SIGABRT)));
  CHECK(may_end_by_lost_peer({ExitStatus::How::signaled, SIGABRT}));
  CHECK_FALSE(may_end_by_lost_peer(exited(128 + SIGKILL)));
  CHECK_FALSE(may_end_by_lost_peer({ExitStatus::How::signaled, SIGKILL}));
}

// The headline of the thread and that of the script have changed places, because both write at the same time.
TEST_CASE("hunt 84: the script's exception is named although a thread writes its own between the lines") {
  const std::string log =
      "Traceback (most recent call last):\nException in thread Thread-1 (prefetch):\n" +
      traceback("7", "<module>", "AssertionError: loss is nan at epoch 2") +
      "  File \"/usr/lib/python3.11/threading.py\", line 1045, in _bootstrap_inner\n    self.run()\n"
      "  File \"/me/train.py\", line 4, in prefetch\n    work()\nRuntimeError: prefetch: closed while reading\n";
  CHECK(find_log_cause(log, exited(1), kScript).what == "AssertionError: loss is nan at epoch 2");
  CHECK(fails_by_itself(log));
}

// A handled exception of the top level, and the real one in a function that stands below it.
TEST_CASE("an exception that a script survived at its top level does not hide the one that it logs later") {
  const std::string import = traceback("3", "<module>", "ModuleNotFoundError: No module named 'apex'");
  const std::string real =
      "ERROR:root:training failed\n" + traceback("40", "main", "FileNotFoundError: /data/shard-3.bin");
  CHECK(find_log_cause(import + real, exited(1), kScript).what == "FileNotFoundError: /data/shard-3.bin");
  CHECK_FALSE(fails_by_itself(import + "ERROR:root:training failed\n" + traceback("40", "main", kReset)));
}

// A child that fails and closes its pipe leads to the exception of its parent.
TEST_CASE("a child's own error comes before the broken pipe of the script") {
  const std::string log = traceback("30", "<module>", "BrokenPipeError: [Errno 32] Broken pipe") +
                          "Process Process-1:\n" + traceback("9", "act", "ValueError: bad action");
  CHECK(find_log_cause(log, exited(1), kScript).what == "ValueError: bad action");
}

}  // namespace
}  // namespace fleetrun::launch::lost_peer_test
