// The one loop of the middle process: callbacks for descriptors and times, in one thread.
#pragma once
#include <functional>
#include <memory>

#include "launch/loop/clock.h"

namespace boost::asio {
class io_context;
}

namespace fleetrun::launch {

class EventLoop {
 public:
  using Callback = std::function<void()>;

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // The caller keeps the descriptors, and calls forget() before closing one.
  void watch_readable(int fd, Callback callback);  // again and again, until forgotten
  void when_writable(int fd, Callback callback);   // once
  void forget(int fd);
  void call_at(TimePoint time, Callback callback);
  void call_every(Clock::duration pause, const Callback& callback);  // the first call comes after one pause

  void run_one();   // waits until a callback is due, and calls it
  bool poll_one();  // calls one that is due already; false: none is
  void run();       // until stop()
  void run_for(Clock::duration time);
  void stop();  // from a callback
  boost::asio::io_context& context();

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace fleetrun::launch
