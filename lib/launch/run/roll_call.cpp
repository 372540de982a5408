#include "launch/run/roll_call.h"

#include <sys/stat.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error/error.h"
#include "launch/logs/last_lines.h"
#include "launch/process/proc_files.h"
#include "launch/report/describe_roll_call.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestShown = 100;  // of a log, shown beside the other facts of a rank

double seconds_silent(const UniqueFd& log, const Moment& started) {
  struct stat facts {};
  return ::fstat(log.get(), &facts) == 0 ? seconds_since_write(facts, started) : seconds_since(started);
}

std::string ending_of(const RankVerdict& verdict) {
  if (verdict.role == Role::finished) return "finished with 0";
  return verdict.status ? verdict.status->describe() : "was never started";
}

RankFacts gather(std::size_t rank, const RollCall::Sources& sources, const CollectiveRecords& collectives) {
  const RankVerdict& verdict = sources.state.verdict.ranks.at(rank);
  const WorkerRecord& record = sources.state.workers.at(rank);
  const UniqueFd& log = sources.attempt.logs.at(rank);
  RankFacts facts = {.rank = sources.state.verdict.number_of(static_cast<int>(rank)), .pid = record.pid};
  facts.running = verdict.role == Role::running && record.pid > 0;
  if (!facts.running) {
    facts.ended = ending_of(verdict);
    return facts;
  }
  read_process_facts(facts);
  facts.silent_for = seconds_silent(log, record.started);
  const LogFile named = sources.logs.find_worker_log(static_cast<int>(rank));
  if (const auto lines = read_last_lines(file_behind(log, named), 1); !lines.empty())
    facts.last_line = shorten(lines.front(), kLongestShown);
  if (rank < sources.state.pages.size()) {
    const ProgressPage& page = *sources.state.pages[rank];
    facts.step = {.phase = std::string(describe(page.phase.load())),
                  .step = page.step.load(),
                  .place = describe_place(collectives.ranks.at(rank), collectives.now_ns)};
  }
  return facts;
}

// Where it cannot be written, there is none.
StackTarget target_of(int rank, pid_t pid, const LogFolder& logs) {
  StackTarget target = {.pid = pid, .file = logs.file(fmt::format("stacks.{}", rank)), .output = {}};
  try {
    target.output = logs.open_stacks(rank);
  } catch (const Error&) {
  }
  return target;
}

}  // namespace

RollCall::RollCall(EventLoop& loop, EventQueue& events, const Environment& environment,
                   const Sources& sources)
    : events_(events), sources_(sources), stacks_(loop, environment) {}

void RollCall::forget() {
  lines_.clear();
  collectives_ = {};
}

void RollCall::call() {
  collectives_ = read_collectives(sources_.state.pages, sources_.state.verdict.span.first);
  std::vector<RankFacts> ranks;
  std::vector<StackTarget> targets;
  for (std::size_t rank = 0; rank < sources_.state.workers.size(); ++rank) {
    ranks.push_back(gather(rank, sources_, collectives_));
    if (ranks.back().running)
      targets.push_back(target_of(static_cast<int>(rank), ranks.back().pid, sources_.logs));
  }
  lines_ = describe_roll_call(ranks, collectives_);
  const std::string& why = sources_.state.verdict.why;
  sources_.console.say(fmt::format("{}{}what the ranks are doing:", why, why.empty() ? "" : "; "));
  for (const std::string& line : lines_) sources_.console.show(fmt::format("    {}\n", line));
  const std::vector<std::string> files = stacks_.begin(targets, [this] { events_.push(RollCalled{}); });
  if (!files.empty()) sources_.console.say(fmt::format("their stacks: {}", fmt::join(files, ", ")));
}

}  // namespace fleetrun::launch
