// A training that is stopped: what stays of it, and the command that goes on.
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>

#include "base/system/unique_fd.h"
#include "e2e/faults/terminal_child.h"
#include "e2e/launcher.h"

namespace fleetrun::stopped_test {
namespace {

constexpr char kCtrlC = '\x03';
constexpr const char* kGoOn = "to go on, run\r\n    ";

// Endless, in a file whose name needs quotes.
void write_job(const Launch& launch, const std::string& checkpoint = "") {
  launch.folder.write("my job.json", R"({
    "model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "synthetic", "samples": 96, "shape": [1, 8, 8], "classes": 4}, "batch_size": 8},
    "train": {"epochs": 1000000, "log_every": 1})" +
                                         checkpoint + "}");
}

Words checkpoints_in(const Launch& launch, const std::string& folder) {
  Words names;
  for (const auto& entry : std::filesystem::directory_iterator(launch.folder / folder))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Starts the command, presses Ctrl-C when the screen shows this, and returns the command that goes on.
std::string stop(const Launch& launch, const Words& command, const std::string& when,
                 std::string* all = nullptr) {
  TerminalChild child(command, launch.folder.path());
  REQUIRE_MESSAGE(child.shows(when, 60s), child.screen());
  child.press(kCtrlC);
  CHECK(child.wait(60s) == 128 + SIGINT);
  const std::string screen = child.screen();
  if (all != nullptr) *all = screen;
  const auto start = screen.find(kGoOn);
  REQUIRE_MESSAGE(start != std::string::npos, screen);
  const auto first = start + std::string(kGoOn).size();
  return screen.substr(first, screen.find("\r\n", first) - first);
}

TEST_CASE(
    "Ctrl-C loses nothing of a training without checkpoint.dir, and the printed command goes on, again and again") {
  const Launch launch;
  write_job(launch);
  std::string screen;
  const std::string second = stop(
      launch, {FLEETRUN_BINARY, "--nproc_per_node=2", "--log_dir=my logs", "my job.json", "train.seed=5"},
      "[Epoch 1, batch 1]", &screen);
  REQUIRE(checkpoints_in(launch, "my logs/checkpoint").size() == 1);
  const std::string saved = "/my logs/checkpoint/" + checkpoints_in(launch, "my logs/checkpoint")[0];
  CHECK(contains(second, "'--log_dir=my logs' 'my job.json' train.seed=5 'checkpoint.resume=/"));
  CHECK(second.ends_with(saved + "'"));
  CHECK(contains(screen, " steps ("));
  CHECK(contains(screen, " of 1000000 epochs) on 2 ranks"));
  CHECK_FALSE(contains(screen, "will lose"));
  const std::string third = stop(launch, {"/bin/sh", "-c", second}, ", batch 1] loss");
  CHECK(checkpoints_in(launch, "my logs/checkpoint").size() == 2);
  CHECK(contains(third, checkpoints_in(launch, "my logs/checkpoint")[1]));
  CHECK_FALSE(contains(third, saved));
  stop(launch, {"/bin/sh", "-c", third}, ", batch 1] loss");
}

TEST_CASE(
    "hunt 14: a training without checkpoint.dir saves in its log folder, whatever that is called by now") {
  const Launch launch;
  write_job(launch);
  TerminalChild child({FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=0", "my job.json"},
                      launch.folder.path());
  REQUIRE_MESSAGE(child.shows("[Epoch 1, batch 1]", 60s), child.screen());
  std::filesystem::rename(launch.folder / "log", launch.folder / "renamed");
  ::kill(workers_in(launch.folder).at(0), SIGKILL);
  REQUIRE_MESSAGE(child.shows("restart 1 of at most 1", 60s), child.screen());
  REQUIRE_MESSAGE(
      comes_true([&] { return contains(launch.folder.read("renamed/workerlog.0"), "[Epoch 1, batch 1]"); },
                 60s),
      child.screen());
  std::filesystem::rename(launch.folder / "renamed", launch.folder / "renamed again");
  child.press(kCtrlC);
  CHECK(child.wait(60s) == 128 + SIGINT);
  REQUIRE(checkpoints_in(launch, "renamed again/checkpoint").size() == 1);
  const std::string saved =
      "renamed again/checkpoint/" + checkpoints_in(launch, "renamed again/checkpoint")[0];
  CHECK_MESSAGE(contains(child.screen(), saved + "'\r\n"), child.screen());
  CHECK(contains(launch.folder.read("renamed again/train.json"), saved));
  CHECK_FALSE(launch.folder.has("log"));
  CHECK_FALSE(launch.folder.has("renamed"));
}

TEST_CASE("a training with checkpoint.dir goes on with the same command, unless that starts anew") {
  const Launch launch;
  write_job(launch, R"(, "checkpoint": {"dir": "saved", "every_epochs": 0, "keep": 1})");
  const std::string same = stop(launch, {FLEETRUN_BINARY, "my job.json"}, "[Epoch 1, batch 1]");
  CHECK(same == FLEETRUN_BINARY " 'my job.json'");
  const std::string anew =
      stop(launch, {FLEETRUN_BINARY, "my job.json", "checkpoint.resume=never"}, "[Epoch 1, batch 1]");
  CHECK(anew == FLEETRUN_BINARY " 'my job.json' checkpoint.resume=auto");
  stop(launch, {"/bin/sh", "-c", anew}, ", batch 1] loss");
  CHECK_FALSE(std::filesystem::exists(launch.folder / "log/checkpoint"));
}

TEST_CASE(
    "without a terminal a training without checkpoint.dir says before the start that a stop will lose it") {
  const Launch launch;
  write_job(launch);
  ChildProcess child({FLEETRUN_BINARY, "my job.json"}, launch.options());
  REQUIRE(
      comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "[Epoch 1, batch 1]"); }, 60s));
  child.send(SIGTERM);
  const ChildResult result = child.wait();
  CHECK(result.code == 128 + SIGTERM);
  const std::string warning = "fleetrun: checkpoint.dir is not set, so a stop will lose the training\n";
  CHECK_MESSAGE(contains(result.err, warning), result.err);
  CHECK(result.err.ends_with("fleetrun: nothing was saved; to start again, run\n    " FLEETRUN_BINARY
                             " 'my job.json'\n"));
  CHECK_FALSE(std::filesystem::exists(launch.folder / "log/checkpoint"));
}

