#include "launch/cli/flag.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/suggest.h"

namespace fleetrun::launch {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kLaunchHint =
    "flags of a script or program stand after its name; fleetrun --help lists ours";

[[noreturn]] void throw_unknown_flag(const std::vector<Option>& options, const std::string& word,
                                     const std::string& hint) {
  const std::string name = word.substr(0, word.find('='));
  Words known;
  for (const Option& option : options) known.insert(known.end(), option.names.begin(), option.names.end());
  const std::optional<std::string> meant = closest(name, known);
  throw Error(ErrorKind::usage,
              fmt::format("unknown flag {}{}", name, meant ? fmt::format("; did you mean {}?", *meant) : ""),
              hint);
}

bool looks_like_a_flag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

// Stands for no text: CLI11 takes the next word after "--gpus=", and gives a text to a flag that has none.
const std::string kNoText = "\x01";

// CLI11 reads words from the last to the first.
Words for_cli11(Words words) {
  for (std::string& word : words)
    if (word.starts_with("--") && word.ends_with('=')) word += kNoText;
  std::reverse(words.begin(), words.end());
  return words;
}

Words as_written(Words words) {
  for (std::string& word : words)
    if (word.starts_with("--") && word.ends_with("=" + kNoText)) word.resize(word.size() - kNoText.size());
  return words;
}

// "--log_dir,--log-dir": each name, also with dashes for underscores; of a flag without a text, what stands for that.
std::string names_of(const Option& option) {
  const std::string no_text = option.takes == Option::Takes::value ? "" : "{" + kNoText + "}";
  std::string all;
  for (const std::string& name : option.names) {
    std::string dashed = name;
    if (name.starts_with("--")) std::replace(dashed.begin() + 2, dashed.end(), '_', '-');
    all += (all.empty() ? "" : ",") + name + no_text;
    if (dashed != name) all += "," + dashed + no_text;
  }
  return all;
}

const Option* option_called(const std::vector<Option>& options, std::string name) {
  if (name.starts_with("--")) std::replace(name.begin() + 2, name.end(), '-', '_');
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.is_called(name); });
  return found == options.end() ? nullptr : &*found;
}

// mpirun's -np is two letters behind one dash, which CLI11 takes for -n with the value p. Only in front of the program.
Words with_long_np(const std::vector<Option>& options, Words words) {
  for (std::size_t i = 0; i < words.size() && looks_like_a_flag(words[i]) && words[i] != "--"; ++i) {
    if (words[i] == "-np") words[i] = "--np";
    const Option* option = option_called(options, words[i]);  // null with "=VALUE", too
    if (option != nullptr && option->takes == Option::Takes::value) ++i;
  }
  return words;
}

// The rows as CLI11 wants them.
class Reader {
 public:
  explicit Reader(const std::vector<Option>& options) {
    app_.set_help_flag();
    for (const Option& option : options) rows_[add(option)] = &option;
  }

  // Flags up to the first other word: all from there on is `rest`.
  FoundFlags read_front(const Words& words) {
    app_.prefix_command();
    return read(words);
  }

  // Flags and words in any order up to a "--".
  FoundFlags read_all(const Words& words) {
    app_.allow_extras();
    return read(words);
  }

 private:
  CLI::Option* add(const Option& option) {
    if (option.takes == Option::Takes::value)
      return app_.add_option(names_of(option))
          ->type_size(1)
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    CLI::Option* flag = app_.add_flag(names_of(option))->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    return option.takes == Option::Takes::nothing ? flag->disable_flag_override() : flag;
  }

  FoundFlags read(const Words& words) {
    try {
      app_.parse(for_cli11(words));
    } catch (const CLI::ArgumentMismatch& error) {
      throw_mismatch(error.what());
    }
    FoundFlags found;
    std::map<const CLI::Option*, std::size_t> seen;
    for (const CLI::Option* option : app_.parse_order()) {
      const std::string& text = option->results().at(seen[option]++);
      const Option* row = rows_.at(option);
      if (text != kNoText)
        found.flags.push_back({row, text});
      else if (row->takes != Option::Takes::value)
        found.flags.push_back({row, ""});
    }
    std::erase_if(found.flags, [](const FoundFlag& flag) {
      return flag.option->takes == Option::Takes::value && flag.text.empty();
    });
    found.rest = as_written(app_.remaining());
    return found;
  }

  // "--grace: 1 required TEXT missing", "help was given a disallowed flag override"
  [[noreturn]] static void throw_mismatch(const std::string& text) {
    const std::string name = text.substr(0, text.find_first_of(": "));
    const bool needed = name.starts_with('-');
    throw Error(ErrorKind::usage, needed ? name + " needs a value" : "--" + name + " takes no value");
  }

  CLI::App app_;
  std::map<const CLI::Option*, const Option*> rows_;
};

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
  FoundFlags found = Reader(options).read_front(with_long_np(options, words));
  if (found.rest.empty()) return found;
  if (found.rest.front() == "--")
    found.rest.erase(found.rest.begin());
  else if (looks_like_a_flag(found.rest.front()))
    throw_unknown_flag(options, found.rest.front(), kLaunchHint);
  return found;
}

FoundFlags find_all_flags(const std::vector<Option>& options, const Words& words, const std::string& hint) {
  FoundFlags found = Reader(options).read_all(words);
  const auto end = std::find(found.rest.begin(), found.rest.end(), "--");
  const auto unknown = std::find_if(found.rest.begin(), end, looks_like_a_flag);
  if (unknown != end) throw_unknown_flag(options, *unknown, hint);
  if (end != found.rest.end()) found.rest.erase(end);
  return found;
}

}  // namespace fleetrun::launch
