// One flag of a command line: everything that is said about it, in one row. Reading it, --help, --show_config,
// completion and the man page all come from such rows.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleetrun::launch {

enum class Origin { fallback, file, environment, flag };  // the later one wins

// Where a text was found, as the user knows it: "--gpus", "PADDLE_DEVICES", "fleet.json: gpus".
struct Source {
  Origin origin = Origin::fallback;
  std::string name;
};

template <typename T>
struct Setting {
  T value{};
  Origin origin = Origin::fallback;
  std::string source;  // empty for a fallback
};

struct Option {
  enum class Takes { nothing, value, optional_value };  // an optional one only behind an equals sign
  enum class Completes { nothing, files, folders };

  std::vector<std::string> names;  // "--gpus", "--devices": the first is the one in messages
  std::string argument;            // what stands for the value in help: "IDS"
  std::string variable;            // of the environment, "" when there is none
  std::string help;                // "": known, but not shown
  std::string section;             // of --help
  bool foreign = false;            // another launcher's: --help lists its name, the manual explains it
  Takes takes = Takes::value;
  bool repeats = false;  // each of several counts; else the last
  Completes completes = Completes::nothing;
  std::vector<std::string> choices;  // values for completion

  std::function<void(const std::string& text, const Source& source)> set;
  std::function<std::string()> show;     // the present value as the user would write it; null: it has none
  std::function<Source()> shown_source;  // of that value

  const std::string& name() const { return names.front(); }
  bool is_called(std::string_view name) const;
  bool shown() const { return !help.empty(); }
};

// Flags as they were found in the words of a command line.
struct FoundFlag {
  const Option* option = nullptr;
  std::string text;  // of its value
};

struct FoundFlags {
  std::vector<FoundFlag> flags;   // in their order; those with an empty value are as if not given
  std::vector<std::string> rest;  // from the first word that is no flag on, or behind "--"

  bool has(std::string_view name) const;
  std::optional<std::string> value(std::string_view name) const;  // the last one
};

// The flags in front of the first other word. Dashes may stand for underscores; nothing is abbreviated.
// Throws Error(usage) for unknown ones, with what was probably meant.
FoundFlags find_flags(const std::vector<Option>& options, const std::vector<std::string>& words);

// The same for subcommands, whose flags and words may stand in any order up to a "--". `hint` goes with errors.
FoundFlags find_all_flags(const std::vector<Option>& options, const std::vector<std::string>& words,
                          const std::string& hint);

}  // namespace fleetrun::launch
