// A unit for systemd, as in systemd.service(5), systemd.kill(5) and systemd.unit(5).
#include <fmt/format.h>

#include "base/error/error.h"
#include "launch/render/batch_text.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr const char* kInstalled =
    "/usr/bin/fleetrun";  // where the Debian package puts it; systemd wants a whole path

constexpr std::string_view kUnit = R"(<<header>>

[Unit]
Description=fleetrun: <<name>>
# At most 5 starts in an hour.
StartLimitIntervalSec=3600
StartLimitBurst=5

[Service]
Type=exec
WorkingDirectory=<<folder>>
ExecStart=<<command>>

# systemctl stop sends SIGTERM to fleetrun only, which ends its ranks in order. What is left after the time is killed.
KillMode=mixed
TimeoutStopSec=<<stop_time>>
# The exit code after systemctl stop.
SuccessExitStatus=143

# Exit code 75: fleetrun lost a node or a connection, or the run hung. Only then another start helps (docs/exit-codes.md).
Restart=no
RestartForceExitStatus=75
RestartSec=10
)";

constexpr std::string_view kHowToStart =
    "Install it:   cp {0}.service ~/.config/systemd/user/ && systemctl --user daemon-reload{1}\n"
    "Start it:     systemctl --user start {0}\n"
    "See it:       systemctl --user status {0}; journalctl --user -u {0} -f\n"
    "Stop it:      systemctl --user stop {0}\n"
    "loginctl enable-linger lets it run on after you log out.";

// Hosts may share the folder, so each of several hosts has logs of its own; systemd puts its name in place of %H.
std::string log_dir_word(const BatchRun& run) {
  std::string word = quote_exec_word("--log_dir=" + run.log_dir);
  if (run.nodes > 1) word.insert(word.ends_with('"') ? word.size() - 1 : word.size(), "/%H");
  return word;
}

std::string exec_words(const BatchRun& run) {
  std::string words = quote_exec_word(run.own.fleetrun.empty() ? kInstalled : run.own.fleetrun);
  words += " \\\n  " + log_dir_word(run);
  for (const auto* part : {&run.flags, &run.program})
    for (const std::string& word : *part) words += " \\\n  " + quote_exec_word(word);
  return words;
}

// systemd takes the rest of the line and replaces only specifiers (%h).
std::string folder_of_unit(const BatchRun& run) {
  if (run.own.folder.empty())
    throw Error(ErrorKind::usage, "a unit for systemd needs --folder, the folder where the run starts",
                "fleetrun render systemd --folder=\"$PWD\" -- ...");
  std::string folder;
  for (const char letter : run.own.folder) folder += letter == '%' ? "%%" : std::string(1, letter);
  return folder;
}

}  // namespace

std::string write_systemd(const BatchRun& run) {
  const std::string how = fmt::format(kHowToStart, run.name, run.nodes == 1 ? "" : "   (on every host)");
  return fill(kUnit, {{"header", file_header(run, "systemd unit for a run.", how)},
                      {"name", run.name},
                      {"folder", folder_of_unit(run)},
                      {"command", exec_words(run)},
                      {"stop_time", std::to_string(run.stop_time().count())}});
}

}  // namespace fleetrun::launch
