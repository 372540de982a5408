#include "launch/run/hang_monitor.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostNewBytes = 1024 * 1024;   // of one log and look: of a flood only the end is read
constexpr std::size_t kLongestRuleLine = 64 * 1024;  // of which a rule sees the start

// What the process tree below `root` has done so far.
void add_work(pid_t root, RankSample& sample) {
  sample.worked = {};
  for (const pid_t pid : list_process_tree(root)) {
    if (const auto stat = read_process_stat(pid)) sample.worked += stat->cpu_time;
    sample.moved += read_process_io(pid);
  }
}

}  // namespace

HangMonitor::HangMonitor(EventLoop& loop, Options options, ProcessGroup& group,
                         const std::vector<ProgressPagePtr>& pages)
    : loop_(loop),
      options_(std::move(options)),
      group_(group),
      pages_(pages),
      watch_(options_.watch, static_cast<int>(options_.logs.size())),
      tails_(options_.logs.size()) {
  if (options_.watch.any()) look_later();
}

void HangMonitor::follow_new_logs() {
  if (!options_.watch.any()) return;
  watch_.forgive();
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    tails_[i].clear();
    for (const LogFile& log : options_.logs[i]) tails_[i].push_back({GrowingFile(log), ""});
  }
}

void HangMonitor::resume() {
  paused_ = false;
  watch_.forgive();
}

void HangMonitor::look_later() {
  loop_.call_at(Clock::now() + options_.watch.look_every, [this] {
    if (!paused_) look();
    look_later();
  });
}

void HangMonitor::look() {
  if (const auto why = watch_.look(sample(), Clock::now())) group_.tell(HangFound{*why});
}

HangSample HangMonitor::sample() {
  HangSample sample;
  sample.rules_matched.resize(options_.rules.size());
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    sample.ranks.push_back(sample_rank(i));
    if (options_.rules.empty()) continue;
    for (LogTail& tail : tails_[i]) match_rules(tail, sample.rules_matched);
  }
  return sample;
}

RankSample HangMonitor::sample_rank(std::size_t rank) const {
  RankSample sample;
  const pid_t pid = group_.records()[rank].pid;
  sample.running = pid > 0 && group_.verdict().ranks[rank].role == Role::running;
  if (!sample.running) return sample;
  for (const LogTail& tail : tails_[rank]) sample.log_bytes += static_cast<std::uint64_t>(tail.file.size());
  if (const auto stat = read_process_stat(pid)) {
    sample.stopped = stat->state == 'T';
    sample.debugged = stat->state == 't';
  }
  if (options_.watch.silence) add_work(pid, sample);
  if (rank >= pages_.size()) return sample;
  const ProgressPage& page = *pages_[rank];
  const Phase phase = page.phase.load(std::memory_order_relaxed);
  sample.training = phase >= Phase::training && phase < Phase::finished;
  sample.on_disk = phase == Phase::reading || phase == Phase::saving;
  sample.step = page.step.load(std::memory_order_relaxed);
  sample.beat = page.heartbeat_ns.load(std::memory_order_relaxed);
  return sample;
}

void HangMonitor::match_rules(LogTail& tail, std::vector<bool>& matched) const {
  if (tail.file.begins_anew()) tail.unfinished.clear();
  const std::string text = std::exchange(tail.unfinished, "") + tail.file.read_end(kMostNewBytes);
  std::size_t start = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    const std::string line = text.substr(start, std::min(end - start, kLongestRuleLine));
    for (std::size_t i = 0; i < matched.size(); ++i)
      matched[i] = matched[i] || options_.rules[i].pattern.is_in(line);
    start = end + 1;
  }
  tail.unfinished = text.substr(start, kLongestRuleLine);
}

}  // namespace fleetrun::launch
