// What can be seen of a training: the trace, the time that was used, TensorBoard's files, metrics.
#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <regex>
#include <sstream>

#include "e2e/launcher.h"
#include "support/leave_out.h"
#include "support/slowdown.h"

namespace fleetrun::seeing_test {
namespace {

using nlohmann::json;

// LeNet on generated images of CIFAR's size.
const std::string kLenetJob = R"({
  "model": {"name": "lenet"},
  "data": {"train": {"format": "synthetic", "samples": 512, "shape": [3, 32, 32], "classes": 10}, "batch_size": 32},
  "optimizer": {"name": "momentum", "learning_rate": 0.01},
  "train": {"max_steps": 12, "log_every": 1},
  "strategy": {"sync_nccl_allreduce": false, "fuse_all_reduce_ops": false}
})";

ChildResult train(const Launch& launch, const std::vector<std::string>& flags,
                  const std::vector<std::string>& keys) {
  launch.folder.write("job.json", kLenetJob);
  std::vector<std::string> words = {"--nproc_per_node=2", "--device=cpu"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.emplace_back("job.json");
  words.insert(words.end(), keys.begin(), keys.end());
  const ChildResult result = launch.run_words(words);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  return result;
}

struct Interval {
  double start = 0, end = 0;  // microseconds
};

std::vector<Interval> spans_of(const json& trace, int rank, const std::string& category) {
  std::vector<Interval> found;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["pid"] == rank && event["cat"] == category)
      found.push_back({event["ts"], event["ts"].get<double>() + event["dur"].get<double>()});
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  return found;
}

double length_of(const std::vector<Interval>& spans) {
  return std::accumulate(spans.begin(), spans.end(), 0.0,
                         [](double sum, const auto& span) { return sum + span.end - span.start; });
}

// How much of `spans` lies inside those of `others`, which do not overlap each other.
double inside(const std::vector<Interval>& spans, const std::vector<Interval>& others) {
  double sum = 0;
  for (const Interval& span : spans)
    for (const Interval& other : others)
      sum += std::max(0.0, std::min(span.end, other.end) - std::max(span.start, other.start));
  return sum;
}

TEST_CASE("the trace has the steps that were wanted of all ranks, and their lanes have names") {
  const Launch launch;
  const ChildResult result =
      train(launch, {}, {"output.trace=[3, 6]", "checkpoint.dir=kept", "checkpoint.every_steps=5"});
  CHECK(contains(result.out, "trace: steps 3 to 6 of 2 ranks in "));
  const json trace = json::parse(launch.folder.read("output/trace.json"));
  std::map<int, std::map<int, int>> backward_ops;  // by rank and step
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] == "backward") ++backward_ops[event["pid"]][event["args"]["step"]];
  REQUIRE(backward_ops.size() == 2);
  for (const int rank : {0, 1}) {
    CAPTURE(rank);
    CHECK(backward_ops[rank].size() == 4);
    CHECK(backward_ops[rank].begin()->first == 3);
    for (const auto& [step, ops] : backward_ops[rank]) CHECK(ops == backward_ops[0][3]);
    for (const char* category : {"forward", "communication", "optimize", "data", "checkpoint"})
      CHECK_FALSE(spans_of(trace, rank, category).empty());
  }
  std::vector<std::string> names;
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "thread_name" && event["pid"] == 0) names.push_back(event["args"]["name"]);
  for (const char* lane : {"compute", "communication", "data", "loader", "checkpoint"})
    CHECK(std::count(names.begin(), names.end(), lane) == 1);
}

// Which part of the time of all-reduces lies inside backward ops, on both ranks.
double hidden_part() {
  const Launch launch;
  train(launch, {}, {"output.trace=[3, 12]"});
  const json trace = json::parse(launch.folder.read("output/trace.json"));
  double all = 0, hidden = 0;
  for (const int rank : {0, 1}) {
    const std::vector<Interval> sums = spans_of(trace, rank, "communication");
    all += length_of(sums);
    hidden += inside(sums, spans_of(trace, rank, "backward"));
  }
  REQUIRE(all > 0);
  return hidden / all;
}

// What is usually 0.6 to 0.8 is less where something else takes the cores from one of the two ranks.
TEST_CASE("at least half of the time of all-reduces beside the computation lies inside backward ops") {
  constexpr int kTries = 5;
  double best = 0;
  for (int i = 0; i < kTries && best < 0.5 / testing::kSlowdown; ++i) best = std::max(best, hidden_part());
  MESSAGE("part of the all-reduces that is inside backward ops: " << best);
  CHECK(best >= 0.5 / testing::kSlowdown);  // sanitizers make waiting and computing slower, each its own way
}

