#include "launch/cli/completion.h"

#include <doctest/doctest.h>

#include "launch/cli/flags/launch_flags.h"

namespace fleetrun::launch::completion_test {
namespace {

using Words = std::vector<std::string>;

std::vector<Subcommand> two_subcommands() {
  return {{.name = "signal",
           .arguments = "SIGNAL",
           .summary = "Send a signal",
           .flags =
               [] {
                 return std::vector<Flag>{
                     {.names = {"--rank"}, .argument = "RANKS", .help = "Send it to these"},
                     {.names = {"--log_dir"},
                      .argument = "FOLDER",
                      .help = "Log folder",
                      .completes = Completes::folders}};
               },
           .choices = {"USR1", "USR2", "HUP"}},
          {.name = "config", .arguments = "FILE", .summary = "Show keys", .completes = Completes::files}};
}

Offers offers_for(const Words& words) {
  LaunchOptions options;
  return complete(launch_flags(options), two_subcommands(), words);
}

Words words_for(const Words& words) {
  Words texts;
  for (const Offers::Word& word : offers_for(words).words) texts.push_back(word.text);
  return texts;
}

Completes also_for(const Words& words) { return offers_for(words).also; }

TEST_CASE("the first word is a subcommand, a flag or a file") {
  CHECK(words_for({""}) == Words{"signal", "config"});
  CHECK(also_for({""}) == Completes::files);
  CHECK(words_for({"sig"}) == Words{"signal"});
  CHECK(words_for({"--nproc"}) == Words{"--nproc_per_node"});
  CHECK(words_for({}) == Words{"signal", "config"});
}

TEST_CASE("flags are completed in the way in which they are typed") {
  CHECK(words_for({"--log_d"}) == Words{"--log_dir"});
  CHECK(words_for({"--log-d"}) == Words{"--log-dir"});
  CHECK(words_for({"--server_n"}).empty());  // a hidden one
  CHECK(offers_for({"--time"}).words.front().meaning.starts_with("Stop the run"));
}

TEST_CASE("a value follows its flag or an equals sign, at which a shell may have cut the word") {
  CHECK(words_for({"--device", "c"}) == Words{"cpu", "cuda"});
  CHECK(words_for({"--device=c"}) == Words{"--device=cpu", "--device=cuda"});
  CHECK(words_for({"--device", "=", "c"}) == Words{"--device=cpu", "--device=cuda"});
  CHECK(words_for({"--device", "="}).size() == 3);
  CHECK(also_for({"--log-dir", ""}) == Completes::folders);
  CHECK(offers_for({"--log_dir=l"}).done == "--log_dir=");
  CHECK(also_for({"--nproc_per_node", ""}) == Completes::nothing);
  CHECK(also_for({"--dry_run", ""}) == Completes::files);  // its value only follows an equals sign
  CHECK(words_for({"--dry_run=j"}) == Words{"--dry_run=json"});
  CHECK(words_for({"--no_such=x"}).empty());
}

TEST_CASE("nothing of ours stands after the program, and no subcommand after a flag") {
  CHECK(words_for({"train.py", "--gpu"}).empty());
  CHECK(also_for({"train.py", "--gpu"}) == Completes::files);
  CHECK(words_for({"--gpus", "0", "sig"}).empty());
  CHECK(also_for({"--", "py"}) == Completes::programs);
  CHECK(also_for({"--", "python3", "tr"}) == Completes::files);
  CHECK(words_for({"--env", "A", "=", "B", "--devi"}) == Words{"--devices", "--device"});
}

TEST_CASE("a subcommand has its own flags and words") {
  CHECK(words_for({"signal", "US"}) == Words{"USR1", "USR2"});
  CHECK(words_for({"signal", "USR1", ""}).empty());
  CHECK(words_for({"signal", "--rank", "0", "H"}) == Words{"HUP"});
  CHECK(words_for({"signal", "--rank", ""}).empty());
  CHECK(words_for({"signal", "--"}) == Words{"--rank", "--log_dir", "--help"});
  CHECK(also_for({"signal", "--log_dir", ""}) == Completes::folders);
  CHECK(also_for({"signal", ""}) == Completes::nothing);
  CHECK(also_for({"config", "a.json", ""}) == Completes::files);
}

TEST_CASE("a script reads what the shell adds, what is typed already, and a line for each word") {
  CHECK(to_lines({.also = Completes::folders, .done = "--a=", .words = {{"--a=b", "Meaning"}}}) ==
        "folders\n--a=\n--a=b\tMeaning\n");
  CHECK(to_lines(offers_for({"--time"})).ends_with("there is no limit\t=\n"));
}

}  // namespace
}  // namespace fleetrun::launch::completion_test
