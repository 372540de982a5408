// Copies a log file to a stream as it grows, as LogText shows it. The file's writer is never held up: when the
// stream has no room the copy waits, and goes on from there. A file that somebody empties is copied from its start again.
#pragma once
#include <cstdint>
#include <string>

#include "launch/console/output_stream.h"
#include "launch/logs/growing_file.h"
#include "launch/logs/log_text.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

class LogFollower {
 public:
  // The file exists. Throws Error(io) when it cannot be read.
  LogFollower(EventLoop& loop, OutputStream& stream, const LogFile& file, LogText text = LogText());
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  void start_at(std::int64_t place);               // in bytes; before anything else
  void look();                                     // there may be more
  std::string bar() const { return text_.bar(); }  // see LogText
  ino_t inode() const { return file_.inode(); }  // of the file that it reads, whatever that is called by now

  // Everything in front of this place, in bytes of the file. False: the reader of the stream did not take all of it.
  bool copy_to(std::int64_t place, const Patience& patience);
  // Everything up to the present end, a last line without an end included; nothing is copied after that.
  // False: the reader of the stream did not take all of it.
  bool finish(const Patience& patience);

 private:
  void copy_some();
  void show_by_now();
  bool read_chunk(std::size_t most);  // false at the end of the file
  bool copy_rest(const Patience& patience);

  EventLoop& loop_;
  OutputStream& stream_;
  GrowingFile file_;
  LogText text_;
  bool waiting_ = false;      // for the stream
  bool looks_later_ = false;  // a call of the loop is due
};

}  // namespace fleetrun::launch
