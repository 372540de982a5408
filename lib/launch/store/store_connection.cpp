#include "launch/store/store_connection.h"

#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "base/peer_watch.h"

namespace fleetrun::launch {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Answers that a peer has not yet read. A rank asks one thing at a time, so two is the most of an honest one.
constexpr std::size_t kMaxUnsent = 8;

std::string describe_peer(const asio::ip::tcp::socket& socket) {
  error_code problem;
  const auto endpoint = socket.remote_endpoint(problem);
  return problem ? "a peer that left" : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

}  // namespace

StoreConnection::StoreConnection(asio::ip::tcp::socket socket)
    : socket_(std::move(socket)),
      handshake_timer_(socket_.get_executor()),
      peer_address_(describe_peer(socket_)) {}

void StoreConnection::start(Callbacks callbacks, std::chrono::milliseconds handshake_deadline) {
  callbacks_ = std::move(callbacks);
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  keep_asking(socket_.native_handle());
  handshake_timer_.expires_after(handshake_deadline);
  handshake_timer_.async_wait([self = shared_from_this(), handshake_deadline](error_code problem) {
    if (!problem) self->close(fmt::format("no handshake within {} ms", handshake_deadline.count()));
  });
  read_length();
}

void StoreConnection::proven() {
  handshake_timer_.cancel();
  max_frame_ = store_protocol::kMaxFrame;
}

void StoreConnection::read_length() {
  asio::async_read(socket_, asio::buffer(length_),
                   [self = shared_from_this()](error_code problem, std::size_t) {
                     if (self->closed_) return;
                     if (problem)
                       return self->close(problem == asio::error::eof ? "it left" : problem.message());
                     const std::size_t bytes = store_protocol::decode_length(self->length_.data());
                     if (bytes == 0 || bytes > self->max_frame_)
                       return self->close(
                           fmt::format("a frame of {} bytes, at most {} are taken", bytes, self->max_frame_));
                     self->read_message(bytes);
                   });
}

void StoreConnection::read_message(std::size_t bytes) {
  input_.resize(bytes);
  asio::async_read(socket_, asio::buffer(input_),
                   [self = shared_from_this()](error_code problem, std::size_t) {
                     if (self->closed_) return;
                     if (problem)
                       return self->close(problem == asio::error::eof ? "it left" : problem.message());
                     const auto message = store_protocol::decode(self->input_);
                     if (!message) return self->close("its bytes are no message of the store protocol");
                     self->callbacks_.on_message(*message);
                     if (!self->closed_ && !self->closing_) self->read_length();
                   });
}

void StoreConnection::send(const store_protocol::Message& message) {
  if (closed_ || closing_) return;
  if (output_.size() == kMaxUnsent) return close("it does not read its answers");
  output_.push_back(store_protocol::encode(message));
  if (output_.size() == 1) write_next();
}

void StoreConnection::write_next() {
  asio::async_write(socket_, asio::buffer(output_.front()),
                    [self = shared_from_this()](error_code problem, std::size_t) {
                      if (self->closed_) return;
                      if (problem) return self->close(problem.message());
                      self->output_.pop_front();
                      if (!self->output_.empty()) return self->write_next();
                      if (self->closing_) self->close(*self->closing_);
                    });
}

void StoreConnection::close_when_sent(std::string why) {
  if (output_.empty()) return close(why);
  closing_ = std::move(why);
}

void StoreConnection::close(const std::string& why) {
  if (std::exchange(closed_, true)) return;
  handshake_timer_.cancel();
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
  const Callbacks callbacks = std::exchange(callbacks_, {});  // they may hold what holds us
  callbacks.on_end(why);
}

}  // namespace fleetrun::launch
