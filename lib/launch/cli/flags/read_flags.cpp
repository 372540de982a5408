#include "launch/cli/flags/read_flags.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "base/error/error.h"
#include "base/text/suggest.h"

namespace fleetrun::launch {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kLaunchHint =
    "fleetrun --help lists all flags; those of your script or program go after its name";
constexpr const char* kGiven = "true";  // CLI11's value of a flag that takes none

[[noreturn]] void throw_unknown_flag(const std::vector<Flag>& flags, const std::string& word,
                                     const std::string& hint) {
  const std::string name = word.substr(0, word.find('='));
  Words known;
  for (const Flag& flag : flags)
    if (flag.shown()) known.insert(known.end(), flag.names.begin(), flag.names.end());
  const std::optional<std::string> meant = closest(name, known);
  throw Error(ErrorKind::usage,
              fmt::format("unknown flag {}{}", name, meant ? fmt::format("; did you mean {}?", *meant) : ""),
              hint);
}

// CLI11 takes mpirun's -np for -n with the value p, and for an empty value as in "--gpus=" the word after it.
Words spelled_for_cli11(const std::vector<Flag>& flags, const Words& words, bool leading_only) {
  Words spelled;
  const Flag* waits = nullptr;  // for its value, which is the next word
  auto word = words.begin();
  for (; word != words.end() && *word != "--"; ++word) {
    if (leading_only && waits == nullptr && !looks_like_a_flag(*word)) break;
    const bool is_value = std::exchange(waits, nullptr) != nullptr;
    const bool is_empty = !is_value && word->starts_with("--") && word->find('=') == word->size() - 1;
    spelled.push_back(!is_value && *word == "-np" ? "--np" : *word);
    if (is_empty) spelled.back().pop_back();
    const Flag* flag = is_value ? nullptr : flag_called(flags, spelled.back());
    if (flag == nullptr || !flag->needs_value()) continue;
    if (is_empty)
      spelled.emplace_back();
    else
      waits = flag;
  }
  spelled.insert(spelled.end(), word, words.end());
  return spelled;
}

// "--bind{cores},--log_dir,--log-dir": all names, each with the value that it has when none follows it.
std::string names_for_cli11(const Flag& flag) {
  Words names = flag.names;
  for (const std::string& name : flag.names)
    if (with_dashes(name) != name) names.push_back(with_dashes(name));
  if (!flag.bare.empty())
    for (std::string& name : names) name += "{" + flag.bare + "}";
  return fmt::format("{}", fmt::join(names, ","));
}

CLI::Option* add(CLI::App& app, const Flag& flag) {
  const std::string names = names_for_cli11(flag);
  CLI::Option* option =
      flag.needs_value() ? app.add_option(names)->type_size(1)->expected(1) : app.add_flag(names);
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void parse(CLI::App& app, const Words& words) {
  std::vector<const char*> argv = {"fleetrun"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  try {
    app.parse(static_cast<int>(argv.size()), argv.data());
  } catch (
      const CLI::ArgumentMismatch&) {  // every flag wants at most one value, so only the last can lack it
    throw Error(ErrorKind::usage, words.back() + " needs a value");
  }
}

bool may_occur(const Flag& flag, const Words& words) {
  return std::any_of(flag.names.begin(), flag.names.end(), [&words](const std::string& name) {
    const bool is_letter = name.size() == 2;  // may stand with its value or with other letters in one word
    return is_letter || std::any_of(words.begin(), words.end(), [&name](const std::string& word) {
             return word.starts_with(name) || word.starts_with(with_dashes(name));
           });
  });
}

// The name of the flag that stands among these words, with underscores, the last one where there are several; its first name where a
// letter shares a word with others.
std::string written_name(const Flag& flag, std::span<const std::string> words) {
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const std::string name = with_dashes(word->substr(0, word->find('=')));
    const auto is_name = [&](const std::string& known) { return with_dashes(known) == name; };
    const auto found = std::find_if(flag.names.begin(), flag.names.end(), is_name);
    if (found != flag.names.end()) return *found;
  }
  return flag.name();
}

// CLI11 gets only the flags that may occur: it compares each new name with all others, which would take a tenth of a short run's start.
FoundFlags read(CLI::App& app, const std::vector<Flag>& flags, const Words& words) {
  app.set_help_flag();  // ours is one of the table
  std::vector<std::pair<const Flag*, const CLI::Option*>> options;
  for (const Flag& flag : flags)
    if (may_occur(flag, words)) options.emplace_back(&flag, add(app, flag));
  parse(app, words);
  FoundFlags found{.flags = {}, .rest = app.remaining()};
  const auto before = std::span(words).first(words.size() - std::min(words.size(), found.rest.size()));
  for (const auto& [flag, option] : options)
    for (const std::string& text : option->results()) {
      if (!flag->takes_value() && text != kGiven)
        throw Error(ErrorKind::usage, flag->name() + " takes no value");
      if (!text.empty() || flag->may_be_empty)
        found.flags.push_back({flag->name(), text, written_name(*flag, before)});
    }
  return found;
}

}  // namespace

bool FoundFlags::has(std::string_view name) const { return value(name).has_value(); }

std::optional<std::string> FoundFlags::value(std::string_view name) const {
  const Words all = values(name);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

std::string FoundFlags::written(std::string_view name) const {
  for (auto flag = flags.rbegin(); flag != flags.rend(); ++flag)
    if (flag->name == name) return flag->written;
  return std::string(name);
}

std::vector<std::string> FoundFlags::values(std::string_view name) const {
  Words texts;
  for (const FoundFlag& flag : flags)
    if (flag.name == name) texts.push_back(flag.text);
  return texts;
}

FoundFlags read_leading_flags(const std::vector<Flag>& flags, const Words& words) {
  CLI::App app;
  app.prefix_command();
  FoundFlags found = read(app, flags, spelled_for_cli11(flags, words, true));
  if (found.rest.empty()) return found;
  if (found.rest.front() == "--")
    found.rest.erase(found.rest.begin());
  else if (looks_like_a_flag(found.rest.front()))
    throw_unknown_flag(flags, found.rest.front(), kLaunchHint);
  return found;
}

FoundFlags read_flags(const std::vector<Flag>& flags, const Words& words, const std::string& hint) {
  CLI::App app;
  app.allow_extras();
  FoundFlags found = read(app, flags, spelled_for_cli11(flags, words, false));
  const auto end = std::find(found.rest.begin(), found.rest.end(), "--");
  const auto unknown = std::find_if(found.rest.begin(), end, looks_like_a_flag);
  if (unknown != end) throw_unknown_flag(flags, *unknown, hint);
  if (end != found.rest.end()) found.rest.erase(end);
  return found;
}

}  // namespace fleetrun::launch
