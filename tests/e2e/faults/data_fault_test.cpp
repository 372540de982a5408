// D8, D11 and D12: what happens to a training whose data is on a disk that fails.
#include <sys/mount.h>

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

}  // namespace
}  // namespace fleetrun::data_fault_test
