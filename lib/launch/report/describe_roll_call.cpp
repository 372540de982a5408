#include "launch/report/describe_roll_call.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "base/run/progress_page.h"
#include "base/text/name_ranks.h"
#include "launch/logs/own_files.h"
#include "launch/process/proc_files.h"
#include "launch/process/process_state.h"

namespace fleetrun::launch {
namespace {

std::string describe_rank(const RankFacts& rank) {
  if (!rank.running) return fmt::format("rank {}  {}", rank.rank, rank.ended);
  std::string text = fmt::format("rank {}  pid {}  {}", rank.rank, rank.pid, describe_state(rank.state));
  if (!rank.wait.empty()) text += fmt::format(" in {}", rank.wait);
  text += fmt::format("  worked {:.1f} s  silent for {:.0f} s", rank.worked, rank.silent_for);
  if (rank.step)
    text += fmt::format("  {}, step {}{}{}", rank.step->phase, rank.step->step,
                        rank.step->place.empty() ? "" : ", ", rank.step->place);
  if (!rank.last_line.empty()) text += fmt::format("  last line: {}", rank.last_line);
  return text;
}

// The ranks that wait where only few do, while the others share another place.
std::string name_odd_wait(const std::vector<RankFacts>& ranks) {
  std::map<std::string, std::vector<int>> places;
  for (const RankFacts& rank : ranks) places[rank.wait].push_back(rank.rank);
  if (places.size() != 2) return "";
  auto few = places.begin(), many = std::next(few);
  if (few->second.size() > many->second.size()) std::swap(few, many);
  if (few->second.size() == many->second.size()) return "";
  return fmt::format("{} in {}, the others in {}", ranks_are(few->second), few->first, many->first);
}

template <typename Condition>
std::string name_if(const std::vector<RankFacts>& ranks, Condition condition, const std::string& what,
                    const std::string& others = "the others are not") {
  std::vector<int> found;
  for (const RankFacts& rank : ranks)
    if (condition(rank)) found.push_back(rank.rank);
  if (found.empty() || found.size() == ranks.size()) return "";
  return fmt::format("{} {}, {}", ranks_are(found), what, others);
}

std::string name_behind(const std::vector<RankFacts>& ranks) {
  std::uint64_t most = 0, least = UINT64_MAX;
  for (const RankFacts& rank : ranks) {
    if (!rank.step) return "";
    most = std::max(most, rank.step->step);
    least = std::min(least, rank.step->step);
  }
  if (ranks.empty() || most == least) return "";
  std::vector<int> behind;
  for (const RankFacts& rank : ranks)
    if (rank.step->step == least) behind.push_back(rank.rank);
  return fmt::format("{} {} steps behind", ranks_are(behind), most - least);
}

// The name of the user who owns the process, if we may not send signals to it. "" if we may.
std::string owner_out_of_reach(pid_t pid) {
  struct stat facts {};
  if (::kill(pid, 0) == 0 || errno != EPERM || ::stat(fmt::format("/proc/{}", pid).c_str(), &facts) != 0)
    return "";
  return name_of_user(facts.st_uid);
}

}  // namespace

void read_process_facts(RankFacts& facts) {
  const auto stat = read_process_stat(facts.pid);
  if (!stat) return;
  facts.state = stat->state;
  facts.worked = in_seconds(stat->cpu_time);
  facts.wait = read_kernel_file(process_path(facts.pid, "wchan"));
  if (facts.wait == "0") facts.wait.clear();
}

std::string describe_stuck(pid_t pid) {
  if (const std::string owner = owner_out_of_reach(pid); !owner.empty())
    return fmt::format(
        "pid {}, which belongs to {}: fleetrun may not send signals to processes of that user, but \"sudo fleetrun ...\" may",
        pid, owner);
  RankFacts facts = {.pid = pid};
  read_process_facts(facts);
  return fmt::format("pid {}, {}{}", pid, describe_state(facts.state),
                     facts.wait.empty() ? "" : " in " + facts.wait);
}

std::vector<std::string> describe_roll_call(const std::vector<RankFacts>& ranks,
                                            const CollectiveRecords& collectives) {
  std::vector<std::string> lines;
  lines.reserve(ranks.size());
  for (const RankFacts& rank : ranks) lines.push_back(describe_rank(rank));
  if (const std::string odd = describe_odd_rank(ranks); !odd.empty()) lines.push_back(odd);
  for (const std::string& line : describe_collectives(collectives)) lines.push_back(line);
  return lines;
}

// From the surest sign to the weakest.
std::string describe_odd_rank(const std::vector<RankFacts>& ranks) {
  const auto stopped = [](const RankFacts& rank) {
    return rank.running && (rank.state == 'T' || rank.state == 't');
  };
  const auto device = [](const RankFacts& rank) { return rank.running && rank.state == 'D'; };
  const auto gone = [](const RankFacts& rank) { return !rank.running; };
  const auto reading = [](const RankFacts& rank) {
    return rank.running && rank.step && rank.step->phase == describe(Phase::reading);
  };
  const auto busy = [](const RankFacts& rank) { return rank.running && rank.state == 'R'; };
  for (const std::string& text :
       {name_if(ranks, stopped, "stopped"), name_if(ranks, device, "waiting for a device"),
        name_if(ranks, gone, "no longer running", "but the others are"),
        name_if(ranks, reading, "waiting for data"), name_behind(ranks), name_if(ranks, busy, "computing")})
    if (!text.empty()) return text;
  return name_odd_wait(ranks);
}

}  // namespace fleetrun::launch
