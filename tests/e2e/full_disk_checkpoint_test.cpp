// Checkpoints that cannot be written, or are not worth it: a full disk, and a training whose numbers are lost.
#include <sys/mount.h>

#include <string>
#include <utility>

#include "e2e/saved_training.h"
#include "support/leave_out.h"

namespace fleetrun::full_disk_checkpoint_test {
namespace {

namespace fs = std::filesystem;
using saved_training::saved, saved_training::train, saved_training::Training;

// Too small for a checkpoint.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    fs::create_directories(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  ~SmallDisk() { unmount(); }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_mounted() const { return mounted_; }
  bool unmount() { return std::exchange(mounted_, false) && ::umount(path_.c_str()) == 0; }

 private:
  const std::string path_;
  bool mounted_ = false;
};

TEST_CASE("a checkpoint that does not fit on the disk is a warning, three in a row end the run with 74") {
  const Training launch("lenet");
  SmallDisk disk(launch.folder / "output/saved");
  if (!disk.is_mounted()) LEAVE_OUT("mounting a small tmpfs: needs root");
  const ChildResult result = train(launch);
  const bool is_empty = saved(launch).empty();
  CHECK(disk.unmount());
  CHECK(result.code == 74);
  CHECK(contains(result.out, "warning: no checkpoint of epoch 1, batch 0 (step 6): "));
  CHECK(contains(result.err, "3 checkpoints in a row could not be written; the last: "));
  CHECK(contains(result.err, "No space left on device"));
  CHECK(is_empty);
}

TEST_CASE("a training whose last checkpoint alone does not fit has its weights, and ends with 74") {
  const Training launch("lenet");
  SmallDisk disk(launch.folder / "output/saved");
  if (!disk.is_mounted()) LEAVE_OUT("mounting a small tmpfs: needs root");
  const ChildResult result =
      launch.run_words({"--nproc_per_node=2", "--max_restart=2", "job.json", "checkpoint.every_epochs=0"});
  CHECK(disk.unmount());
  CHECK(result.code == 74);
  CHECK(contains(
      result.err,
      "the training is done and its weights are saved, but the last checkpoint could not be written: "));
  CHECK(launch.folder.has("output/model.safetensors"));
  CHECK(contains(launch.folder.read("log/train.json"), "\"steps\": 36"));
  CHECK_FALSE(contains(result.err, "restart 1 of"));  // hunt 67: it would only train again what is trained
}

TEST_CASE("hunt 64: a training writes its weights even if its last three checkpoints do not fit") {
  const Training launch("lenet");
  SmallDisk disk(launch.folder / "output/saved");
  if (!disk.is_mounted()) LEAVE_OUT("mounting a small tmpfs: needs root");
  const ChildResult result = train(launch, {"train.epochs=3"});
  CHECK(disk.unmount());
  CHECK(result.code == 74);
  CHECK(contains(
      result.err,
      "the training is done and its weights are saved, but the last checkpoint could not be written: "));
  CHECK(launch.folder.has("output/model.safetensors"));
}

TEST_CASE("a stop whose checkpoint cannot be written says so instead of calling it complete") {
  const Training launch("lenet");
  SmallDisk disk(launch.folder / "output/saved");
  if (!disk.is_mounted()) LEAVE_OUT("mounting a small tmpfs: needs root");
  kill_when(launch, "[Epoch 1, batch 1]", SIGTERM, {"train.epochs=1000000", "checkpoint.every_epochs=0"});
  CHECK(disk.unmount());
  const std::string log = launch.folder.read("log/workerlog.0");
  CAPTURE(log);
  CHECK_FALSE(contains(log, "the checkpoint is complete"));
  CHECK(std::regex_search(
      log,
      std::regex("stopped, and the checkpoint of epoch .* could not be written: .*No space left on device")));
}

TEST_CASE("W17: a training whose numbers are lost ends with 80, and its last good checkpoint is the newest") {
  const Training training("lenet");
  const std::string breaks =
      R"({"name": "piecewise", "boundaries": [10], "unit": "step", "values": [0.01, 1e30]})";
  const ChildResult broken = train(
      training, {"checkpoint.every_steps=2", "train.max_steps=40", "optimizer.learning_rate=" + breaks});
  CHECK(broken.code == 80);
  CHECK(std::regex_search(broken.err,
                          std::regex(R"(the loss of rank \d is -?(nan|inf) at step \d+, and so is \S+)"
                                     R"(|\S+ holds NaN or infinity after step \d+)")));
  CHECK_FALSE(saved(training).empty());
  for (const std::string& name : saved(training)) CHECK(std::stoi(name.substr(name.find("step-") + 5)) <= 11);
  const ChildResult mended = train(training, {"train.max_steps=14", "optimizer.learning_rate=0.01"});
  CHECK(mended.code == 0);
  CHECK(contains(mended.out, "resuming from "));
}

}  // namespace
}  // namespace fleetrun::full_disk_checkpoint_test
