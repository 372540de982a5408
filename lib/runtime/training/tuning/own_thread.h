// A thread that does one piece of work at a time for its owner. Trainings that take turns in one process have a thread each: their teams of
// compute threads may differ in size, and OpenMP ends and starts threads when the team of one thread changes.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace fleetrun::runtime {

class OwnThread {
 public:
  OwnThread();
  ~OwnThread();
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

  // Waits until `work` is done, and rethrows its error.
  void run(const std::function<void()>& work);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace fleetrun::runtime
