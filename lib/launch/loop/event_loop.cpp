#include "launch/loop/event_loop.h"

#include <poll.h>

#include <map>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace asio = boost::asio;
using Descriptor = asio::posix::stream_descriptor;

namespace {

// Asio keeps the state of a descriptor for the next one. If several were ready at once and a callback exchanged one for a new one, the new
// one gets the event of the old one.
bool is_ready(int fd, short events) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

}  // namespace

struct EventLoop::Implementation {
  // Shared, because a callback may forget its own descriptor while it runs.
  struct Watch : std::enable_shared_from_this<Watch> {
    Watch(asio::io_context& context, int fd) : descriptor(context, fd) {}
    ~Watch() { descriptor.release(); }

    void arm_read() {
      descriptor.async_wait(Descriptor::wait_read, [weak = weak_from_this()](auto problem) {
        const auto self = weak.lock();
        if (problem || !self || !self->on_readable) return;
        if (!is_ready(self->descriptor.native_handle(), POLLIN)) return self->arm_read();
        const auto callback = self->on_readable;  // a copy, as it may forget itself
        callback();
        if (self->on_readable) self->arm_read();
      });
    }
    void arm_write() {
      descriptor.async_wait(Descriptor::wait_write, [weak = weak_from_this()](auto problem) {
        const auto self = weak.lock();
        if (problem || !self || !self->on_writable) return;
        if (!is_ready(self->descriptor.native_handle(), POLLOUT)) return self->arm_write();
        std::exchange(self->on_writable, nullptr)();
      });
    }

    Descriptor descriptor;
    EventLoop::Callback on_readable, on_writable;
  };

  asio::io_context context{1};  // one thread: asio leaves its locks out
  std::map<int, std::shared_ptr<Watch>> watches;

  // Throws Error(os) when the kernel does not let us.
  Watch& watch(int fd) {
    if (const auto found = watches.find(fd); found != watches.end()) return *found->second;
    try {
      return *watches.emplace(fd, std::make_shared<Watch>(context, fd)).first->second;
    } catch (const boost::system::system_error& error) {
      throw Error(ErrorKind::os,
                  fmt::format("watching a descriptor: {}", describe_errno(error.code().value())));
    }
  }
};

EventLoop::EventLoop() : implementation_(std::make_unique<Implementation>()) {}
EventLoop::~EventLoop() {
  while (!implementation_->watches.empty()) forget(implementation_->watches.begin()->first);
}

void EventLoop::watch_readable(int fd, Callback callback) {
  auto& watch = implementation_->watch(fd);
  watch.on_readable = std::move(callback);
  watch.arm_read();
}

void EventLoop::when_writable(int fd, Callback callback) {
  auto& watch = implementation_->watch(fd);
  watch.on_writable = std::move(callback);
  watch.arm_write();
}

void EventLoop::forget(int fd) {
  const auto found = implementation_->watches.find(fd);
  if (found == implementation_->watches.end()) return;
  found->second->on_readable = nullptr;
  found->second->on_writable = nullptr;
  found->second->descriptor.release();
  implementation_->watches.erase(found);
}

void EventLoop::call_at(TimePoint time, Callback callback) {
  auto timer = std::make_unique<asio::steady_timer>(implementation_->context, time);
  asio::steady_timer& waiting = *timer;
  waiting.async_wait([timer = std::move(timer), callback = std::move(callback)](auto problem) {
    if (!problem) callback();
  });
}

void EventLoop::call_every(Clock::duration pause, const Callback& callback) {
  call_at(Clock::now() + pause, [this, pause, callback] {
    callback();
    call_every(pause, callback);
  });
}

void EventLoop::run_one() {
  if (implementation_->context.run_one() == 0)
    throw Error(ErrorKind::internal, "the event loop has nothing left to wait for");
}
bool EventLoop::poll_one() { return implementation_->context.poll_one() > 0; }
void EventLoop::run() { implementation_->context.run(); }
void EventLoop::run_for(Clock::duration time) { implementation_->context.run_for(time); }
void EventLoop::stop() { implementation_->context.stop(); }
boost::asio::io_context& EventLoop::context() { return implementation_->context; }

}  // namespace fleetrun::launch
