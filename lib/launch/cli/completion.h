// Completion in shells: a short script in each shell asks fleetrun itself what may stand for the last word.
#pragma once
#include <string>
#include <vector>

#include "launch/cli/flags/flag.h"
#include "launch/cli/subcommand.h"

namespace fleetrun::launch {

struct Offers {
  struct Word {
    std::string text, meaning;
    bool needs_value = false;  // a flag that is not complete without one
    bool operator==(const Word&) const = default;
  };
  Completes also = Completes::nothing;  // what the shell adds by itself
  std::string done;         // the front of the word that is not a part of what completes it: "--log_dir="
  std::vector<Word> words;  // whole words, which begin with `done`
};

// What completes the last of the words after "fleetrun"; it may be empty. Words may be cut at "=" and ":", as bash does.
Offers complete(const std::vector<Flag>& flags, const std::vector<Subcommand>& subcommands,
                std::vector<std::string> words);

// As the scripts read it: "files", "folders", "programs" or "nothing"; `done`; a line "word<TAB>meaning" for each word,
// which ends with "<TAB>=" when it needs a value.
std::string to_lines(const Offers& offers);

// `shell` is bash, zsh or fish. Throws Error(usage) for others.
std::string completion_script(const std::string& shell);

}  // namespace fleetrun::launch
