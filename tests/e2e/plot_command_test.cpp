#include "e2e/launcher.h"

namespace fleetrun::plot_command_test {
namespace {

TEST_CASE("plot draws the curves of a log folder and of a file over each other") {
  const Launch launch;
  std::filesystem::create_directory(launch.folder / "log");
  launch.folder.write("log/history.csv", "step,loss\n5,1.5\n10,0.5\n");
  launch.folder.write("other.csv", "step,loss\n5,1.25\n10,0.25\n");
  const ChildResult result = launch.run_words({"plot", "log", "other.csv", "-o", "x.svg"});
  CHECK(result.code == 0);
  CHECK(result.err == "");
  const std::string picture = launch.folder.read("x.svg");
  for (const char* part : {"</svg>", ">log<", ">other.csv<"}) {
    CAPTURE(part);
    CHECK(contains(picture, part));
  }
  CHECK(launch.run_words({"plot", "log", "other.csv"}).out == picture);
}

TEST_CASE("plot replaces its own picture, and leaves a file of the user alone") {
  const Launch launch;
  launch.folder.write("a.csv", "step,loss\n5,1.5\n10,0.5\n");
  launch.folder.write("b.csv", "step,loss\n5,2.5\n10,1.5\n");
  CHECK(launch.run_words({"plot", "a.csv", "-o", "x.svg"}).code == 0);
  const std::string first = launch.folder.read("x.svg");
  CHECK(launch.run_words({"plot", "b.csv", "-o", "x.svg"}).code == 0);
  CHECK(launch.folder.read("x.svg") != first);

  launch.folder.write("mine.svg", "<svg>mine</svg>");
  const ChildResult refused = launch.run_words({"plot", "a.csv", "-o", "mine.svg"});
  CHECK(refused.code == 73);
  CHECK(contains(refused.err, "mine.svg"));
  CHECK(launch.folder.read("mine.svg") == "<svg>mine</svg>");
}

TEST_CASE("a picture that would be longer than ulimit -f is an error that names it") {
  const Launch launch;
  launch.folder.write("a.csv", "step,loss\n5,1.5\n10,0.5\n");
  const std::string command = "ulimit -f 1 && exec " FLEETRUN_BINARY " plot a.csv -o x.svg";
  const ChildResult result = run_child({"/bin/sh", "-c", command}, launch.options());
  CHECK(result.code == 74);
  CHECK(contains(result.err, "x.svg"));
}

TEST_CASE("plot names a file that has no rows, and asks for one when there is none") {
  const Launch launch;
  launch.folder.write("empty.csv", "step,loss\n");
  const ChildResult result = launch.run_words({"plot", "empty.csv"});
  CHECK(result.code == 65);
  CHECK(contains(result.err, "empty.csv: found no row with a step, wanted a history.csv of a run"));
  CHECK(launch.run_words({"plot"}).code == 2);
}

}  // namespace
}  // namespace fleetrun::plot_command_test