TEST_CASE("a second run keeps logs and weights of the first") {
  const Launch launch;
  launch.folder.write("job.json", R"({
    "model": {"name": "mlp", "hidden": [8]},
    "data": {"train": {"format": "synthetic", "samples": 32, "shape": [1, 8, 8], "classes": 4}},
    "train": {"max_steps": 2}})");
  REQUIRE(launch.run_words({"job.json"}).code == 0);
  const std::string weights = launch.folder.read("output/model.safetensors");
  const ChildResult second = launch.run_words({"job.json", "train.max_steps=3"});
  REQUIRE(second.code == 0);
  CHECK_MESSAGE(contains(second.err, "fleetrun: the logs of the run before are in log/previous/\n"),
                second.err);
  CHECK(contains(launch.folder.read("log/previous/train.json"), "\"steps\": 2"));
  CHECK(contains(second.out, "weights of an earlier run: "));
  CHECK(launch.folder.read("output/model.previous.safetensors") == weights);
}

// A port of loopback on which we listen.
struct TakenPort {
  TakenPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(fd.get(), any, size) == 0);
    REQUIRE(::listen(fd.get(), 1) == 0);
    REQUIRE(::getsockname(fd.get(), any, &size) == 0);
    number = ntohs(address.sin_port);
  }

  UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  int number = 0;
};

TEST_CASE(
    "a run that does not start says where the logs of the run before are, and a second one leaves them there") {
  const Launch launch;
  const TakenPort port;
  REQUIRE(launch.run({}, {"print", "of a run", "exit", "0"}).code == 0);
  for (const char* line : {"fleetrun: the logs of the run before are in log/previous/\n", ""}) {
    const ChildResult failed = launch.run({"--metrics_port=" + std::to_string(port.number)}, {"exit", "0"});
    CHECK(failed.code != 0);
    CHECK_MESSAGE(failed.err.starts_with(std::string(line) + "fleetrun: error: --metrics_port"), failed.err);
    CHECK(launch.folder.read("log/previous/workerlog.0") == "of a run\n");
  }
}

}  // namespace
}  // namespace fleetrun::stopped_test
