#include "launch/report/python_stacks.h"

#include <doctest/doctest.h>

namespace fleetrun::launch::python_stacks_test {
namespace {

const PythonFrame kBarrier = {"barrier", "torch/distributed/distributed_c10d.py", 2784};
const PythonFrame kWrapper = {"wrapper", "torch/distributed/c10d_logger.py", 83};
const PythonFrame kMain = {"main", "/home/me/train.py", 12};
const PythonFrame kLoad = {"load", "/home/me/train.py", 7};

TEST_CASE("the main thread's frames are read from what py-spy writes") {
  const auto frames = parse_python_stack(
      "Process 7: python3 train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
      "Thread 9 (idle): \"loader\"\n    get (queue.py:171)\n"
      "Thread 7 (idle): \"MainThread\"\n    load (train.py:7)\n    <module> (a folder (1)/train.py:20)\n\n"
      "Thread 8 (active): \"other\"\n    f (x.py:1)\n");
  CHECK(frames ==
        std::vector<PythonFrame>{{"load", "train.py", 7}, {"<module>", "a folder (1)/train.py", 20}});
}

TEST_CASE("the same from what faulthandler writes") {
  const auto frames = parse_python_stack(
      "step 12\nThread 0x00007f01 (most recent call first):\n  File \"/usr/lib/python3.11/queue.py\", line 171 in get\n\n"
      "Current thread 0x00007f02 (most recent call first):\n"
      "  File \"/home/me/train.py\", line 7 in load\n  File \"/home/me/train.py\", line 20 in <module>\n");
  CHECK(frames ==
        std::vector<PythonFrame>{{"load", "/home/me/train.py", 7}, {"<module>", "/home/me/train.py", 20}});
}

TEST_CASE("a stack of gdb, or one that is cut off, has no Python frames") {
  CHECK(parse_python_stack("[New LWP 7]\n#0  0x0 in clock_nanosleep () from libc.so.6\n").empty());
  CHECK(parse_python_stack("Thread 7 (idle): \"MainThread\"\n    load (train.py").empty());
  CHECK(parse_python_stack("").empty());
}

TEST_CASE("a rank in the user's code is told from those that wait in a library, also when it is one of two") {
  CHECK(
      compare_python_stacks({{0, {kBarrier, kWrapper, kMain}}, {1, {kLoad, kMain}}}) ==
      "rank 1 is in load (train.py:7); the others wait in barrier (distributed_c10d.py:2784), called in main (train.py:12)");
}

TEST_CASE("ranks that wait at different places: the minority is named; of two each") {
  const PythonFrame save = {"save", "/home/me/train.py", 30};
  CHECK(
      compare_python_stacks({{0, {kBarrier, kMain}}, {1, {kBarrier, save}}, {2, {kBarrier, kMain}}}) ==
      "rank 1 is in barrier (distributed_c10d.py:2784), called in save (train.py:30); the others in barrier "
      "(distributed_c10d.py:2784), called in main (train.py:12)");
  CHECK(compare_python_stacks({{0, {kLoad}}, {1, {save}}}) ==
        "rank 0 is in load (train.py:7); rank 1 is in save (train.py:30)");
}

TEST_CASE("ranks at one place, and ranks without stacks, do not differ") {
  CHECK(compare_python_stacks({{0, {kLoad}}, {1, {kLoad}}, {2, {}}}).empty());
  CHECK(compare_python_stacks({{0, {kLoad}}}).empty());
  CHECK(compare_python_stacks({}).empty());
}

}  // namespace
}  // namespace fleetrun::launch::python_stacks_test
