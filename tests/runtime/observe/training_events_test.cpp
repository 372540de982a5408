#include "runtime/observe/training_events.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "support/temporary_folder.h"

namespace fleetrun::runtime::training_events_test {
namespace {

std::string the_file_in(const TemporaryFolder& home, const std::string& folder) {
  const std::filesystem::directory_iterator first(home / folder);
  return home.read(folder + "/" + first->path().filename().string());
}

TEST_CASE("a training that goes on from a checkpoint takes back what was recorded of the steps behind it") {
  const TemporaryFolder home;
  std::ostringstream out;
  TrainingEvents(home / "new", 0, out).add(1, {{"train/loss", 0.5}});
  TrainingEvents(home / "resumed", 6, out).add(7, {{"train/loss", 0.5}});
  const std::string taken_back = restart_event(7, 0).substr(9);  // after the time
  CHECK(the_file_in(home, "new").find(taken_back) == std::string::npos);
  CHECK(the_file_in(home, "resumed").find(taken_back) != std::string::npos);
  CHECK(out.str().empty());
}

TEST_CASE("where no events can be written the training goes on without, and says so once") {
  const TemporaryFolder home;
  home.write("file", "");
  std::ostringstream out;
  TrainingEvents events(home / "file/below", 6, out);
  const std::string warning = out.str();
  CHECK(warning.starts_with("warning: no more events for TensorBoard: creating folder "));
  events.add(7, {{"train/loss", 0.5}});
  CHECK(out.str() == warning);
}

}  // namespace
}  // namespace fleetrun::runtime::training_events_test
