// A StoreServer with an event loop of its own on a thread, as the launcher has one.
#pragma once
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "launch/loop/event_loop.h"
#include "launch/store/store_server.h"

namespace fleetrun::testing {

class StoreThread {
 public:
  explicit StoreThread(launch::StoreServerOptions options) {
    options.say = [this](std::string_view line) {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(line);
      said_.notify_all();
    };
    server_.emplace(loop_, std::move(options));
    endpoint_ = server_->endpoint();
    thread_ = std::thread([this] { loop_.run(); });
  }
  Endpoint endpoint() const { return endpoint_; }
  std::vector<std::string> also_at() const { return server_->also_at(); }

  template <typename Work>
  auto on_loop(Work work) {
    std::packaged_task<std::invoke_result_t<Work, launch::StoreServer&>()> task(
        [&] { return work(*server_); });
    auto result = task.get_future();
    boost::asio::post(loop_.context(), [&task] { task(); });
    return result.get();
  }

  // Ends only when the loop has no more work of the server.
  ~StoreThread() {
    on_loop([](launch::StoreServer& server) { server.close(); });
    guard_.reset();
    thread_.join();
  }

  std::uint64_t dropped() {
    return on_loop([](launch::StoreServer& server) { return server.dropped(); });
  }
  std::vector<int> missing_ranks() {
    return on_loop([](launch::StoreServer& server) { return server.missing_ranks(); });
  }

  // The line with that number (from 0), once it has been said; empty after 10 s without it.
  std::string line(std::size_t number) {
    std::unique_lock lock(mutex_);
    said_.wait_for(lock, std::chrono::seconds(10), [&] { return lines_.size() > number; });
    return lines_.size() > number ? lines_[number] : "";
  }
  std::size_t lines_so_far() {
    const std::lock_guard lock(mutex_);
    return lines_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable said_;
  std::vector<std::string> lines_;
  launch::EventLoop loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_ =
      boost::asio::make_work_guard(loop_.context());
  std::optional<launch::StoreServer> server_;
  Endpoint endpoint_;
  std::thread thread_;
};

}  // namespace fleetrun::testing
