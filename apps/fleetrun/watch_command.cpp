// fleetrun watch: the page of a run in a browser, up to date.
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/standard_output.h"
#include "base/text/printable.h"
#include "commands.h"
#include "launch/cli/command_line.h"
#include "launch/cli/flags/flag_values.h"
#include "launch/loop/event_loop.h"
#include "launch/serve/http_server.h"
#include "launch/serve/page_server.h"

namespace fleetrun {

int run_watch_command(const FoundFlags& found, const Environment& environment) {
  const std::string folder = find_log_dir(found, environment);
  std::error_code problem;
  const bool is_folder = std::filesystem::is_directory(folder, problem);
  if (problem.value() == EACCES) throw file_error(problem.value(), "opening", folder);
  if (!is_folder)
    throw Error(ErrorKind::missing,
                fmt::format("found no folder {}/, wanted the log folder of a run", folder),
                "--log_dir names it");
  const std::string port = found.value("--port").value_or("0");
  const Endpoint wanted = {"127.0.0.1", port == "0" ? std::uint16_t{0} : launch::parse_port("--port", port)};
  const std::string token = launch::make_page_token();
  launch::EventLoop loop;
  const launch::HttpServer server(loop, wanted, "--port", [&](const std::string& path) {
    return launch::answer_watcher(path, token, folder);
  });
  print_answer(fmt::format("the run in {}/ is at http://{}/{}/\nCtrl-C ends the watch, not the run\n",
                           printable(folder), server.endpoint().describe(), token));
  loop.run();  // until a signal ends this process
  return 0;
}

}  // namespace fleetrun
