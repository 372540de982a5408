#include <fmt/format.h>

#include "base/error/error.h"
#include "base/system/standard_output.h"
#include "commands.h"
#include "launch/cli/flags/flag_rows.h"
#include "launch/render/render.h"
#include "launch/render/target.h"

namespace fleetrun {
namespace {

launch::RenderFlags own_flags(const FoundFlags& found) {
  launch::RenderFlags own = {.folder = found.value("--folder").value_or(""),
                             .fleetrun = found.value("--fleetrun").value_or(""),
                             .image = found.value("--image").value_or(""),
                             .queue = found.value("--queue").value_or(""),
                             .as_typed = {}};
  for (const launch::FoundFlag& flag : found.flags) own.as_typed.push_back(flag.name + "=" + flag.text);
  return own;
}

}  // namespace

int run_render_command(const FoundFlags& found, const Environment&) {
  if (found.rest.empty())
    throw Error(ErrorKind::usage, "found no target, wanted " + launch::listed(launch::target_names()),
                "fleetrun render --help");
  print_answer(
      launch::render(found.rest.front(), own_flags(found), {found.rest.begin() + 1, found.rest.end()}));
  return 0;
}

}  // namespace fleetrun
