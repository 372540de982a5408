#include "launch/process/pipe_readers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <utility>

#include "base/system/unique_fd.h"
#include "launch/process/orphans.h"
#include "launch/process/proc_files.h"
#include "launch/process/shells.h"

namespace fleetrun::launch {
namespace {

constexpr auto kPause = std::chrono::milliseconds(5);
// In a row: the standard input of a shell is another file while it runs `read x < file`.
constexpr int kIdleLooks = 3;
// A fork of a shell may not have its standard input yet. Processes may start all the time, so a wait heeds that only at its start.
constexpr auto kYoung = std::chrono::milliseconds(100), kMostForYoung = std::chrono::milliseconds(500);
constexpr auto kNoticeable = std::chrono::seconds(1);

std::string input_of(pid_t pid) { return process_path(pid, "fd/0"); }

// Bytes, or the end: nobody can write there any more.
bool has_something_to_read(pid_t pid) {
  const UniqueFd pipe(::open(input_of(pid).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  pollfd one{.fd = pipe.get(), .events = POLLIN, .revents = 0};
  return pipe && ::poll(&one, 1, 0) > 0;
}

bool is_young(const LeftProcess& process) {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto stat = read_process_stat(process.pid);
  return stat &&
         std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) - stat->started < kYoung;
}

std::vector<pid_t> readers_among(const std::vector<LeftProcess>& left) {
  std::vector<pid_t> readers;
  for (const LeftProcess& process : left)
    if (reads_pipe(process.pid)) readers.push_back(process.pid);
  return readers;
}

}  // namespace

bool reads_pipe(pid_t pid) {
  const std::string input = input_of(pid);
  struct stat facts {
  }, own{};
  if (input.empty() || ::stat(input.c_str(), &facts) != 0 || !S_ISFIFO(facts.st_mode)) return false;
  return ::fstat(STDIN_FILENO, &own) != 0 || own.st_dev != facts.st_dev || own.st_ino != facts.st_ino;
}

std::set<pid_t> filters_among(const std::vector<pid_t>& processes, const std::set<pid_t>& printers) {
  std::set<pid_t> filters;
  for (const pid_t pid : processes) {
    const auto is_served = [pid](pid_t printer) {
      return printer != pid && reads_output_of(pid, printer) && !reads_output_of(printer, pid);
    };
    if (reads_pipe(pid) && (is_compressor(pid) || std::ranges::any_of(printers, is_served)))
      filters.insert(pid);
  }
  return filters;
}

bool PipeReaders::has_worked(pid_t pid, TimePoint now) {
  const auto stat = read_process_stat(pid);
  if (!stat || stat->state == 'Z') return false;
  const ProcessIo io = read_process_io(pid);
  const std::uint64_t work = io.read + io.written + static_cast<std::uint64_t>(stat->cpu_time.count());
  const auto [seen, is_new] = seen_.try_emplace(pid, Seen{work, now});
  const bool waits = stat->state != 'R' && stat->state != 'D';
  if (!waits || seen->second.work != work) seen->second = {work, now};
  return now - seen->second.changed < kMostIdle;
}

std::vector<pid_t> PipeReaders::wait(const std::vector<pid_t>& known, const ReaderPatience& patience) {
  const TimePoint start = Clock::now();
  int idle_looks = 0;
  while (true) {
    const std::vector<LeftProcess> left = list_left(known);
    std::vector<pid_t> readers = readers_among(left);
    const TimePoint now = Clock::now();
    std::vector<pid_t> working;
    for (const pid_t pid : readers)
      if (has_something_to_read(pid) && has_worked(pid, now)) working.push_back(pid);
    const bool may_begin = now - start < kMostForYoung && std::ranges::any_of(left, is_young);
    idle_looks = working.empty() && !may_begin ? idle_looks + 1 : 0;
    if (left.empty() || idle_looks == kIdleLooks || now >= patience.latest || patience.interrupted())
      return readers;
    if (!working.empty() && now - start >= kNoticeable && !std::exchange(has_told_, true))
      patience.tell(working);
    patience.pause(kPause);
  }
}

}  // namespace fleetrun::launch