TEST_CASE("the last line says where the time went, and it adds up") {
  const Launch launch;
  const ChildResult result = train(launch, {}, {"checkpoint.dir=kept", "checkpoint.every_steps=2"});
  std::smatch found;
  REQUIRE(std::regex_search(
      result.out, found,
      std::regex(R"(\ntrained 2 epochs, 12 steps on 2 ranks .*\n)"
                 R"(goodput: compute (\d+)\.(\d) %, communication (\d+)\.(\d) %, data (\d+)\.(\d) %, )"
                 R"(checkpoint (\d+)\.(\d) %, restart (\d+)\.(\d) %, idle (\d+)\.(\d) % of \d+\.\d s\n)")));
  int tenths = 0;
  for (std::size_t i = 1; i < found.size(); i += 2)
    tenths += 10 * std::stoi(found[i]) + std::stoi(found[i + 1]);
  CHECK(tenths == 1000);
  const json goodput = launch.report()["train"]["goodput"];
  CHECK(goodput["seconds"] > 0);
  CHECK(goodput["compute"] > 0);
  CHECK(goodput["restart"] == 0);
}

TEST_CASE("the images per second of a history are those of all ranks, also of a pipeline") {
  const Launch launch;
  train(launch, {"--nproc_per_node=4"},
        {"strategy.pipeline=true", "strategy.hybrid_configs.pp_degree=4", "data.batch_size=8",
         "strategy.pipeline_configs.accumulate_steps=2"});
  std::istringstream rows(launch.folder.read("log/history.csv"));
  std::string header, row;
  std::getline(rows, header);
  const std::string before = header.substr(0, header.find("images_per_second"));
  const auto column = std::count(before.begin(), before.end(), ',');
  std::vector<double> speeds;
  while (std::getline(rows, row)) {
    for (int i = 0; i < column; ++i) row.erase(0, row.find(',') + 1);
    speeds.push_back(std::stod(row));
  }
  REQUIRE(speeds.size() == 12);
  std::nth_element(speeds.begin(), speeds.begin() + 6, speeds.end());
  // Not below half, whatever the load: else half of the steps alone would have taken longer than all of them.
  CHECK(speeds[6] > launch.report()["train"]["images_per_second"].get<double>() / 2);
}

TEST_CASE("the time that a failure cost is reported as restart") {
  const Launch launch;
  launch.folder.write("job.json", kLenetJob);
  ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "--max_restart=1",
                        "--restart_delay=1", "job.json", "train.max_steps=400", "data.batch_size=4",
                        "checkpoint.dir=kept", "checkpoint.every_steps=20"},
                       launch.options());
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "checkpoint: "); }, 120s));
  for (const pid_t pid : workers_in(launch.folder)) ::kill(pid, SIGKILL);
  const ChildResult result = process.wait();
  REQUIRE_MESSAGE(result.code == 0, result.err);
  const json train = launch.report()["train"];
  const double seconds = train["goodput"]["seconds"];
  CHECK(train["goodput"]["restart"].get<double>() * seconds > 0.9);  // the pause alone takes a second
  CHECK(train["goodput"]["restart"] < 1);
}

// The files of the embedded runtime as TensorBoard itself reads them; a table of "tag step value" lines.
std::string read_by_tensorboard(const Launch& launch, const std::string& python, const std::string& folder) {
  launch.folder.write("read.py",
                      "import sys\n"
                      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
                      "events = EventAccumulator(sys.argv[1])\n"
                      "events.Reload()\n"
                      "for tag in events.Tags()['scalars']:\n"
                      "    for event in events.Scalars(tag):\n"
                      "        print(tag, event.step, '%.5f' % event.value)\n");
  const ChildResult result = run_child({python, "read.py", folder}, launch.options());
  CHECK_MESSAGE(result.code == 0, result.err);
  return result.out;
}

constexpr const char* kNoTensorBoard =
    "no Python has the package tensorboard; scripts/setup --peers installs it";

// The Python that has TensorBoard; "" when none has.
std::string python_with_tensorboard() {
  const char* chosen = std::getenv("FLEETRUN_PEERS");
  const char* home = std::getenv("HOME");
  const std::string peers =
      chosen != nullptr ? chosen : std::string(home == nullptr ? "" : home) + "/.cache/fleetrun/peers";
  for (const std::string& python : {peers + "/bin/python3", std::string("/usr/bin/python3")})
    if (std::filesystem::exists(python) &&
        run_child({python, "-c",
                   "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorboard') is None)"})
                .code == 0)
      return python;
  return "";
}

