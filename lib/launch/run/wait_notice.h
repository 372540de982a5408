// Prints which ranks a run waits for, while it ends or after some ranks have finished.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/loop/event_loop.h"
#include "launch/supervise/supervisor.h"

namespace fleetrun::launch {

// "waiting for rank 3 to end, 15 s so far; --grace allows 60 s".
std::string describe_wait(const std::vector<int>& ranks, Clock::duration waited, Clock::duration grace);
// "rank 3 is still there, 12 s after SIGKILL".
std::string describe_survivors(const std::vector<int>& ranks, Clock::duration since_kill);

class WaitNotice {
 public:
  using Say = std::function<void(std::string_view line)>;

  // `verdict` always describes the present attempt. It and `loop` outlive the notice.
  WaitNotice(EventLoop& loop, Clock::duration grace, const Verdict& verdict, Say say);

  void look();           // call it when something happened to the ranks
  void begin_attempt();  // forgets the attempt before

 private:
  void say_end(unsigned attempt);
  void say_finished(unsigned attempt);

  EventLoop& loop_;
  Clock::duration grace_;
  const Verdict& verdict_;
  Say say_;
  bool ending_ = false, finishing_ = false;  // a notice is scheduled already
  unsigned attempt_ = 0;                     // number of the attempt; callbacks of earlier ones do nothing
};

}  // namespace fleetrun::launch
