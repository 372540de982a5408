#include "launch/report/collective_records.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/name_ranks.h"

namespace fleetrun::launch {
namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

std::string call_of(const FlightHistory& history, std::uint64_t number) {
  const FlightEntry* entry = history.find(number);
  return entry == nullptr ? "" : ", " + entry->describe();
}

std::string since(const FlightHistory& history, std::int64_t now_ns) {
  const FlightEntry* entry = history.find(history.begun);
  return entry == nullptr ? "" : fmt::format(" for {:.1f} s", seconds(now_ns - entry->start_ns));
}

// ---- comparing

using Members = std::vector<Member>;

// Ascending with time: in a collective, then after it.
std::uint64_t place_of(const Member& member) { return 2 * member.history->begun - (member.inside() ? 1 : 0); }

std::vector<int> ranks_of(const Members& members) {
  std::vector<int> ranks;
  for (const Member& member : members) ranks.push_back(member.rank);
  return ranks;
}

// Describes ranks at one place. The sentence has already named `wanted`, the collective that the last ranks have not begun.
std::string describe_group(const Members& group, std::uint64_t wanted, std::int64_t now_ns) {
  const Member& first = group.front();
  const std::vector<int> ranks = ranks_of(group);
  const std::uint64_t number = first.history->begun;
  if (!first.inside())
    return number == 0 ? ranks_have(ranks) + " begun none"
                       : fmt::format("{} finished collective {}", ranks_have(ranks), number);
  if (number == wanted)
    return fmt::format("{} {} in it{}", name_ranks(ranks), ranks.size() == 1 ? "waits" : "wait",
                       since(*first.history, now_ns));
  return fmt::format("{} in collective {}{},{}", ranks_are(ranks), number, call_of(*first.history, number),
                     since(*first.history, now_ns));
}

// Describes the ranks that are behind all others, or all ranks when they are at one place.
std::string describe_last(const Members& last, bool all, const Members& members, std::int64_t now_ns) {
  const FlightHistory& history = *last.front().history;
  const std::vector<int> ranks = ranks_of(last);
  if (last.front().inside())
    return fmt::format("{} {}in collective {}{},{}", ranks_are(ranks), all ? "" : "still ", history.begun,
                       call_of(history, history.begun), since(history, now_ns));
  if (all) return describe_group(last, 0, now_ns);
  const std::uint64_t next = history.begun + 1;
  const auto knows = std::find_if(members.begin(), members.end(), [&](const Member& member) {
    return member.history->find(next) != nullptr;
  });
  return fmt::format("{} not begun collective {}{}", ranks_have(ranks), next,
                     knows == members.end() ? "" : call_of(*knows->history, next));
}

void compare_places(Comparison& found, std::int64_t now_ns) {
  std::map<std::uint64_t, Members> places;
  for (const Member& member : found.members) places[place_of(member)].push_back(member);
  const Members& last = places.begin()->second;
  const bool all = places.size() == 1;
  const bool inside = last.front().inside();
  found.settled = all && !inside;
  if (!all) found.odd = ranks_of(last);
  found.words = describe_last(last, all, found.members, now_ns);
  const std::uint64_t named = last.front().history->begun + (inside ? 0 : 1);
  for (auto group = std::next(places.begin()); group != places.end(); ++group)
    found.words += "; " + describe_group(group->second, named, now_ns);
}

void say_different_calls(Comparison& found, std::uint64_t number) {
  std::map<std::string, std::vector<int>> calls;
  for (const Member& member : found.members)
    if (const FlightEntry* entry = member.history->find(number))
      calls[entry->describe()].push_back(member.rank);
  std::vector<std::pair<std::string, std::vector<int>>> groups(calls.begin(), calls.end());
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  const bool majority = groups[0].second.size() > groups[1].second.size();
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& [call, ranks] = groups[i];
    parts.push_back(fmt::format("{} on {}", call, name_ranks(ranks)));
    if (majority && i > 0) found.odd.insert(found.odd.end(), ranks.begin(), ranks.end());
  }
  std::sort(found.odd.begin(), found.odd.end());
  found.settled = false;
  found.words = fmt::format("collective {} is {}", number, fmt::join(parts, ", but "));
}

// Looks for the first collective that not all ranks call alike, among those that all of them still remember.
bool compare_calls(Comparison& found) {
  const FlightHistory& first = *found.members.front().history;
  for (const FlightEntry& entry : first.entries)
    for (const Member& member : found.members) {
      const FlightEntry* other = member.history->find(entry.number);
      if (other == nullptr || other->same_call(entry)) continue;
      say_different_calls(found, entry.number);
      return true;
    }
  return false;
}

// By communicator, in the order in which they were made.
std::vector<Comparison> list_communicators(const CollectiveRecords& records) {
  std::vector<Comparison> all;
  for (const RankCollectives& rank : records.ranks)
    for (const FlightHistory& history : rank.communicators) {
      auto found = std::find_if(all.begin(), all.end(), [&](const Comparison& each) {
        return each.communicator == history.communicator;
      });
      if (found == all.end()) {
        all.push_back({.communicator = history.communicator, .members = {}, .odd = {}, .words = {}});
        found = std::prev(all.end());
      }
      found->members.push_back({rank.rank, &history});
    }
  return all;
}

}  // namespace

bool CollectiveRecords::empty() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const RankCollectives& rank) {
    return std::all_of(rank.communicators.begin(), rank.communicators.end(),
                       [](const FlightHistory& history) { return history.begun == 0; });
  });
}

CollectiveRecords read_collectives(const std::vector<ProgressPagePtr>& pages, int first_rank) {
  CollectiveRecords records;
  for (std::size_t rank = 0; rank < pages.size(); ++rank)
    records.ranks.push_back({first_rank + static_cast<int>(rank), pages[rank]->records().read()});
  records.now_ns = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  records.now = std::chrono::system_clock::now();
  return records;
}

std::vector<Comparison> compare_collectives(const CollectiveRecords& records) {
  std::vector<Comparison> all = list_communicators(records);
  for (Comparison& each : all)
    if (!compare_calls(each)) compare_places(each, records.now_ns);
  return all;
}

std::vector<std::string> describe_collectives(const CollectiveRecords& records) {
  const std::vector<Comparison> all = compare_collectives(records);
  std::vector<std::string> lines;
  for (const Comparison& each : all)
    if (!each.settled)
      lines.push_back(all.size() == 1 ? each.words : fmt::format("{}: {}", each.communicator, each.words));
  return lines;
}

std::string describe_place(const RankCollectives& rank, std::int64_t now_ns) {
  std::vector<std::string> inside;
  std::uint64_t most = 0;
  for (const FlightHistory& history : rank.communicators) {
    most = std::max(most, history.begun);
    if (Member{rank.rank, &history}.inside())
      inside.push_back(fmt::format("in collective {}{}{},{}", history.begun,
                                   rank.communicators.size() == 1 ? "" : " of " + history.communicator,
                                   call_of(history, history.begun), since(history, now_ns)));
  }
  if (!inside.empty()) return fmt::format("{}", fmt::join(inside, ", "));
  return most == 0 ? "" : fmt::format("after collective {}", most);
}

}  // namespace fleetrun::launch
