#include "launch/run/hang_sampler.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/run/progress_page.h"
#include "launch/process/proc_files.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostNewBytes = 1024 * 1024;   // of one log and look: of a flood only the end is read
constexpr std::size_t kLongestRuleLine = 64 * 1024;  // of which a rule sees the start
constexpr std::string_view kLineEnds = "\n\r";       // a progress bar writes its next state after \r
constexpr int kLooks = 10;                           // at the ranks within the time of a hang
constexpr Clock::duration kLookEvery = std::chrono::seconds(1), kLookOften = std::chrono::milliseconds(50);

void add_work_below(pid_t root, Work& work) {
  for (const pid_t pid : list_process_tree(root)) {
    if (const auto stat = read_process_stat(pid)) work.cpu_time += stat->cpu_time;
    const ProcessIo io = read_process_io(pid);
    work.bytes_read += io.read;
    work.bytes_written += io.written;
  }
}

// They became our children when their parents ended, because we are the subreaper.
Work work_of_detached(const RunState& state) {
  Work work;
  for (const pid_t child : list_children())
    if (std::ranges::none_of(state.workers, [child](const WorkerRecord& rank) { return rank.pid == child; }))
      add_work_below(child, work);
  return work;
}

std::vector<LogRule> log_rules(const LaunchOptions& options) {
  if (const auto& rule = options.log_rule.value) return {*rule};
  return {};
}

HangOptions hang_options(const RunPlan& plan) {
  const auto& timeout = plan.options.hang_timeout;
  HangOptions options;
  options.first_rank = plan.cluster.first_rank();
  options.silence = timeout.value;
  options.steps = plan.embedded && (timeout.value || timeout.origin == Origin::fallback);
  options.step_bound = timeout.value;
  Clock::duration shortest = timeout.value.value_or(kLookEvery * kLooks);
  for (const LogRule& rule : log_rules(plan.options)) {
    options.rules.push_back({rule.text, rule.within});
    shortest = std::min<Clock::duration>(shortest, rule.within);
  }
  options.look_every = std::clamp<Clock::duration>(shortest / kLooks, kLookOften, options.look_every);
  return options;
}

}  // namespace

void check_hang_timeout(const LaunchOptions& options) {
  if (!options.hang_timeout.value || shows_own_processes()) return;
  throw Error(ErrorKind::os,
              fmt::format("{} needs /proc, where fleetrun sees whether the ranks work; there is none here",
                          options.hang_timeout.source),
              "--log_rule 'REGEX within S' needs no /proc");
}

HangSampler::HangSampler(const RunPlan& plan, const LogFolder& logs)
    : plan_(plan),
      logs_(logs),
      options_(hang_options(plan)),
      log_rules_(log_rules(plan.options)),
      rules_(options_, plan.cluster.local_size()),
      tails_(static_cast<std::size_t>(plan.cluster.local_size())) {}

std::optional<Clock::duration> HangSampler::interval() const {
  if (!options_.any()) return std::nullopt;
  return options_.look_every;
}

void HangSampler::follow_new_logs() {
  if (!options_.any()) return;
  rules_.forgive();
  rules_.count_from(plan_.cluster.first_rank());
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    const int rank = static_cast<int>(i);
    tails_[i].clear();
    tails_[i].push_back({GrowingFile(logs_.find_worker_log(rank)), ""});
    if (plan_.cluster.console.apart.at(i)) tails_[i].push_back({GrowingFile(logs_.find_error_log(rank)), ""});
  }
}

std::optional<std::string> HangSampler::look(const RunState& state, const SignsOfLife& elsewhere,
                                             TimePoint now) {
  HangSample sample;
  sample.elsewhere = elsewhere;
  if (options_.silence) sample.detached = work_of_detached(state);
  sample.rules_matched.resize(log_rules_.size());
  for (std::size_t i = 0; i < tails_.size(); ++i) {
    sample.ranks.push_back(sample_rank(i, state));
    if (log_rules_.empty()) continue;
    for (LogTail& tail : tails_[i]) match_rules(tail, sample.rules_matched);
  }
  return rules_.look(sample, now);
}

RankSample HangSampler::sample_rank(std::size_t rank, const RunState& state) const {
  RankSample sample;
  const pid_t pid = state.workers[rank].pid;
  sample.running = pid > 0 && state.verdict.ranks[rank].role == Role::running;
  if (!sample.running) return sample;
  for (const LogTail& tail : tails_[rank]) sample.log_bytes += static_cast<std::uint64_t>(tail.file.size());
  if (const auto stat = read_process_stat(pid)) {
    sample.stopped = stat->state == 'T';
    sample.debugged = stat->state == 't';
  }
  if (options_.silence) add_work_below(pid, sample.work);
  if (rank >= state.pages.size()) return sample;
  const ProgressPage& page = *state.pages[rank];
  const Phase phase = page.phase.load(std::memory_order_relaxed);
  sample.training = phase >= Phase::training && phase < Phase::finished;
  sample.on_disk = phase == Phase::reading || phase == Phase::saving;
  sample.step = page.step.load(std::memory_order_relaxed);
  sample.beat = page.heartbeat_ns.load(std::memory_order_relaxed);
  return sample;
}

void HangSampler::match_rules(LogTail& tail, std::vector<bool>& matched) const {
  if (tail.file.begins_anew()) tail.unfinished.clear();
  const off_t place = tail.file.place();
  const std::string added = tail.file.read_end(kMostNewBytes);
  if (tail.file.place() - std::ssize(added) > place) {  // what was skipped may have had a match
    matched.assign(matched.size(), true);
    tail.unfinished.clear();
  }
  const std::string text = std::exchange(tail.unfinished, "") + added;
  std::size_t start = 0;
  for (auto end = text.find_first_of(kLineEnds); end != std::string::npos;
       end = text.find_first_of(kLineEnds, start)) {
    const std::string line = text.substr(start, std::min(end - start, kLongestRuleLine));
    for (std::size_t i = 0; i < matched.size(); ++i)
      matched[i] = matched[i] || log_rules_[i].pattern.is_in(line);
    start = end + 1;
  }
  tail.unfinished = text.substr(start, kLongestRuleLine);
}

}  // namespace fleetrun::launch
