#include "runtime/exec/graph_runner.h"

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <numeric>
#include <random>

#include "base/error.h"

namespace fleetrun::runtime {
namespace {

TaskGraph random_graph(int tasks, unsigned seed) {
  std::mt19937 random(seed);
  TaskGraph graph(static_cast<std::size_t>(tasks));
  for (int after = 1; after < tasks; ++after)
    for (int edge = 0; edge < 3; ++edge)
      if (random() % 2 == 0) graph.add_edge(static_cast<int>(random() % static_cast<unsigned>(after)), after);
  return graph;
}

// Counts how often each task ran, and whether it ever ran before one that it waits for.
struct Watch {
  explicit Watch(const TaskGraph& watched) : graph(watched), runs(watched.size()) {}

  void run_task(int task) {
    ++runs[static_cast<std::size_t>(task)];
    for (const int successor : graph.successors[static_cast<std::size_t>(task)])
      if (runs[static_cast<std::size_t>(successor)] >= runs[static_cast<std::size_t>(task)]) disorder = true;
  }

  const TaskGraph& graph;
  std::vector<std::atomic<int>> runs;
  std::atomic<bool> disorder{false};
};

TEST_CASE("every task runs once in each run, after those it waits for, on any number of threads") {
  for (const int threads : {1, 2, 3, 8, 16}) {
    const TaskGraph graph = random_graph(200, static_cast<unsigned>(threads));
    Watch watch(graph);
    GraphRunner runner(graph, {.threads = threads, .run_task = [&](int task) { watch.run_task(task); }});
    for (int run = 0; run < 20; ++run) runner.run();
    for (const auto& runs : watch.runs) CHECK(runs == 20);
    CHECK_FALSE(watch.disorder);
  }
}

TEST_CASE("one thread runs the tasks in the order of their numbers, on the thread of the caller") {
  std::vector<int> order;
  std::vector<std::thread::id> threads;
  GraphRunner runner(random_graph(50, 1), {.threads = 1, .run_task = [&](int task) {
                                             order.push_back(task);
                                             threads.push_back(std::this_thread::get_id());
                                           }});
  runner.run();
  std::vector<int> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(order == expected);
  for (const auto& thread : threads) CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("as many independent tasks are in flight as there are threads") {
  std::latch all_there(4);
  GraphRunner runner(TaskGraph(4), {.threads = 4, .run_task = [&](int) { all_there.arrive_and_wait(); }});
  runner.run();  // would hang if two of the four ran one after the other
  CHECK(all_there.try_wait());
}

TEST_CASE("an urgent task goes before others that are ready") {
  // Task 1 holds one of two threads until the rest is done, so the other runs 0 and then what 0 releases.
  TaskGraph graph(7);
  for (int task = 2; task < 7; ++task) graph.add_edge(0, task);
  graph.urgent[6] = true;
  std::latch rest_done(5);
  std::vector<int> order;  // only ever touched by the thread that is free
  GraphRunner runner(graph, {.threads = 2, .run_task = [&](int task) {
                               if (task == 1) rest_done.wait();
                               if (task < 2) return;
                               order.push_back(task);
                               rest_done.count_down();
                             }});
  runner.run();
  CHECK(order == std::vector<int>{6, 2, 3, 4, 5});
}

TEST_CASE("the first exception ends the run and reaches the caller, and the next run works") {
  for (const int threads : {1, 3}) {
    std::atomic<bool> broken{true};
    std::atomic<int> after{0};
    TaskGraph graph(3);
    graph.add_edge(0, 1);
    graph.add_edge(1, 2);
    GraphRunner runner(graph, {.threads = threads, .run_task = [&](int task) {
                                 if (task == 1 && broken) throw Error(ErrorKind::internal, "task 1 broke");
                                 if (task == 2) ++after;
                               }});
    CHECK_THROWS_WITH_AS(runner.run(), "task 1 broke", Error);
    CHECK(after == 0);
    broken = false;
    runner.run();
    CHECK(after == 1);
  }
}

TEST_CASE("each thread is entered once, before its first task") {
  std::atomic<int> entered{0};
  {
    GraphRunner runner(random_graph(20, 3),
                       {.threads = 3, .run_task = [](int) {}, .enter_thread = [&] { ++entered; }});
    for (int run = 0; run < 5; ++run) runner.run();
  }
  CHECK(entered == 3);
}

}  // namespace
}  // namespace fleetrun::runtime
