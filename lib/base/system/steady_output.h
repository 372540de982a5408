// The stdout or stderr of a program as a stream that never fails: what a full disk does not take is lost, and the stream goes on when the
// disk has room again. std::cout stays silent for ever after its first error.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <streambuf>
#include <string>

#include "base/system/lost_text.h"

namespace fleetrun {

class SteadyOutput : public std::streambuf {
 public:
  explicit SteadyOutput(int fd) : fd_(fd) {}  // the caller keeps it

  // Copies what is lost from now on to `lost`, which must outlive this stream, until this stream has said that something is missing.
  void keep_lost_in(LostText& lost);

 protected:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  void add(std::string_view text);
  void write_waiting();
  void keep_lines_from(std::size_t place);  // in waiting_
  bool say_what_was_lost();
  std::size_t write_some(std::string_view text);

  std::mutex mutex_;
  int fd_;
  std::string waiting_;
  std::size_t lost_ = 0;  // bytes since the last that were written
  int problem_ = 0;       // errno of the last write that failed
  LostText* lost_text_ = nullptr;
  std::uint64_t end_of_lost_ = 0;  // the place there of the last text that this stream has lost
};

}  // namespace fleetrun
