// One flag of a command line in one row: parsing, --help, --show_config, completion and the man page all read it.
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

// What a shell offers for a word.
enum class Completes { nothing, files, folders, programs };

struct Flag {
  std::vector<std::string> names;         // "--gpus", "--devices": messages use the first
  std::string argument = {};              // stands for the value in help: "IDS"; "": the flag takes no value
  std::string help = {};                  // "": known, but not shown
  std::string variable = {};              // of the environment, "" when there is none
  std::string bare = {};                  // its value without "=VALUE"; "": a value must follow
  std::vector<std::string> choices = {};  // values for completion
  Completes completes = Completes::nothing;
  bool repeats = false;       // each of several counts; otherwise the last one does
  bool may_be_empty = false;  // "--log_prefix=" is a value; otherwise an empty value is none
  std::string section = {};   // of --help
  bool foreign = false;       // another launcher's: --help lists its name, the man page explains it
  bool of_node =
      false;  // may differ between the nodes of a run: where it is, its devices, its logs, its console
  bool sets_variables = false;  // its values are NAME=VALUE or RANK:NAME=VALUE

  std::function<void(const std::string& text, const Source& source)> set = {};
  std::function<std::string()> show = {};  // the present value as the user would write it; null: it has none
  std::function<Source()> shown_source = {};  // of that value

  const std::string& name() const { return names.front(); }
  bool is_called(std::string_view name) const;
  bool shown() const { return !help.empty(); }
  bool takes_value() const { return !argument.empty(); }
  bool needs_value() const { return takes_value() && bare.empty(); }
};

// The flag with this name, in which dashes may stand for underscores; null when there is none.
const Flag* flag_called(const std::vector<Flag>& flags, std::string_view name);

bool looks_like_a_flag(std::string_view word);  // "-m", "--gpus=0", "--"; not "-"

// "--log-dir" for "--log_dir": users may type either.
std::string with_dashes(std::string_view name);

}  // namespace fleetrun::launch
