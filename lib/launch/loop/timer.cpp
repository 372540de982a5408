#include "launch/loop/timer.h"

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace fleetrun::launch {

struct Timer::Implementation {
  boost::asio::steady_timer timer;
  std::shared_ptr<EventLoop::Callback>
      callback;  // null: cancelled, even if the loop has queued the call already
};

Timer::Timer(EventLoop& loop)
    : implementation_(
          new Implementation{.timer = boost::asio::steady_timer(loop.context()), .callback = nullptr}) {}

Timer::~Timer() = default;

void Timer::call_at(TimePoint time, EventLoop::Callback callback) {
  auto& [timer, current] = *implementation_;
  current = std::make_shared<EventLoop::Callback>(std::move(callback));
  timer.expires_at(time);
  timer.async_wait([weak = std::weak_ptr(current)](auto problem) {
    const auto called = weak.lock();
    if (!problem && called) (*called)();
  });
}

void Timer::cancel() {
  implementation_->callback.reset();
  implementation_->timer.cancel();
}

}  // namespace fleetrun::launch