std::size_t lines_with(const std::string& text, const std::string& start) {
  std::size_t count = 0;
  for (std::size_t at = text.find(start); at != std::string::npos; at = text.find(start, at + 1))
    if (at == 0 || text[at - 1] == '\n') ++count;
  return count;
}

TEST_CASE("TensorBoard reads what a training and the one that goes on from it recorded") {
  const Launch launch;
  const std::vector<std::string> keys = {"output.tensorboard=true", "checkpoint.dir=kept",
                                         "train.max_steps=8"};
  train(launch, {}, keys);
  std::vector<std::string> again = keys;
  again.back() = "train.max_steps=12";
  train(launch, {}, again);
  const auto folder = launch.folder / "output/tensorboard";
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 2);
  const std::string python = python_with_tensorboard();
  if (python.empty()) LEAVE_OUT(kNoTensorBoard);
  const std::string scalars = read_by_tensorboard(launch, python, folder);
  for (const char* tag : {"train/loss", "train/acc1", "train/acc5", "train/learning_rate",
                          "train/images_per_second", "train/communication_share"}) {
    CAPTURE(tag);
    CHECK(lines_with(scalars, std::string(tag) + " ") == 12);
  }
  CHECK(contains(scalars, "train/learning_rate 12 0.01000\n"));
}

TEST_CASE("a training that is killed leaves events that TensorBoard reads") {
  const Launch launch;
  launch.folder.write("job.json", kLenetJob);
  ChildProcess process({FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", "job.json",
                        "train.max_steps=100000", "output.tensorboard=true"},
                       launch.options());
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "[Epoch 3, batch 5]"); },
                     120s));
  process.send(SIGKILL);
  CHECK(comes_true([&] { return workers_in(launch.folder).empty(); }, 10s));
  const std::string python = python_with_tensorboard();
  if (python.empty()) LEAVE_OUT(kNoTensorBoard);
  const std::string scalars = read_by_tensorboard(launch, python, launch.folder / "output/tensorboard");
  CHECK(lines_with(scalars, "train/loss ") >= 30);  // three epochs of 8 steps, and 6 more
}

// Whether Prometheus' own checker has nothing to say against it. Left out where it is not installed.
void check_by_promtool(const TemporaryFolder& folder, const std::string& metrics) {
  ChildOptions options = {.folder = folder.path()};
  if (!has_program("promtool")) LEAVE_OUT("there is no promtool; scripts/setup --peers installs it");
  folder.write("metrics.txt", metrics);
  const ChildResult result = run_child({"/bin/sh", "-c", "promtool check metrics < metrics.txt"}, options);
  CHECK_MESSAGE(result.code == 0, result.out << result.err);
  CHECK(result.err == "");
}

std::uint16_t metrics_port_in(const std::string& text) {
  std::smatch found;
  const std::regex line(R"(fleetrun: metrics are at http://127\.0\.0\.1:(\d+)/metrics\n)");
  return std::regex_search(text, found, line) ? static_cast<std::uint16_t>(std::stoi(found[1])) : 0;
}

// The command with its stderr in a file of the folder it runs in, to be read meanwhile.
Words with_errors_in(const std::string& file, const Words& command) {
  Words words = {"/bin/sh", "-c", "exec \"$@\" 2>" + file, "sh"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// By the shell's own means, so that a client that is not ours asks.
std::string scrape(std::uint16_t port) {
  const std::string script = "exec 3<>/dev/tcp/127.0.0.1/" + std::to_string(port) +
                             "; printf 'GET /metrics HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n' >&3; cat <&3";
  const std::string answer = run_child({"/bin/bash", "-c", script}).out;
  const std::size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

TEST_CASE("Prometheus can read a running training, on a port of this host") {
  const Launch launch;
  launch.folder.write("job.json", kLenetJob);
  ChildProcess process(with_errors_in("err", {FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu",
                                              "--metrics_port=0", "job.json", "train.max_steps=100000"}),
                       launch.options());
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "[Epoch 0, batch 3]"); },
                     120s));
  const std::uint16_t port = metrics_port_in(launch.folder.read("err"));
  REQUIRE(port != 0);
  const std::string metrics = scrape(port);
  CHECK(contains(metrics, "\nfleetrun_worker_up{rank=\"1\"} 1\n"));
  CHECK(contains(metrics, "\nfleetrun_steps{rank=\"0\"} 100000\n"));
  CHECK(std::regex_search(metrics, std::regex(R"(\nfleetrun_step\{rank="0"\} [1-9]\d*\n)")));
  CHECK(std::regex_search(metrics, std::regex(R"(\nfleetrun_loss\{rank="1"\} \d)")));
  CHECK(std::regex_search(metrics,
                          std::regex(R"(\nfleetrun_time_seconds_total\{rank="0",use="compute"\} \d)")));
  check_by_promtool(launch.folder, metrics);
  process.send(SIGTERM);
  process.wait();
}

