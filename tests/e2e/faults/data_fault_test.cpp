// D8 and D11 to D14: what happens to a training that waits for a disk, or for somebody with a debugger.
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <regex>
#include <utility>

#include "e2e/faults/faults.h"

namespace fleetrun::data_fault_test {
namespace {

// One grey pixel.
const std::string kPng(
    "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\x0aIDAT\x78\x9c"
    "\x63\x68\0\0\0\x82"
    "\0\x81\x77\xcd\x72\xb6\0\0\0\0IEND\xae\x42\x60\x82",
    67);

// 12 steps, and checkpoints in a folder that the disk may be slow to take.
const std::string kSavingJob = R"({
  "model": {"name": "mlp", "hidden": [8]},
  "data": {"train": {"format": "synthetic", "samples": 192, "shape": [1, 4, 4], "classes": 2}, "batch_size": 8},
  "optimizer": {"name": "momentum", "learning_rate": 0.001},
  "train": {"max_steps": 12},
  "checkpoint": {"dir": "stalls", "every_steps": 4, "every_epochs": 0}
})";

// A training on photographs that goes on until somebody ends it.
struct PhotoTraining : Launch {
  PhotoTraining() {
    folder.write("job.json", R"({
      "model": {"name": "mlp", "hidden": [8]},
      "data": {"train": {"format": "image_folder", "path": "photos", "image_size": 4}, "batch_size": 8},
      "optimizer": {"name": "sgd", "learning_rate": 0.001},
      "train": {"epochs": 100000000, "log_every": 1}
    })");
    std::filesystem::create_directories(folder / "photos");
  }
  void write_photos(const std::string& odd_one = "") const {
    for (const char* name : {"photos/cat/", "photos/dog/"}) {
      std::filesystem::create_directories(folder / name);
      for (int i = 0; i < 32; ++i) folder.write(name + std::to_string(i) + ".png", kPng);
    }
    if (!odd_one.empty()) folder.write("photos/cat/" + odd_one + ".png", kPng);
  }
  static Words command(const Words& flags = {}) {
    Words words = {FLEETRUN_BINARY, "--nproc_per_node=2", "--grace=0.2"};
    words.insert(words.end(), flags.begin(), flags.end());
    words.emplace_back("job.json");
    return words;
  }
  // With a disk that is well until the files "waits" or "breaks" are there.
  ChildOptions on_failing_disk() const {
    ChildOptions made = options();
    made.environment["LD_PRELOAD"] = FAILING_DISK;
    made.environment["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0";
    made.environment["FAILING_DISK_WAITS"] = folder / "waits";
    made.environment["FAILING_DISK_BREAKS"] = folder / "breaks";
    return made;
  }
  void wait_for_epoch(int epoch) const {
    const std::string words = "[Epoch " + std::to_string(epoch) + ", ";
    REQUIRE(comes_true([&] { return contains(folder.read("log/workerlog.0"), words); }, 60s));
  }
  int epochs() const {
    const std::string log = folder.read("log/workerlog.0");
    const auto last = log.rfind("[Epoch ");
    return last == std::string::npos ? -1 : std::stoi(log.substr(last + 7));
  }
};

TEST_CASE("D8: a sample that the disk does not give is tried again, then named, with 74") {
  const PhotoTraining training;
  training.write_photos("unreadable");
  ChildProcess process(PhotoTraining::command(), training.on_failing_disk());
  training.wait_for_epoch(1);
  training.folder.write("breaks", "");
  const ChildResult result = process.wait();
  CHECK(result.code == 74);
  CHECK(std::regex_search(result.err,
                          std::regex(R"(error: reading \S*photos/cat/unreadable\.png: .*\(read 4 times\))")));
}

TEST_CASE("D8: a checkpoint that the disk does not give is not bad: 74, and the next run resumes from it") {
  const PhotoTraining training;
  training.folder.write("job.json", kSavingJob);
  const auto train = [&](const std::string& steps) {
    return run_child({FLEETRUN_BINARY, "--nproc_per_node=2", "job.json", "checkpoint.dir=unreadable",
                      "train.max_steps=" + steps},
                     training.on_failing_disk());
  };
  REQUIRE(train("8").code == 0);
  training.folder.write("breaks", "");
  const ChildResult broken = train("12");
  CHECK(broken.code == 74);
  CHECK_MESSAGE(
      std::regex_search(broken.err, std::regex(R"(error: reading \S*-step-8/\S+: Input/output error)")),
      broken.err);
  std::filesystem::remove(training.folder / "breaks");
  const ChildResult mended = train("12");
  CHECK_MESSAGE(mended.code == 0, mended.err);
  CHECK_MESSAGE(contains(mended.out, "(step 8)"), mended.out);
}

