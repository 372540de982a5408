#include "runtime/exec/graph_runner.h"

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <numeric>
#include <random>

#include "base/error/error.h"

namespace fleetrun::runtime::graph_runner_test {
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

TEST_CASE("every task runs once in each run with substitutes and with lanes") {
  for (const int threads : {1, 2, 4})
    for (const int lanes : {0, 3}) {
      TaskGraph graph = random_graph(200, static_cast<unsigned>(threads + 7));
      int before[3] = {-1, -1, -1};
      for (int task = 0; task < 200; task += 4) {  // one of a lane at a time, as collectives are
        const int lane = task / 4 % 3;
        graph.lane[static_cast<std::size_t>(task)] = lane;
        if (before[lane] >= 0) graph.add_edge(before[lane], task);
        before[lane] = task;
      }
      Watch watch(graph);
      std::unique_ptr<GraphRunner> runner;
      runner = std::make_unique<GraphRunner>(graph, RunnerOptions{.threads = threads,
                                                                  .substitutes = lanes == 0 ? 3 : 0,
                                                                  .lanes = lanes,
                                                                  .run_task = [&](int task) {
                                                                    if (task % 5 == 0)
                                                                      runner->let_others_work();
                                                                    watch.run_task(task);
                                                                  }});
      for (int run = 0; run < 50; ++run) runner->run();
      for (const auto& runs : watch.runs) CHECK(runs == 50);
      CHECK_FALSE(watch.disorder);
    }
}

// A task on the thread of a lane, or one that sleeps, and another one that has to run meanwhile: it would hang if not.
TEST_CASE("a lane's task runs on a thread of its own while the caller goes on") {
  TaskGraph graph(3);
  graph.lane[0] = 0;
  graph.lane[1] = 1;
  std::latch all_there(3);
  std::thread::id threads[3];
  GraphRunner runner(graph, {.threads = 1, .lanes = 2, .run_task = [&](int task) {
                               threads[task] = std::this_thread::get_id();
                               all_there.arrive_and_wait();
                             }});
  runner.run();
  CHECK(threads[2] == std::this_thread::get_id());
  CHECK(threads[0] != threads[1]);
  CHECK(threads[0] != threads[2]);
}

TEST_CASE("without lanes a task with a lane runs on the crew") {
  TaskGraph graph(1);
  graph.lane[0] = 0;
  std::thread::id thread;
  GraphRunner runner(graph, {.threads = 1, .run_task = [&](int) { thread = std::this_thread::get_id(); }});
  runner.run();
  CHECK(thread == std::this_thread::get_id());
}

TEST_CASE("a substitute works while a task sleeps, and only then") {
  TaskGraph graph(4);
  std::latch other_ran(1);
  std::atomic<int> at_work{0};
  std::atomic<bool> too_many{false};
  std::unique_ptr<GraphRunner> runner;
  runner = std::make_unique<GraphRunner>(
      graph, RunnerOptions{.threads = 1, .substitutes = 1, .run_task = [&](int task) {
                             if (++at_work > 1) too_many = true;
                             --at_work;  // task 0 sleeps from here on, the others have nothing more to do
                             if (task == 3) other_ran.count_down();
                             if (task != 0) return;
                             runner->let_others_work();
                             runner->let_others_work();  // once more changes nothing
                             other_ran.wait();
                           }});
  runner->run();
  CHECK(other_ran.try_wait());
  CHECK_FALSE(too_many);
}

TEST_CASE("the error of a lane's task ends the run when the others have ended, and the next run works") {
  for (const int threads : {1, 2}) {
    TaskGraph graph(4);
    graph.lane[0] = 0;
    graph.lane[1] = 1;
    graph.add_edge(0, 3);
    std::atomic<bool> broken{true};
    std::atomic<int> ended{0}, after{0};
    GraphRunner runner(graph, {.threads = threads, .lanes = 2, .run_task = [&](int task) {
                                 if (task == 0 && broken) throw Error(ErrorKind::temporary, "rank 1 is gone");
                                 if (task == 1) ++ended;
                                 if (task == 3) ++after;
                               }});
    CHECK_THROWS_WITH_AS(runner.run(), "rank 1 is gone", Error);
    CHECK(after == 0);
    broken = false;
    const int before = ended;
    runner.run();
    CHECK(ended == before + 1);
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
}  // namespace fleetrun::runtime::graph_runner_test