TEST_CASE("the metrics file is there from the start, and tells the end") {
  const Launch launch;
  const ChildResult result = launch.run(
      {"--nproc_per_node=2", "--metrics_file=fleetrun.prom", "--max_restart=1", "--restart_delay=0.1"},
      {"exit", "7"});
  CHECK(result.code == 93);  // starting again had no use
  const std::string metrics = launch.folder.read("fleetrun.prom");
  CHECK(contains(metrics, "\nfleetrun_restarts_total 1\n"));
  CHECK(contains(metrics, "\nfleetrun_exit_code 93\n"));
  CHECK(contains(metrics, "\nfleetrun_worker_up{rank=\"0\"} 0\n"));
  CHECK(contains(metrics, "} 7\n"));
  check_by_promtool(launch.folder, metrics);
}

TEST_CASE("a metrics file with the name of a file of the run is refused before the start") {
  for (const std::string name : {"report.json", "workerlog.0", "endpoints.log"}) {
    const Launch launch;
    const ChildResult result = launch.run({"--metrics_file=log/" + name}, {"ready", "started"});
    CHECK(result.code == 2);
    CHECK(result.err == "fleetrun: error: --metrics_file is log/" + name +
                            ", where the run itself writes\n"
                            "  hint: choose another name, such as log/metrics.prom\n");
    CHECK_FALSE(launch.folder.has("log"));
  }
}

TEST_CASE(
    "secrets among a job's variables are neither on the console nor in a file that others may read, also after a stop") {
  const Launch launch;
  const std::vector<std::string> secrets = {R"(env={"HF_TOKEN":"first-secret","LEVEL":"3"})",
                                            "env.API_TOKEN=third-secret",
                                            "env.PROXY=http://me:second-secret@host"};
  SUBCASE("a training that ends") {
    train(launch, {}, {"train.max_steps=1", secrets[0], secrets[1], secrets[2]});
  }
  SUBCASE("a training that is stopped") {
    launch.folder.write("job.json", kLenetJob);
    ChildProcess child({FLEETRUN_BINARY, "--device=cpu", "job.json", "train.max_steps=1000000",
                        "checkpoint.dir=saved", secrets[0], secrets[1], secrets[2]},
                       launch.options());
    REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "batch 1]"); }, 60s));
    child.send(SIGTERM);
    const ChildResult result = child.wait();
    CHECK(result.code == 143);
    CHECK(contains(result.err, "to go on, run this with your secrets in place of ***"));
    CHECK(contains(result.err, "'env.API_TOKEN=***'"));
    CHECK_FALSE(contains(result.out + result.err, "-secret"));
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(launch.folder / "log")) {
    const bool is_private =
        (entry.status().permissions() & std::filesystem::perms::group_read) == std::filesystem::perms::none;
    if (!entry.is_regular_file() || is_private) continue;
    const std::string content = launch.folder.read(std::filesystem::relative(entry, launch.folder.path()));
    CHECK_MESSAGE(!contains(content, "-secret"), entry.path());
  }
  CHECK(contains(launch.folder.read("log/report.html"), "env.PROXY"));
}

TEST_CASE("a metrics file that cannot be written costs a line, a metrics port that is taken the run") {
  const Launch launch;
  const ChildResult result = launch.run({"--metrics_file=no/such/folder/fleetrun.prom"}, {"exit", "0"});
  CHECK(result.code == 0);
  CHECK(contains(result.err, "fleetrun: --metrics_file: creating no/such/folder/fleetrun.prom"));
  ChildProcess first(
      with_errors_in("err", Launch::command({"--metrics_port=0", "--log_dir=first"}, {"sleep", "3600"})),
      launch.options());
  REQUIRE(comes_true([&] { return metrics_port_in(launch.folder.read("err")) != 0; }, 60s));
  const std::string port = std::to_string(metrics_port_in(launch.folder.read("err")));
  const ChildResult second = launch.run({"--metrics_port=" + port, "--log_dir=second"}, {"exit", "0"});
  CHECK(second.code == 75);
  CHECK(contains(second.err,
                 "--metrics_port: fleetrun cannot listen on 127.0.0.1:" + port + ", which is taken by pid "));
  first.send(SIGTERM);
  first.wait();
}

}  // namespace
}  // namespace fleetrun::seeing_test
