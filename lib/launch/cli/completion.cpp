#include "launch/cli/completion.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error/error.h"

namespace fleetrun::launch {
namespace {

using Words = std::vector<std::string>;

bool is_break(const std::string& word) {
  return !word.empty() && word.find_first_not_of("=:") == std::string::npos;
}

// bash gives "--device = cpu" for --device=cpu.
Words joined_at_breaks(const Words& words) {
  Words joined;
  bool join = false;
  for (const std::string& word : words) {
    if (!joined.empty() && (join || is_break(word)))
      joined.back() += word;
    else
      joined.push_back(word);
    join = is_break(word);
  }
  return joined;
}

// What stands before the word that is being typed.
struct Before {
  const Flag* waiting = nullptr;  // for its value
  std::size_t words = 0;          // that are not flags
  bool flags_ended = false;       // by "--"
};

// Of a launch nothing is read after the program, its first word.
Before read_before(const std::vector<Flag>& flags, const Words& words, bool is_launch) {
  Before before;
  for (const std::string& word : words) {
    if (std::exchange(before.waiting, nullptr) != nullptr) continue;
    if (word == "--")
      before.flags_ended = true;
    else if (before.flags_ended || !looks_like_a_flag(word))
      ++before.words;
    else if (const Flag* flag = flag_called(flags, word); flag != nullptr && flag->needs_value())
      before.waiting = flag;
    if (is_launch && before.words > 0) break;
  }
  return before;
}

Offers offer_values(const Flag& flag, const std::string& done) {
  Offers offers{.also = flag.completes, .done = done, .words = {}};
  for (const std::string& choice : flag.choices) offers.words.push_back({done + choice, flag.help});
  return offers;
}

// Flags in the way in which they are being typed: with underscores, or with dashes for them.
Offers offer_flags(const std::vector<Flag>& flags, const std::string& typed) {
  Offers offers;
  for (const Flag& flag : flags)
    for (const std::string& name : flag.names)
      if (flag.shown())
        offers.words.push_back(
            {name.starts_with(typed) ? name : with_dashes(name), flag.help, flag.needs_value()});
  return offers;
}

Offers offer_any(const std::vector<Flag>& flags, const std::string& typed, const Before& before) {
  if (before.waiting != nullptr) return offer_values(*before.waiting, "");
  if (before.flags_ended || !looks_like_a_flag(typed)) return {};
  const auto equals = typed.find('=');
  if (equals == std::string::npos) return offer_flags(flags, typed);
  const Flag* flag = flag_called(flags, typed.substr(0, equals));
  return flag == nullptr ? Offers() : offer_values(*flag, typed.substr(0, equals + 1));
}

Offers offer_for(const Subcommand& subcommand, const Words& words, const std::string& typed) {
  const std::vector<Flag> flags = flags_of(subcommand);
  const Before before = read_before(flags, words, false);
  if (before.waiting != nullptr || looks_like_a_flag(typed)) return offer_any(flags, typed, before);
  Offers offers{.also = subcommand.completes, .done = "", .words = {}};
  if (before.words == 0)
    for (const std::string& choice : subcommand.choices) offers.words.push_back({choice, subcommand.summary});
  return offers;
}

Offers offer_for_launch(const std::vector<Flag>& flags, const std::vector<Subcommand>& subcommands,
                        const Words& words, const std::string& typed) {
  const Before before = read_before(flags, words, true);
  const bool is_flag = looks_like_a_flag(typed) && before.words == 0 && !before.flags_ended;
  if (before.waiting != nullptr || is_flag) return offer_any(flags, typed, before);
  const bool names_program = before.flags_ended && before.words == 0 && !typed.empty();
  Offers offers{.also = names_program ? Completes::programs : Completes::files, .done = "", .words = {}};
  if (words.empty())
    for (const Subcommand& one : subcommands) offers.words.push_back({one.name, one.summary});
  return offers;
}

}  // namespace

Offers complete(const std::vector<Flag>& flags, const std::vector<Subcommand>& subcommands, Words words) {
  words = joined_at_breaks(words);
  const std::string typed = words.empty() ? "" : words.back();
  if (!words.empty()) words.pop_back();
  const Subcommand* subcommand = words.empty() ? nullptr : subcommand_called(subcommands, words.front());
  Offers offers = subcommand == nullptr ? offer_for_launch(flags, subcommands, words, typed)
                                        : offer_for(*subcommand, {words.begin() + 1, words.end()}, typed);
  std::erase_if(offers.words, [&](const Offers::Word& word) { return !word.text.starts_with(typed); });
  return offers;
}

std::string to_lines(const Offers& offers) {
  constexpr std::array kNames = {"nothing", "files", "folders", "programs"};
  std::string lines = fmt::format("{}\n{}\n", kNames.at(static_cast<std::size_t>(offers.also)), offers.done);
  for (const Offers::Word& word : offers.words)
    lines += word.text + "\t" + word.meaning + (word.needs_value ? "\t=\n" : "\n");
  return lines;
}

}  // namespace fleetrun::launch
