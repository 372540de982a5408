#include "runtime/checkpoint/checkpoint_writer.h"

#include <sys/resource.h>

#include <chrono>
#include <new>
#include <utility>

namespace fleetrun::runtime {
namespace {

constexpr int kNice = 10;  // a tenth of a core when all are busy

SaveResult save(CheckpointFolder& folder, const Snapshot& snapshot) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  SaveResult result = {.state = snapshot.state};
  try {
    result.path = folder.write(snapshot);
  } catch (const Error& problem) {  // told by whoever takes the results
    result.problem = problem;
  } catch (const std::bad_alloc&) {
    result.problem = Error(ErrorKind::os, "no memory to write a checkpoint");
  } catch (const std::exception& problem) {  // of the library for files
    result.problem = Error(ErrorKind::io, problem.what());
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace

CheckpointWriter::CheckpointWriter(CheckpointFolder& folder, Timeline* timeline)
    : folder_(folder), timeline_(timeline) {
  if (timeline_ != nullptr)
    label_ =
        timeline_->add({.lane = Lane::checkpoint, .name = "write", .category = "checkpoint", .value = ""});
  thread_ = std::thread([this] { live(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CheckpointWriter::write(Snapshot snapshot) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !next_; });
  next_ = std::move(snapshot);
  changed_.notify_all();
}

std::vector<SaveResult> CheckpointWriter::take_results() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

bool CheckpointWriter::wait_until_idle(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return !next_; });
}

// Nobody else touches next_ before live() resets it.
SaveResult CheckpointWriter::save_watched() {
  const SpanHere span(timeline_, label_);
  return save(folder_, *next_);
}

void CheckpointWriter::live() {
  // Linux's nice value is a thread's own. Nobody waits for this one but at the end, while the threads of a step wait for each
  // other.
  ::setpriority(PRIO_PROCESS, 0, kNice);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || next_; });
    if (!next_) return;
    lock.unlock();
    SaveResult result = save_watched();
    lock.lock();
    results_.push_back(std::move(result));
    next_.reset();
    changed_.notify_all();
  }
}

}  // namespace fleetrun::runtime
