#include "launch/option.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/suggest.h"

namespace fleetrun::launch {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kLaunchHint =
    "flags of a script or program stand after its name; fleetrun --help lists ours";

[[noreturn]] void throw_unknown_flag(const std::vector<Option>& options, const std::string& name,
                                     const std::string& hint) {
  Words known;
  for (const Option& option : options) known.insert(known.end(), option.names.begin(), option.names.end());
  const std::optional<std::string> meant = closest(name, known);
  throw Error(ErrorKind::usage,
              fmt::format("unknown flag {}{}", name, meant ? fmt::format("; did you mean {}?", *meant) : ""),
              hint);
}

std::string name_in(const std::string& word) { return word.substr(0, word.find('=')); }

bool looks_like_a_flag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

std::string with_underscores(std::string name) {
  std::replace(name.begin() + std::min<std::ptrdiff_t>(2, std::ssize(name)), name.end(), '-', '_');
  return name;
}

const Option& option_called(const std::vector<Option>& options, const std::string& written,
                            const std::string& hint) {
  const std::string name = with_underscores(written);
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.is_called(name); });
  if (found == options.end()) throw_unknown_flag(options, written, hint);
  return *found;
}

// Takes one flag and its value; gives the place behind them.
Words::const_iterator take_flag(const Option& option, Words::const_iterator word, Words::const_iterator end,
                                FoundFlags& found) {
  const auto equals = word->find('=');
  const bool inside = equals != std::string::npos;
  const std::string name = with_underscores(word->substr(0, equals));
  if (option.takes == Option::Takes::nothing && inside)
    throw Error(ErrorKind::usage, fmt::format("{} takes no value", name));
  if (option.takes != Option::Takes::value || inside) {
    const std::string text = inside ? word->substr(equals + 1) : "";
    if (!inside || !text.empty()) found.flags.push_back({&option, text});
    return std::next(word);
  }
  if (std::next(word) == end) throw Error(ErrorKind::usage, fmt::format("{} needs a value", name));
  if (!std::next(word)->empty()) found.flags.push_back({&option, *std::next(word)});
  return word + 2;
}

}  // namespace

bool Option::is_called(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool FoundFlags::has(std::string_view name) const {
  return std::any_of(flags.begin(), flags.end(),
                     [&](const FoundFlag& flag) { return flag.option->is_called(name); });
}

std::optional<std::string> FoundFlags::value(std::string_view name) const {
  std::optional<std::string> text;
  for (const FoundFlag& flag : flags)
    if (flag.option->is_called(name)) text = flag.text;
  return text;
}

FoundFlags find_flags(const std::vector<Option>& options, const Words& words) {
  FoundFlags found;
  auto word = words.begin();
  while (word != words.end() && looks_like_a_flag(*word)) {
    if (*word == "--") {
      ++word;
      break;
    }
    word = take_flag(option_called(options, name_in(*word), kLaunchHint), word, words.end(), found);
  }
  found.rest.assign(word, words.end());
  return found;
}

FoundFlags find_all_flags(const std::vector<Option>& options, const Words& words, const std::string& hint) {
  FoundFlags found;
  auto word = words.begin();
  while (word != words.end() && *word != "--") {
    if (looks_like_a_flag(*word))
      word = take_flag(option_called(options, name_in(*word), hint), word, words.end(), found);
    else
      found.rest.push_back(*word++);
  }
  if (word != words.end()) found.rest.insert(found.rest.end(), std::next(word), words.end());
  return found;
}

}  // namespace fleetrun::launch
