#include "launch/serve/log_pieces.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/utf8.h"
#include "launch/logs/growing_file.h"
#include "launch/logs/log_times.h"
#include "launch/logs/rank_logs.h"

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

// What one reader wants.
struct Wish {
  int local_rank = 0;
  bool errors = false;
  int attempt = 0;
  std::int64_t from = 0;
  std::optional<std::int64_t> since;
};

std::int64_t number(const JsonValue& object, const char* key, std::int64_t fallback) {
  const JsonValue* const value = object.find(key, Kind::integer);
  return value == nullptr ? fallback : value->integer;
}

Wish read_wish(const JsonValue& object, const Verdict& verdict) {
  const std::int64_t rank = number(object, "local_rank", -1);
  if (rank < 0 || rank > INT_MAX)
    throw Error(ErrorKind::usage, fmt::format("found local rank {}, wanted a rank of this node", rank));
  const JsonValue* const errors = object.find("errors", Kind::boolean);
  const std::int64_t attempt = number(object, "attempt", -1);
  Wish wish = {
      .local_rank = static_cast<int>(rank),
      .errors = errors != nullptr && errors->boolean,
      .attempt = attempt < 0 ? verdict.attempt : static_cast<int>(std::min<std::int64_t>(attempt, INT_MAX)),
      .from = std::max<std::int64_t>(0, number(object, "from", 0)),
      .since = {}};
  if (const JsonValue* const since = object.find("since", Kind::integer)) wish.since = since->integer;
  return wish;
}

// What the rank has open, also under another name by now; else the file in the folder.
LogFile find_present(const LogSources& sources, const RankLog& log) {
  const LogFile named = sources.logs.find("workerlog." + log.name());
  const auto& open = log.errors ? sources.attempt.error_logs : sources.attempt.logs;
  const auto rank = static_cast<std::size_t>(log.rank);
  return rank < open.size() && open[rank] ? file_behind(open[rank], named) : named;
}

// The log of the present attempt, or where a restart has kept it.
GrowingFile open_log(const LogSources& sources, int attempt, const RankLog& log) {
  if (attempt == sources.verdict.attempt)
    if (GrowingFile present(find_present(sources, log)); present.is_open()) return present;
  return GrowingFile(sources.logs.find(fmt::format("attempt-{}/workerlog.{}", attempt, log.name())));
}

// Leaves an incomplete UTF-8 character at the end for the next piece.
void cut_after_character(std::string& text) {
  constexpr std::size_t kLongestCharacter = 4;
  const std::size_t whole = whole_utf8_characters(text, text.size());
  if (whole > 0 && text.size() - whole < kLongestCharacter) text.resize(whole);
}

// The bytes of the text that take at most so many on the network. There they stand in a JSON text within another one.
std::size_t bytes_within(const std::string& text, std::size_t most) {
  constexpr std::size_t kControl = 7, kOther = 3;  // "\\\\u001b"; what is not UTF-8 becomes U+FFFD
  std::size_t cost = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = static_cast<unsigned char>(text[i]);
    const bool plain = (code >= 0x20 && code < 0x7f) || code == '\n' || code == '\t';
    cost += plain ? 1 : code > 0x7f ? kOther : kControl;
    if (cost > most) return i;
  }
  return text.size();
}

// The entries of a long run take time to read: once for all logs that are wanted since one time. A log without a byte, which usually is
// that of stderr, has no entry: the search for one would read them all.
class PlacesSince {
 public:
  PlacesSince(const LogSources& sources, const std::vector<Wish>& wishes) : folder_(sources.logs.path()) {
    for (const Wish& wish : wishes) {
      const RankLog log = {wish.local_rank, wish.errors};
      if (wish.since && open_log(sources, wish.attempt, log).size() > 0) logs_.insert(log.name());
    }
  }

  std::int64_t operator()(const std::string& log, std::int64_t since) {
    const auto [found, is_new] = by_time_.try_emplace(since);
    if (is_new)
      found->second =
          places_in_logs(folder_, logs_, std::chrono::system_clock::time_point(std::chrono::seconds(since)));
    const auto place = found->second.find(log);
    return place == found->second.end() ? 0 : place->second;
  }

 private:
  std::string folder_;
  std::set<std::string> logs_;
  std::map<std::int64_t, LogPlaces> by_time_;
};

JsonValue read_piece(const LogSources& sources, const Wish& wish, PlacesSince& places, std::size_t most) {
  const RankLog log = {wish.local_rank, wish.errors};
  JsonValue piece = JsonValue::object(
      {{"local_rank", wish.local_rank}, {"errors", wish.errors}, {"attempt", wish.attempt}});
  if (std::cmp_greater_equal(wish.local_rank, sources.verdict.ranks.size())) {
    piece.add("missing", true);
    return piece;
  }
  GrowingFile file = open_log(sources, wish.attempt, log);
  if (!file.is_open()) {
    const bool begun = open_log(sources, wish.attempt, {.rank = log.rank}).is_open();
    piece.add("missing", wish.errors && begun);
    return piece;
  }
  const std::int64_t size = file.size();
  std::int64_t from = wish.from > size ? 0 : wish.from;
  if (wish.since) from = std::min(size, places(log.name(), *wish.since));
  file.go_to(from);
  std::string text = file.read(most);
  text.resize(bytes_within(text, most));
  if (std::cmp_less(from + std::ssize(text), size)) cut_after_character(text);
  piece.add("from", from);
  piece.add("bytes", text.size());
  piece.add("size", size);
  std::replace(text.begin(), text.end(), '\0', '?');  // as people are shown it; JSON has none
  piece.add("text", std::move(text));
  return piece;
}

}  // namespace

// What one log leaves of the room is for those after it.
JsonValue read_log_pieces(const LogSources& sources, const JsonValue& request) {
  const JsonValue* const wanted = request.find("logs", Kind::list);
  if (wanted == nullptr) throw Error(ErrorKind::usage, "found no logs, wanted a list of them");
  JsonValue pieces = JsonValue::list({});
  std::vector<Wish> wishes;
  for (const JsonValue& one : wanted->items) wishes.push_back(read_wish(one, sources.verdict));
  PlacesSince places(sources, wishes);
  std::size_t room = kMostLogBytes, left = wishes.size();
  for (const Wish& wish : wishes) {
    const JsonValue piece = read_piece(sources, wish, places, room / left--);
    room -= static_cast<std::size_t>(number(piece, "bytes", 0));
    pieces.items.push_back(piece);
  }
  return JsonValue::object({{"attempt", sources.verdict.attempt}, {"logs", pieces}});
}

}  // namespace fleetrun::launch
