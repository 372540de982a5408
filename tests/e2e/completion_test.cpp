// The completions in the shells that they are for; a shell that is not installed is said to be left out.
#include <algorithm>
#include <sstream>

#include "e2e/launcher.h"
#include "support/leave_out.h"

namespace fleetrun::completion_test {
namespace {

std::string completion_for(const std::string& shell) {
  const ChildResult result = run_child({FLEETRUN_BINARY, "completion", shell});
  CHECK(result.code == 0);
  return result.out;
}

// The scripts call fleetrun by its name.
ChildOptions with_fleetrun_on_path(const TemporaryFolder& folder) {
  const std::string bin = std::filesystem::path(FLEETRUN_BINARY).parent_path();
  return {.folder = folder.path(), .environment = {{"PATH", bin + ":/usr/local/bin:/usr/bin:/bin"}}};
}

// What bash offers for the last of the words.
std::vector<std::string> offered_by_bash(const TemporaryFolder& folder, const std::string& words) {
  const std::string script =
      "source ./completion; COMP_WORDS=(" + words +
      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _fleetrun; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const ChildResult result = run_child({"/bin/bash", "--norc", "-c", script}, with_fleetrun_on_path(folder));
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  std::vector<std::string> lines;
  std::istringstream text(result.out);
  for (std::string line; std::getline(text, line);)
    if (!line.empty()) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_CASE("bash completes flags, their values, subcommands and their flags") {
  if (!has_program("bash")) LEAVE_OUT("bash is not installed");
  const TemporaryFolder folder;
  folder.write("completion", completion_for("bash"));
  folder.write("train.py", "");
  CHECK(offered_by_bash(folder, "fleetrun --nproc") == Words{"--nproc_per_node"});
  CHECK(offered_by_bash(folder, "fleetrun --device c") == Words{"cpu", "cuda"});
  CHECK(offered_by_bash(folder, "fleetrun --device = c") == Words{"cpu", "cuda"});
  CHECK(offered_by_bash(folder, "fleetrun --device =") == Words{"auto", "cpu", "cuda"});
  CHECK(offered_by_bash(folder, "fleetrun --nproc_per_node 2 --device = cpu tr") == Words{"train.py"});
  CHECK(offered_by_bash(folder, "fleetrun con") == Words{"config"});
  CHECK(offered_by_bash(folder, "fleetrun completion z") == Words{"zsh"});
  CHECK(offered_by_bash(folder, "fleetrun config --k") == Words{"--keys"});
  CHECK(offered_by_bash(folder, "fleetrun train.py --gpu").empty());  // the script's own business
}

TEST_CASE("completion.sh: what bash offers in every place") {
  if (!has_program("bash")) LEAVE_OUT("bash is not installed");
  const TemporaryFolder folder;
  folder.write("completion", completion_for("bash"));
  for (const char* name : {"my train.py", "job.json", "other.json"}) folder.write(name, "");
  std::filesystem::create_directory(folder / "logs of today");
  const auto offered = [&](const std::string& words) { return offered_by_bash(folder, words); };
  CHECK(offered("fleetrun my") == Words{"my train.py"});
  CHECK(offered("fleetrun 'my\\\\ tr'") == Words{"my train.py"});
  CHECK(offered("fleetrun --log_dir l") == Words{"logs of today"});
  CHECK(offered("fleetrun --log_dir = l") == Words{"logs of today"});
  CHECK(offered("fleetrun --log-dir l") == Words{"logs of today"});
  CHECK(offered("fleetrun --log_dir=l") == Words{"--log_dir=logs of today"});  // '=' ends no word
  CHECK(offered("fleetrun --nproc-per") == Words{"--nproc-per-node"});
  CHECK(offered("fleetrun --gpus 0 lo") == Words{"logs of today"});  // no subcommand after a flag
  CHECK(offered("fleetrun --env A = B jo") == Words{"job.json"});
  CHECK(offered("fleetrun --dry_run = j") == Words{"json"});
  CHECK(offered("fleetrun --dry_run jo") == Words{"job.json"});
  CHECK(offered("fleetrun --nproc_per_node ''").empty());
  CHECK(offered("fleetrun signal US") == Words{"USR1", "USR2"});
  CHECK(offered("fleetrun signal USR1 ''").empty());
  CHECK(offered("fleetrun signal --rank ''").empty());
  CHECK(offered("fleetrun logs --log_dir ''") == Words{"logs of today"});
  CHECK(offered("fleetrun logs --log-dir ''") == Words{"logs of today"});
  CHECK(offered("fleetrun logs ''").empty());
  CHECK(offered("fleetrun ps ''").empty());
  CHECK(offered("fleetrun bench --dtype b") == Words{"bf16"});
  CHECK(offered("fleetrun bench --dtype = b") == Words{"bf16"});
  CHECK(offered("fleetrun bench all_reduce --backend g") == Words{"gloo"});
  CHECK(offered("fleetrun bench --group-") == Words{"--group-size"});
  CHECK(offered("fleetrun config jo") == Words{"job.json"});
  CHECK(offered("fleetrun stop --") == Words{"--help", "--log_dir", "--now"});
  CHECK(offered("fleetrun -- jo").front() == "job.json");
  CHECK(offered("fleetrun -- python3 jo") == Words{"job.json"});
  CHECK(offered("fleetrun train.py --lo").empty());
  CHECK(offered("fleetrun train.py jo") == Words{"job.json"});
}

// What bash offers for "--nproc" after this command word, with this PATH.
ChildResult offered_after(const TemporaryFolder& folder, const std::string& command,
                          const std::string& path) {
  const std::string script = "source ./completion; COMP_WORDS=('" + command +
                             "' \"$1\"); COMP_CWORD=1; _fleetrun; printf '%s ' \"${COMPREPLY[@]}\"";
  const ChildOptions options = {.folder = folder.path(),
                                .environment = {{"PATH", path}, {"HOME", folder.path()}}};
  return run_child({"/bin/bash", "--norc", "-c", script, "bash", "--nproc"}, options);
}

TEST_CASE("bash completes a fleetrun in the home folder, and file names where no fleetrun answers") {
  if (!has_program("bash")) LEAVE_OUT("bash is not installed");
  const TemporaryFolder folder;
  folder.write("completion", completion_for("bash"));
  folder.write("--nproc.txt", "");
  std::filesystem::create_symlink(FLEETRUN_BINARY, folder / "fleetrun");
  for (const char* command : {"~/fleetrun", "$HOME/fleetrun"}) {
    const ChildResult offered = offered_after(folder, command, "/usr/bin:/bin");
    CHECK_MESSAGE(offered.out == "--nproc_per_node ", offered.err);
  }
  CHECK(offered_after(folder, "$TOOLS/fleetrun", folder.path() + ":/usr/bin:/bin").out ==
        "--nproc_per_node ");
  CHECK(offered_after(folder, "$TOOLS/fleetrun", "/nonexistent").out == "--nproc.txt ");
}

void check_that_it_is_read(const std::string& shell) {
  const TemporaryFolder folder;
  folder.write("completion", completion_for(shell));
  const ChildResult result =
      run_child({"/usr/bin/env", shell, "-n", "completion"}, {.folder = folder.path()});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
}

TEST_CASE("zsh reads its completion") {
  if (!has_program("zsh")) LEAVE_OUT("zsh is not installed");
  check_that_it_is_read("zsh");
}

TEST_CASE("fish reads its completion") {
  if (!has_program("fish")) LEAVE_OUT("fish is not installed");
  check_that_it_is_read("fish");
}

TEST_CASE("fish offers what starts a command line, and nothing of ours after a script") {
  if (!has_program("fish")) LEAVE_OUT("fish is not installed");
  const TemporaryFolder folder;
  folder.write("completion", completion_for("fish"));
  const auto offered = [&](const std::string& line) {
    return run_child({"/usr/bin/env", "fish", "-N", "-c", "source ./completion; complete -C '" + line + "'"},
                     with_fleetrun_on_path(folder))
        .out;
  };
  CHECK(contains(offered("fleetrun --nproc"), "--nproc_per_node\t"));
  CHECK(contains(offered("fleetrun --device="), "--device=cuda"));
  CHECK(contains(offered("fleetrun comp"), "completion\t"));
  CHECK_FALSE(contains(offered("fleetrun train.py --nproc"), "--nproc_per_node"));
  CHECK(contains(offered("fleetrun --gpus 0 --nproc"), "--nproc_per_node\t"));
  CHECK(contains(offered("fleetrun --nproc-per"), "--nproc-per-node\t"));
  CHECK_FALSE(contains(offered("fleetrun --nproc"), "--nproc-per-node"));
  CHECK_FALSE(contains(offered("fleetrun --gpus 0 comp"), "completion\t"));
  folder.write("my train.py", "");
  std::filesystem::create_directory(folder / "logs of today");
  CHECK(contains(offered("fleetrun --log_dir lo"), "logs of today/"));
  CHECK(contains(offered("fleetrun --log-dir lo"), "logs of today/"));
  CHECK(contains(offered("fleetrun logs --log_dir lo"), "logs of today/"));
  CHECK(contains(offered("fleetrun my"), "my train.py"));
  CHECK(offered("fleetrun bench --dtype b").starts_with("bf16\t"));
  CHECK_FALSE(contains(offered("fleetrun bench --dtype b"), "f32\t"));
  CHECK(contains(offered("fleetrun signal US"), "USR1"));
  CHECK_FALSE(contains(offered("fleetrun signal USR1 "), "USR2"));
  CHECK_FALSE(contains(offered("fleetrun ps my"), "my train.py"));
}

TEST_CASE("zsh offers words with their meaning, and files where they fit") {
  if (!has_program("zsh")) LEAVE_OUT("zsh is not installed");
  const TemporaryFolder folder;
  folder.write("completion", completion_for("zsh"));
  // In place of zsh's own functions, which need a terminal.
  const std::string own =
      "compdef() { }\n_describe() { print -l -- ${(P)2} }\n_files() { print -- files $@ }\n"
      "_alternative() { print -- programs }\ncompset() { print -- compset $@ }\nsource ./completion\n";
  const auto offered = [&](const std::string& words) {
    const std::string typed = "words=(fleetrun " + words + "); CURRENT=$#words; PREFIX=$words[-1]; _fleetrun";
    const ChildResult result =
        run_child({"/usr/bin/env", "zsh", "-f", "-c", own + typed}, with_fleetrun_on_path(folder));
    CHECK_MESSAGE(result.err.empty(), result.err);
    return result.out;
  };
  CHECK(offered("--nproc").starts_with("--nproc_per_node:Number of workers"));
  CHECK(contains(offered("--device=c"), "compset -P *=\ncpu:"));
  CHECK(contains(offered("--log_dir l"), "files -/\n"));
  CHECK(offered("completion z") == "zsh:Print the completion script for a shell\n");
  CHECK(contains(offered("''"), "bench:Measure"));
  CHECK(contains(offered("''"), "\nfiles\n"));
  CHECK(offered("-- py") == "programs\n");
  CHECK(offered("train.py --gpu") == "files\n");
}

TEST_CASE("another shell is refused") {
  const ChildResult result = run_child({FLEETRUN_BINARY, "completion", "tcsh"});
  CHECK(result.code == 2);
  CHECK(result.err == "fleetrun: error: the shell is \"tcsh\", must be bash, zsh or fish\n");
}

TEST_CASE("man reads the manual page without a warning") {
  if (!has_program("man")) LEAVE_OUT("man is not installed");
  const TemporaryFolder folder;
  folder.write("fleetrun.1", run_child({FLEETRUN_BINARY, "man"}).out);
  const ChildResult result = run_child({"/usr/bin/env", "man", "-l", "--warnings", "./fleetrun.1"},
                                       {.folder = folder.path(), .environment = {{"MANWIDTH", "100"}}});
  CHECK(result.code == 0);
  CHECK(result.err.empty());
  CHECK(contains(result.out, "--nproc_per_node N"));
}

}  // namespace
}  // namespace fleetrun::completion_test
