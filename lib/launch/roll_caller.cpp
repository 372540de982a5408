#include "launch/roll_caller.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/printable.h"
#include "launch/last_lines.h"
#include "launch/roll_call.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kLongestShown = 100;  // of a log, shown beside the other facts of a rank

double seconds_silent(const std::string& log, std::chrono::system_clock::time_point started) {
  using std::chrono::system_clock;
  struct stat facts {};
  auto last = started;
  if (::stat(log.c_str(), &facts) == 0)
    last = std::max(last, system_clock::time_point(std::chrono::duration_cast<system_clock::duration>(
                              std::chrono::seconds(facts.st_mtim.tv_sec) +
                              std::chrono::nanoseconds(facts.st_mtim.tv_nsec))));
  return std::max(0.0, std::chrono::duration<double>(system_clock::now() - last).count());
}

std::string ending_of(const RankVerdict& verdict) {
  if (verdict.role == Role::finished) return "finished with 0";
  return verdict.status ? verdict.status->describe() : "was never started";
}

RankFacts gather(std::size_t rank, const RollCaller::Sources& sources, const CollectiveRecords& collectives) {
  const RankVerdict& verdict = sources.group.verdict().ranks.at(rank);
  const WorkerRecord& record = sources.group.records().at(rank);
  const std::string log = sources.logs.worker_log(static_cast<int>(rank));
  RankFacts facts = {.rank = static_cast<int>(rank), .pid = record.pid};
  facts.running = verdict.role == Role::running && record.pid > 0;
  if (!facts.running) {
    facts.ended = ending_of(verdict);
    return facts;
  }
  read_process_facts(facts);
  facts.silent_for = seconds_silent(log, record.started);
  if (const auto lines = read_last_lines(log, 1); !lines.empty())
    facts.last_line = printable_start(lines.front(), kLongestShown);
  if (rank < sources.pages.size()) {
    const ProgressPage& page = *sources.pages[rank];
    facts.step = {.phase = std::string(describe(page.phase.load())),
                  .step = page.step.load(),
                  .place = describe_place(collectives.ranks.at(rank), collectives.now_ns)};
  }
  return facts;
}

}  // namespace

RollCaller::RollCaller(EventLoop& loop, const Environment& environment, Sources sources)
    : sources_(sources), stacks_(loop, environment) {}

void RollCaller::forget() {
  lines_.clear();
  collectives_ = {};
}

void RollCaller::call(std::function<void()> done) {
  collectives_ = read_collectives(sources_.pages);
  std::vector<RankFacts> ranks;
  std::vector<StackTarget> targets;
  for (std::size_t rank = 0; rank < sources_.group.records().size(); ++rank) {
    ranks.push_back(gather(rank, sources_, collectives_));
    if (ranks.back().running)
      targets.push_back({ranks.back().pid, sources_.logs.file(fmt::format("stacks.{}", rank))});
  }
  lines_ = describe_roll_call(ranks, collectives_);
  const std::string& why = sources_.group.verdict().why;
  sources_.console.say(fmt::format("{}{}what the ranks are doing:", why, why.empty() ? "" : "; "));
  for (const std::string& line : lines_) sources_.console.show(fmt::format("    {}\n", line));
  const std::vector<std::string> files = stacks_.begin(targets, std::move(done));
  if (!files.empty()) sources_.console.say(fmt::format("their stacks: {}", fmt::join(files, ", ")));
}

}  // namespace fleetrun::launch
