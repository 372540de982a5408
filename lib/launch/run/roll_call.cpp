#include "launch/run/roll_call.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "launch/logs/last_lines.h"
#include "launch/process/proc_files.h"
#include "launch/report/describe_roll_call.h"
#include "launch/report/python_stacks.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostStack = 1 << 20;  // bytes of a file with stacks that are read
constexpr std::size_t kLongestShown = 100;   // of a log, shown beside the other facts of a rank

double seconds_silent(const UniqueFd& log, const Moment& started) {
  struct stat facts {};
  return ::fstat(log.get(), &facts) == 0 ? seconds_since_write(facts, started) : seconds_since(started);
}

std::string ending_of(const RankVerdict& verdict) {
  if (verdict.role == Role::finished) return "finished with 0";
  return verdict.status ? verdict.status->describe() : "was never started";
}

// That of stdout or, if the rank has one and wrote there last, that of stderr.
std::pair<const UniqueFd*, LogFile> youngest_log(std::size_t rank, const RollCall::Sources& sources) {
  const auto changed = [](const UniqueFd& file) {
    struct stat facts {};
    ::fstat(file.get(), &facts);
    return std::pair(facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
  };
  const UniqueFd &log = sources.attempt.logs.at(rank), &errors = sources.attempt.error_logs.at(rank);
  const int number = static_cast<int>(rank);
  if (errors && changed(errors) > changed(log)) return {&errors, sources.logs.find_error_log(number)};
  return {&log, sources.logs.find_worker_log(number)};
}

RankFacts gather(std::size_t rank, const RollCall::Sources& sources, const CollectiveRecords& collectives) {
  const RankVerdict& verdict = sources.state.verdict.ranks.at(rank);
  const WorkerRecord& record = sources.state.workers.at(rank);
  RankFacts facts = {.rank = sources.state.verdict.number_of(static_cast<int>(rank)), .pid = record.pid};
  facts.running = verdict.role == Role::running && record.pid > 0;
  if (!facts.running) {
    facts.ended = ending_of(verdict);
    return facts;
  }
  read_process_facts(facts);
  const auto [log, named] = youngest_log(rank, sources);
  facts.silent_for = seconds_silent(*log, record.started);
  if (const auto lines = read_last_lines(file_behind(*log, named), 1); !lines.empty())
    facts.last_line = shorten(lines.front(), kLongestShown);
  if (rank < sources.state.pages.size()) {
    const ProgressPage& page = *sources.state.pages[rank];
    facts.step = {.phase = std::string(describe(page.phase.load())),
                  .step = page.step.load(),
                  .place = describe_place(collectives.ranks.at(rank), collectives.now_ns)};
  }
  return facts;
}

// Another descriptor for the same file; empty when that cannot be.
UniqueFd open_to_read(const UniqueFd& file) {
  return UniqueFd(::open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC));
}

// Where it cannot be written, there is none.
StackTarget target_of(std::size_t rank, pid_t pid, const RollCall::Sources& sources) {
  const int number = static_cast<int>(rank);
  const UniqueFd& errors = sources.attempt.error_logs.at(rank);
  StackTarget target = {.pid = pid,
                        .file = sources.logs.file(fmt::format("stacks.{}", number)),
                        .output = {},
                        .log = open_to_read(errors ? errors : sources.attempt.logs.at(rank))};
  try {
    target.output = sources.logs.open_stacks(number);
  } catch (const Error&) {
  }
  return target;
}

std::string read_start(const UniqueFd& file) {
  std::string text(kMostStack, '\0');
  const ssize_t count = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace

RollCall::RollCall(EventLoop& loop, EventQueue& events, const Environment& environment,
                   const Sources& sources)
    : events_(events), sources_(sources), stacks_(loop, environment) {}

void RollCall::forget() {
  lines_.clear();
  written_.clear();
  collectives_ = {};
}

void RollCall::call() {
  collectives_ = read_collectives(sources_.state.pages, sources_.state.verdict.span.first);
  std::vector<RankFacts> ranks;
  std::vector<StackTarget> targets;
  const bool again = stacks_.under_way();  // those that are being written are the answer
  if (!again) written_.clear();
  for (std::size_t rank = 0; rank < sources_.state.workers.size(); ++rank) {
    ranks.push_back(gather(rank, sources_, collectives_));
    if (!ranks.back().running || again) continue;
    targets.push_back(target_of(rank, ranks.back().pid, sources_));
    written_.push_back({ranks.back().rank, open_to_read(targets.back().output)});
  }
  lines_ = describe_roll_call(ranks, collectives_);
  knows_odd_rank_ = !describe_odd_rank(ranks).empty() || !collectives_.empty();
  const std::string& why = sources_.state.verdict.why;
  sources_.console.say(fmt::format("{}{}what the ranks are doing:", why, why.empty() ? "" : "; "));
  for (const std::string& line : lines_) sources_.console.show(fmt::format("    {}\n", line));
  const std::vector<std::string> files = stacks_.begin(std::move(targets), [this] {
    compare_stacks();
    events_.push(RollCalled{});
  });
  if (!files.empty()) sources_.console.say(fmt::format("their stacks: {}", fmt::join(files, ", ")));
}

// Several calls may end together; the first compares.
void RollCall::compare_stacks() {
  std::vector<PythonStack> stacks;
  for (const auto& [rank, file] : written_)
    if (file) stacks.push_back({rank, parse_python_stack(read_start(file))});
  const auto ranks = std::exchange(written_, {}).size();
  const bool known =
      std::any_of(stacks.begin(), stacks.end(), [](const auto& stack) { return !stack.frames.empty(); });
  if (const std::string line = compare_python_stacks(stacks); !line.empty()) return say(line);
  if (ranks > 1 && !known && !knows_odd_rank_)
    say("it cannot be told from outside which rank the others wait for");
}

void RollCall::say(const std::string& line) {
  lines_.push_back(line);
  sources_.console.show(fmt::format("    {}\n", line));
}

}  // namespace fleetrun::launch
