#include "runtime/exec/graph_runner.h"

#include <pthread.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

namespace fleetrun::runtime {
namespace {

// The order of the heap of ready tasks: what it calls greatest comes first.
struct Later {
  const TaskGraph& graph;
  bool operator()(int a, int b) const {
    const bool urgent_a = graph.urgent[static_cast<std::size_t>(a)];
    const bool urgent_b = graph.urgent[static_cast<std::size_t>(b)];
    return urgent_a != urgent_b ? urgent_b : a > b;
  }
};

void name_thread(const std::string& name) { ::pthread_setname_np(::pthread_self(), name.c_str()); }

}  // namespace

GraphRunner::GraphRunner(TaskGraph graph, RunnerOptions options)
    : graph_(std::move(graph)), options_(std::move(options)), waiting_for_(graph_.size()) {
  ready_.reserve(graph_.size());
  if (options_.enter_thread) options_.enter_thread();
  for (int i = 0; i < options_.threads + options_.substitutes; ++i)
    crew_.push_back(std::make_unique<Member>());
  for (int i = 0; i < options_.lanes; ++i) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->ready.reserve(graph_.size());
  }
  // From here on threads may look at all of it.
  try {
    start_threads();
  } catch (const std::system_error&) {  // the operating system refuses one of them
    stop_threads();
    throw;
  }
}

GraphRunner::~GraphRunner() { stop_threads(); }

void GraphRunner::start_threads() {
  for (std::size_t i = 1; i < crew_.size(); ++i)
    crew_[i]->thread = std::thread([this, i] {
      name_thread("exec-" + std::to_string(i));
      crew_member(*crew_[i]);
    });
  for (std::size_t i = 0; i < lanes_.size(); ++i)
    lanes_[i]->thread = std::thread([this, i] {
      name_thread("lane-" + std::to_string(i));
      lane_thread(i);
    });
}

void GraphRunner::stop_threads() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  crew_changed_.notify_all();
  for (const auto& lane : lanes_) lane->changed.notify_all();
  for (const auto& member : crew_)
    if (member->thread.joinable()) member->thread.join();
  for (const auto& lane : lanes_)
    if (lane->thread.joinable()) lane->thread.join();
}

void GraphRunner::run() {
  if (crew_.size() == 1 && lanes_.empty()) return run_in_order();
  Lock lock(mutex_);
  begin();
  while (!is_over()) {
    if (can_take()) {
      run_next(*crew_.front(), lock);
    } else {
      caller_waits_ = true;
      caller_changed_.wait(lock);
      caller_waits_ = false;
    }
  }
  if (failure_) std::rethrow_exception(failure_);
}

void GraphRunner::run_in_order() {
  for (int task = 0; task < static_cast<int>(graph_.size()); ++task) options_.run_task(task);
}

void GraphRunner::begin() {
  waiting_for_ = graph_.dependencies;  // same size: no allocation
  failure_ = nullptr;
  unfinished_ = graph_.size();
  crew_.front()->id = std::this_thread::get_id();
  for (int task = 0; task < static_cast<int>(graph_.size()); ++task)
    if (waiting_for_[static_cast<std::size_t>(task)] == 0) make_ready(task);
  wake(1);
}

void GraphRunner::crew_member(Member& member) {
  if (options_.enter_thread) options_.enter_thread();
  Lock lock(mutex_);
  member.id = std::this_thread::get_id();
  while (true) {
    crew_changed_.wait(lock, [this] { return closing_ || can_take(); });
    if (closing_) return;
    run_next(member, lock);
  }
}

void GraphRunner::lane_thread(std::size_t lane) {
  if (options_.enter_thread) options_.enter_thread();
  std::vector<int>& ready = lanes_[lane]->ready;
  Lock lock(mutex_);
  while (true) {
    lanes_[lane]->changed.wait(lock, [&] { return closing_ || !ready.empty(); });
    if (closing_) return;
    const int task = ready.front();
    ready.erase(ready.begin());
    run_task(task, lock);
    wake(0);
  }
}

// Called and left with the lock held.
void GraphRunner::run_next(Member& member, Lock& lock) {
  const int task = take_ready();
  put_to_work(member, true);
  run_task(task, lock);
  put_to_work(member, false);
  wake(1);  // this thread is there for one of the tasks that are ready
}

// Called and left with the lock held.
void GraphRunner::run_task(int task, Lock& lock) {
  ++running_;
  lock.unlock();
  std::exception_ptr failure;
  try {
    options_.run_task(task);
  } catch (...) {  // whatever it is, it belongs to the caller of run()
    failure = std::current_exception();
  }
  lock.lock();
  --running_;
  if (failure)
    fail(failure);
  else
    finish_task(task);
}

void GraphRunner::finish_task(int task) {
  --unfinished_;
  if (failure_) return;
  for (const int successor : graph_.successors[static_cast<std::size_t>(task)])
    if (--waiting_for_[static_cast<std::size_t>(successor)] == 0) make_ready(successor);
}

void GraphRunner::fail(std::exception_ptr failure) {
  if (!failure_) failure_ = std::move(failure);
  ready_.clear();
  for (const auto& lane : lanes_) lane->ready.clear();
}

void GraphRunner::make_ready(int task) {
  const int lane = graph_.lane[static_cast<std::size_t>(task)];
  if (lane != TaskGraph::kNoLane && !lanes_.empty()) {
    Lane& own = *lanes_.at(static_cast<std::size_t>(lane));
    own.ready.push_back(task);
    return own.changed.notify_one();
  }
  ready_.push_back(task);
  std::push_heap(ready_.begin(), ready_.end(), Later{graph_});
}

int GraphRunner::take_ready() {
  std::pop_heap(ready_.begin(), ready_.end(), Later{graph_});
  const int task = ready_.back();
  ready_.pop_back();
  return task;
}

void GraphRunner::put_to_work(Member& member, bool at_work) {
  if (member.at_work == at_work) return;
  member.at_work = at_work;
  at_work_ += at_work ? 1 : -1;
}

void GraphRunner::let_others_work() {
  const std::lock_guard lock(mutex_);
  const auto caller = std::find_if(crew_.begin(), crew_.end(), [](const auto& member) {
    return member->id == std::this_thread::get_id();
  });
  if (caller == crew_.end()) return;  // the thread of a lane has nobody's place
  put_to_work(**caller, false);
  wake(0);
}

// As many threads as there are tasks that nobody has been woken for; `spare`: those of them that will be taken without.
void GraphRunner::wake(int spare) {
  if (caller_waits_ && is_over()) {
    caller_waits_ = false;
    return caller_changed_.notify_one();
  }
  const int free = options_.threads - at_work_;
  for (int i = spare; i < std::min(free, static_cast<int>(ready_.size())); ++i) {
    if (caller_waits_)
      caller_changed_.notify_one();
    else
      crew_changed_.notify_one();
    caller_waits_ = false;
  }
}

}  // namespace fleetrun::runtime
