#include "launch/cli/man_page.h"

#include <fmt/format.h>

#include "launch/cli/help.h"
#include "launch/cli/subcommands.h"

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

std::string describe_options(const std::vector<Option>& table) {
  std::string text, section;
  for (const Option& option : table) {
    if (!option.shown()) continue;
    if (option.section != section) text += fmt::format(".SS {}\n", escaped(section = option.section));
    text += entry(describe_flag(option), describe_meaning(option));
  }
  return text;
}

std::string describe_subcommands() {
  std::string text;
  for (const Subcommand& one : subcommands()) {
    text += entry(one.arguments.empty() ? one.name : one.name + " " + one.arguments, one.summary + ".");
    text += ".RS\n";
    for (const Option& option : one.options) text += entry(describe_flag(option), describe_meaning(option));
    text += ".RE\n";
  }
  return text;
}

std::string describe_variables(const std::vector<Option>& table) {
  std::string text;
  for (const Option& option : table)
    if (option.shown() && !option.variable.empty())
      text += entry(option.variable, "As " + option.name() + ".");
  return text;
}

}  // namespace

std::string man_page(const std::vector<Option>& table) {
  std::string text = fmt::format(
      ".TH FLEETRUN 1 \"\" \"fleetrun {}\" \"User Commands\"\n.SH NAME\nfleetrun \\- starts and supervises "
      "distributed "
      "training\n.SH SYNOPSIS\n",
      FLEETRUN_VERSION);
  for (const std::string& form : launch_forms()) text += fmt::format(".B fleetrun\n{}\n.br\n", escaped(form));
  text +=
      ".SH DESCRIPTION\nStarts one worker per device and watches over them. A worker is a script or program, "
      "which "
      "finds the environments of PaddlePaddle and PyTorch, or what a job file says, which needs no Python. "
      "The first "
      "failure is named, everything else is stopped, and the exit code tells the cause.\n.PP\nDashes may "
      "stand for "
      "underscores in flags. Nothing behind the script or program is interpreted. A flag wins over the "
      "environment, "
      "which wins over the file of \\-\\-config, which wins over the default.\n";
  text += ".SH OPTIONS\n" + describe_options(table);
  text += ".SH SUBCOMMANDS\n" + describe_subcommands();
  text += ".SH ENVIRONMENT\n" + describe_variables(table);
  text += ".SH FILES\n";
  text += entry("log/workerlog.N", "What rank N of this node wrote.");
  text += entry("log/endpoints.log", "Where the ranks may listen.");
  text += entry("log/report.json", "How every rank ended.");
  text +=
      entry("log/collectives.N.json", "The last collectives of rank N, after a failure of a job file's run.");
  text +=
      ".SH EXIT STATUS\n0 when every rank ended with 0. Else the code of the first rank that failed, 128 + n "
      "when "
      "signal n ended it; 2 for a bad command line, 124 when \\-\\-timeout passed, 126 and 127 when the "
      "program cannot "
      "be run. docs/exit\\-codes.md has all of them.\n";
  return text;
}

}  // namespace fleetrun::launch
