#include "launch/cli/man_page.h"

#include <fmt/format.h>

#include "base/error/exit_codes.h"
#include "base/run/version.h"
#include "launch/cli/help.h"

namespace fleetrun::launch {
namespace {

// Hyphens that people copy, and characters with which a line would be a request.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    if (safe.empty() && (letter == '.' || letter == '\'')) safe += "\\&";
    if (letter == '-' || letter == '\\') safe += '\\';
    safe += letter == '\\' ? 'e' : letter;
  }
  return safe;
}

std::string entry(const std::string& name, const std::string& meaning) {
  return fmt::format(".TP\n.B {}\n{}\n", escaped(name), escaped(meaning));
}

std::string describe_flags(const std::vector<Flag>& flags) {
  std::string text, section;
  for (const Flag& flag : flags) {
    if (!flag.shown()) continue;
    if (flag.section != section) text += fmt::format(".SS {}\n", escaped(section = flag.section));
    text += entry(describe_flag(flag), describe_meaning(flag));
  }
  return text;
}

std::string describe_subcommands(const std::vector<Subcommand>& subcommands) {
  std::string text;
  for (const Subcommand& one : subcommands)
    text += entry(one.arguments.empty() ? one.name : one.name + " " + one.arguments,
                  one.summary + "." + (one.details.empty() ? "" : " " + one.details)) +
            ".RS\n" + describe_flags(flags_of(one)) + ".RE\n";
  return text;
}

std::string describe_variables(const std::vector<Flag>& flags) {
  std::string text;
  for (const Flag& flag : flags)
    if (flag.shown() && !flag.variable.empty())
      text += entry(flag.variable, "The same as " + flag.name() + ".");
  return text;
}

constexpr const char* kDescription = R"(.SH DESCRIPTION
fleetrun starts one worker per device and supervises them. A worker runs a script or a program, with the
environment variables of PaddlePaddle and PyTorch set. Or it trains what a job.json describes, without Python. When a worker
fails, fleetrun names the first failure and its cause, stops the other workers, and ends with an exit code that tells the
cause.
.PP
Flags go before the script or program; fleetrun interprets nothing after it. Dashes may stand for underscores in flags. A
flag wins over its environment variable, which wins over the file of \-\-config, which wins over the default.
)";

std::string describe_files() {
  return ".SH FILES\n" + entry("log/workerlog.N", "What rank N wrote.") +
         entry("log/endpoints.log", "The addresses at which the ranks may listen.") +
         entry("log/report.json", "How every rank ended.") +
         entry("log/collectives.N.json",
               "The last collectives of rank N. It exists after a job.json run has failed.");
}

std::string describe_exit_codes() {
  std::string text =
      ".SH EXIT STATUS\n0 when every rank ended with 0. Otherwise the exit code of the first rank that failed, 128 + n when signal "
      "n ended it, or one of these:\n";
  for (const ExitCode& row : exit_codes()) {
    std::string meaning(row.meaning);
    std::erase(meaning, '`');
    text += entry(std::to_string(row.code), meaning);
  }
  return text;
}

}  // namespace

std::string man_page(const std::vector<Flag>& table, const std::vector<Subcommand>& subcommands) {
  std::string text = fmt::format(
      ".TH FLEETRUN 1 \"\" \"fleetrun {}\" \"User Commands\"\n.SH NAME\n"
      "fleetrun \\- start and supervise distributed training\n.SH SYNOPSIS\n",
      own_version());
  for (const std::string& form : launch_forms()) text += fmt::format(".B fleetrun\n{}\n.br\n", escaped(form));
  text += kDescription;
  text += ".SH OPTIONS\n" + describe_flags(table);
  text += ".SH SUBCOMMANDS\n" + describe_subcommands(subcommands);
  text += ".SH ENVIRONMENT\n" + describe_variables(table);
  return text + describe_files() + describe_exit_codes();
}

}  // namespace fleetrun::launch
