#include "launch/schedulers/slurm_lists.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/text/split_list.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/schedulers/read_values.h"

namespace fleetrun::launch {
namespace {

constexpr std::size_t kMostDigits = 18;  // that fit 64 bits

Error bad_list(const std::string& source, const std::string& text, const std::string& why) {
  return bad_allocation(fmt::format("{} is \"{}\": {}", source, shortened(text), why));
}

std::uint64_t parse_digits(const std::string& source, const std::string& text) {
  std::uint64_t number = 0;
  if (text.size() > kMostDigits || !parse_whole(text, number))
    throw bad_list(source, text, "must be a number or a range such as 01-16");
  return number;
}

// "001-003" is 001, 002, 003.
void add_range(const std::string& source, const std::string& text, std::vector<std::string>& numbers) {
  const std::size_t dash = text.find('-');
  const std::string from = text.substr(0, dash);
  const std::string to = dash == std::string::npos ? from : text.substr(dash + 1);
  const std::uint64_t first = parse_digits(source, from), last = parse_digits(source, to);
  if (last < first) throw bad_list(source, text, "the range ends before it begins");
  if (last - first >= kMostNodes)
    throw bad_list(source, text, fmt::format("the range has more than {} nodes", kMostNodes));
  for (std::uint64_t number = first; number <= last; ++number)
    numbers.push_back(fmt::format("{:0{}}", number, from.size()));
}

std::vector<std::string> combine(const std::string& source, const std::vector<std::string>& heads,
                                 const std::vector<std::string>& tails) {
  if (heads.size() * tails.size() > kMostNodes)
    throw bad_allocation(fmt::format("{} lists more than {} nodes", source, kMostNodes));
  std::vector<std::string> words;
  words.reserve(heads.size() * tails.size());
  for (const std::string& head : heads)
    for (const std::string& tail : tails) words.push_back(head + tail);
  return words;
}

// One item of the list: text and brackets, in any order.
std::vector<std::string> expand_item(const std::string& source, const std::string& item) {
  std::vector<std::string> words = {""};
  for (std::size_t at = 0; at < item.size();) {
    const std::size_t open = std::min(item.find('[', at), item.size());
    words = combine(source, words, {item.substr(at, open - at)});
    if (open == item.size()) break;
    const std::size_t close = item.find(']', open);
    std::vector<std::string> numbers;
    for (const std::string& range : split_list(item.substr(open + 1, close - open - 1)))
      add_range(source, range, numbers);
    words = combine(source, words, numbers);
    at = close + 1;
  }
  return words;
}

// At commas outside of brackets. Throws when brackets do not match.
std::vector<std::string> split_items(const std::string& source, const std::string& text) {
  std::vector<std::string> items = {""};
  bool inside = false;
  for (const char letter : text) {
    if ((letter == '[' && inside) || (letter == ']' && !inside))
      throw bad_list(source, text, fmt::format("its brackets do not match at '{}'", letter));
    if (letter == '[' || letter == ']') inside = letter == '[';
    if (letter == ',' && !inside)
      items.emplace_back();
    else
      items.back() += letter;
  }
  if (inside) throw bad_list(source, text, "the last bracket is not closed");
  return items;
}

}  // namespace

std::vector<std::string> expand_hosts(const std::string& source, const std::string& text) {
  if (text.size() > kMostListBytes)
    throw bad_allocation(fmt::format("{} is longer than {} MiB", source, kMostListBytes >> 20));
  std::vector<std::string> hosts;
  for (const std::string& item : split_items(source, text)) {
    for (std::string& host : expand_item(source, item)) {
      check_host(source, host);
      hosts.push_back(std::move(host));
    }
    if (hosts.size() > kMostNodes)
      throw bad_allocation(fmt::format("{} lists more than {} nodes", source, kMostNodes));
  }
  return hosts;
}

std::vector<int> expand_counts(const std::string& source, const std::string& text) {
  std::vector<int> counts;
  for (const std::string& item : split_list(text)) {
    const std::size_t open = item.find("(x");
    int count = 0, times = 1;
    bool good = parse_whole(item.substr(0, open), count) && count >= 0;
    if (open != std::string::npos)
      good = good && item.ends_with(')') && parse_whole(item.substr(open + 2, item.size() - open - 3), times);
    if (!good || times < 1) throw bad_list(source, text, "must be counts such as 2(x3),1");
    if (times > kMostNodes || std::ssize(counts) + times > kMostNodes)
      throw bad_list(source, text, fmt::format("that is more than {} nodes", kMostNodes));
    counts.insert(counts.end(), static_cast<std::size_t>(times), count);
  }
  return counts;
}

}  // namespace fleetrun::launch
