// Text for our stdout or stderr that never blocks us: a full pipe or a stopped terminal holds up the text,
// not the supervision. What does not fit now waits; when the reader is gone it is dropped. What a full disk does not take is dropped,
// too; when the disk has room again, a line in its place says how much is missing.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/system/unique_fd.h"
#include "launch/loop/clock.h"
#include "launch/loop/event_loop.h"

namespace fleetrun::launch {

// How long the end of a run waits for somebody who reads our output.
struct Patience {
  Clock::duration without_progress;   // the reader took nothing for so long
  std::function<bool()> interrupted;  // the user wants the end now
};

// Twelve members: what it has been told of the file, and what waits for it.
class OutputStream {
 public:
  OutputStream(EventLoop& loop, int fd);
  ~OutputStream();
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  void write(std::string_view text);
  void write_of_rank(std::string_view text);  // which may end within a line
  // Whether a rank's text ended within a line. The caller ends the line.
  bool leave_line() { return std::exchange(in_line_, false); }
  bool idle() const { return waiting_.empty(); }
  bool is_broken() const { return broken_; }  // nobody will ever read what is written from now on
  int problem() const { return problem_; }    // errno of the last write that failed; 0: none
  bool has_lost_reader() const;               // of a pipe or socket, also before a write fails
  bool is_terminal() const { return terminal_; }
  // Called before each text of ours, to take away what may stand on the line.
  void before_write(std::function<void()> callback) { before_write_ = std::move(callback); }
  // Called once when everything was written or dropped.
  void when_idle(std::function<void()> callback) { on_idle_.push_back(std::move(callback)); }

  // While the user has suspended us, the terminal is the shell's: text waits.
  void hold() { held_ = true; }
  void release();

  // Writes what waits, as long as that has sense. False: some is left.
  bool drain(const Patience& patience);

 private:
  enum class Kind { nonblocking, socket, shared };

  void open(int fd);
  void flush();
  // False: the file takes nothing yet.
  bool say_what_was_lost();
  // Bytes taken; 0: no room now; -1: nobody will ever read it.
  long try_write(std::string_view text) const;

  EventLoop& loop_;
  UniqueFd fd_;
  Kind kind_ = Kind::shared;
  bool terminal_ = false;
  bool broken_ = false;
  bool held_ = false;
  bool in_line_ = false;
  int problem_ = 0;
  std::size_t lost_ = 0;  // bytes that a full disk did not take
  std::string waiting_;
  std::function<void()> before_write_;
  std::vector<std::function<void()>> on_idle_;
};

}  // namespace fleetrun::launch