// Pulled away at the end of a test at the latest, so that its folder can be removed.
struct SmallDisk {
  explicit SmallDisk(std::string at) : path(std::move(at)) {
    mounted = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=4m") == 0;
  }
  ~SmallDisk() { pull(); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool pull() { return std::exchange(mounted, false) && ::umount2(path.c_str(), MNT_DETACH) == 0; }

  std::string path;
  bool mounted = false;
};

TEST_CASE("D11: photographs that vanish in mid-epoch end the run within 5 s, with 74 and a file's name") {
  const PhotoTraining training;
  SmallDisk disk(training.folder / "photos");
  if (!disk.mounted) LEAVE_OUT("mounting a small tmpfs: needs root");
  training.write_photos();
  ChildProcess process(PhotoTraining::command(), training.options());
  training.wait_for_epoch(1);
  REQUIRE(disk.pull());
  const auto start = std::chrono::steady_clock::now();
  const ChildResult result = process.wait();
  CHECK(std::chrono::steady_clock::now() - start < within(5s));
  CHECK(result.code == 74);
  CHECK(std::regex_search(result.err, std::regex(R"(photos/(cat|dog)/\d+\.png)")));
}

TEST_CASE("D12: a disk that stalls is waited for within the bound, and named as the cause beyond it") {
  const PhotoTraining training;
  training.write_photos("stalls");
  ChildProcess patient(PhotoTraining::command({"--hang_timeout=60"}), training.on_failing_disk());
  training.wait_for_epoch(1);
  training.folder.write("waits", "");
  const int before = training.epochs();
  CHECK_FALSE(comes_true([&] { return training.epochs() > before + 2 || !is_alive(patient.pid()); }, 2s));
  std::filesystem::remove(training.folder / "waits");
  CHECK(comes_true([&] { return training.epochs() > before + 2; }, 60s));
  patient.send(SIGTERM);
  CHECK(patient.wait().code == 143);

  std::filesystem::remove_all(training.folder / "log");
  ChildProcess hasty(PhotoTraining::command({"--hang_timeout=" + std::to_string(seconds_within(2s))}),
                     training.on_failing_disk());
  training.wait_for_epoch(1);
  training.folder.write("waits", "");
  const ChildResult result = hasty.wait();
  CHECK(result.code == 75);
  CHECK(contains(result.err, "waiting for data, step "));
  CHECK(std::regex_search(result.err, std::regex(R"(rank \d is waiting for data, the others are not)")));
}

// A training whose checkpoints go to a folder that takes its time; `waits` is there, and so the disk takes nothing.
struct SlowSaves : Launch {
  SlowSaves() { folder.write("job.json", kSavingJob); }
  ChildOptions on_slow_disk() const {
    ChildOptions slow = options();
    slow.environment = {{"LD_PRELOAD", FAILING_DISK},
                        {"ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0"},
                        {"FAILING_DISK_WAITS", folder / "waits"}};
    return slow;
  }
  static Words command(const std::string& flag, const Words& overrides = {}) {
    Words words = {FLEETRUN_BINARY, "--nproc_per_node=2", "--device=cpu", flag, "job.json"};
    words.insert(words.end(), overrides.begin(), overrides.end());
    return words;
  }
  bool says(const std::string& words) const { return contains(folder.read("log/workerlog.0"), words); }
};

TEST_CASE("D13, row 2: a disk that is slow to take a checkpoint holds a training up, and ends nothing") {
  const SlowSaves training;
  training.folder.write("waits", "");
  ChildProcess process(SlowSaves::command("--hang_timeout=3"), training.on_slow_disk());
  REQUIRE(comes_true(
      [&] { return training.says("waiting for the disk: a checkpoint is being written for 10 s\n"); }, 60s));
  std::filesystem::remove(training.folder / "waits");
  const ChildResult result = process.wait();
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK_FALSE(contains(result.err, "made no progress"));
}

TEST_CASE("D13, row 2: at the end all ranks wait for the last checkpoint, and none of them leaves before") {
  const SlowSaves training;
  training.folder.write("waits", "");
  ChildProcess process(SlowSaves::command("--hang_timeout=3", {"checkpoint.every_steps=1000"}),
                       training.on_slow_disk());
  REQUIRE(comes_true(
      [&] { return training.says("waiting for the disk: a checkpoint is being written for 10 s\n"); }, 60s));
  CHECK(workers_in(training.folder).size() == 2);
  std::filesystem::remove(training.folder / "waits");
  const ChildResult result = process.wait();
  CHECK_MESSAGE(result.code == 0, result.err);
  CHECK(training.says("-step-12 ("));
}

TEST_CASE("D13: a rank that waits for the disk with a trace is seen to do so") {
  const SlowSaves training;
  training.folder.write("waits", "");
  ChildProcess process(SlowSaves::command("--hang_timeout=2", {"checkpoint.every_steps=1000",
                                                               "output.dir=stalls", "output.trace=[2,3]"}),
                       training.on_slow_disk());
  const ChildResult result = process.wait();
  CHECK(result.code == 75);
  CHECK(contains(result.err, "waiting for the disk, step 3"));
}

// Holds a process as a debugger does, until the end of the block.
struct Debugger {
  explicit Debugger(pid_t process) : pid(process) {
    holds = ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 &&
            ::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) == 0 && ::waitpid(pid, nullptr, __WALL) == pid;
  }
  ~Debugger() {
    if (holds) ::ptrace(PTRACE_DETACH, pid, nullptr, nullptr);
  }
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;
  pid_t pid;
  bool holds = false;
};

TEST_CASE("D14: a rank that a debugger holds is not taken for hung, nor are those that wait for it") {
  const PhotoTraining training;
  training.write_photos();
  ChildProcess process(PhotoTraining::command({"--hang_timeout=1"}), training.options());
  training.wait_for_epoch(1);
  {
    const Debugger debugger(workers_in(training.folder).at(0));
    if (!debugger.holds) LEAVE_OUT("another process may not be traced here");
    CHECK_FALSE(comes_true([&] { return !is_alive(process.pid()); }, 4s));
  }
  const int before = training.epochs();
  CHECK(comes_true([&] { return training.epochs() > before + 1; }, 60s));
  process.send(SIGTERM);
  CHECK(process.wait().code == 143);
}

}  // namespace
}  // namespace fleetrun::data_fault_test
