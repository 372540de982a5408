// --max_restart with checkpoints: what the next attempt of a run goes on from.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include <fmt/format.h>

#include "base/system/unique_fd.h"
#include "e2e/saved_training.h"

namespace fleetrun::restart_from_checkpoint_test {
namespace {

namespace fs = std::filesystem;
using saved_training::kill_when, saved_training::newest, saved_training::saved, saved_training::train,
    saved_training::Training;

// Like the lock of a rank 0 that was lost with its node, until the file server forgets it.
TEST_CASE("after a restart, rank 0 waits for the lock of its checkpoint folder, and then trains") {
  const Training launch("lenet");
  fs::create_directories(launch.folder / "output/saved");
  const std::string path = launch.folder / "output/saved/.lock";
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  ChildProcess child(
      {FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=0.1", "job.json", "train.epochs=1"},
      launch.options());
  const auto waits = [&] {
    return contains(launch.folder.read("log/workerlog.0"), "waiting up to 120 s for ");
  };
  REQUIRE(comes_true(waits, 60s));
  lock.reset();
  const ChildResult end = child.wait();
  CHECK_MESSAGE(end.code == 0, end.err);
  CHECK(contains(launch.folder.read("log/attempt-0/workerlog.0"), "another run that is under way"));
  CHECK_FALSE(saved(launch).empty());
}

TEST_CASE("a restart by the launcher goes on from the last checkpoint") {
  const Training whole("lenet"), broken("lenet");
  REQUIRE(train(whole).code == 0);
  ChildProcess child(
      {FLEETRUN_BINARY, "--nproc_per_node=2", "--max_restart=1", "--restart_delay=0.1", "job.json"},
      broken.options());
  REQUIRE(comes_true([&] { return contains(broken.folder.read("log/workerlog.0"), "-step-12"); }, 60s));
  ::kill(workers_in(broken.folder).at(0), SIGKILL);
  const ChildResult result = child.wait();
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(broken.folder.read("log/workerlog.0"), "resuming from "));
  CHECK(newest(broken) == newest(whole));
}

TEST_CASE("hunt 14: a restart that finds the checkpoints of the run no more ends with 66") {
  const Training launch("lenet");
  ChildProcess child(
      {FLEETRUN_BINARY, "--max_restart=2", "--restart_delay=0.1", "job.json", "train.epochs=100000"},
      launch.options());
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "-step-24 ("); }, 60s));
  fs::rename(launch.folder / "output/saved", launch.folder / "output/moved");
  ::kill(workers_in(launch.folder).at(0), SIGKILL);
  const ChildResult result = child.wait();
  CHECK(result.code == 66);
  CHECK_MESSAGE(contains(result.err, "has no checkpoint any more, and the run has saved step "), result.err);
}

TEST_CASE(
    "hunt 14: after a --timeout in the pause before a restart, the last line is the command that goes on") {
  const Training launch("lenet");
  ChildProcess child({FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=100", "--timeout=8", "job.json",
                      "train.epochs=100000"},
                     launch.options());
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "-step-24 ("); }, 60s));
  ::kill(workers_in(launch.folder).at(0), SIGKILL);
  const ChildResult result = child.wait();
  CHECK(result.code == 124);
  CHECK_MESSAGE(result.err.ends_with("fleetrun: to go on, run\n    " FLEETRUN_BINARY
                                     " --max_restart=1 --restart_delay=100 --timeout=8 job.json "
                                     "train.epochs=100000\n"),
                result.err);
}

// Stops rank 0 of the run, puts a finished run in the place of its output, and kills the rank.
ChildResult restart_in_folder_of_another_run(const Training& launch, const Words& settings,
                                             const std::string& when) {
  Words command = {FLEETRUN_BINARY, "--max_restart=2", "--restart_delay=0.1", "job.json",
                   "train.epochs=100000"};
  command.insert(command.end(), settings.begin(), settings.end());
  ChildProcess child(command, launch.options());
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), when); }, 60s));
  const pid_t worker = workers_in(launch.folder).at(0);
  ::kill(worker, SIGSTOP);  // it saves nothing meanwhile
  fs::rename(launch.folder / "output", launch.folder / "moved");
  REQUIRE(launch.run_words({"--log_dir=other", "job.json", "train.epochs=2"}).code == 0);
  const std::vector<std::string> others = saved(launch);
  ::kill(worker, SIGKILL);
  ChildResult result = child.wait();
  CHECK(saved(launch) == others);
  return result;
}

TEST_CASE(
    "hunt 14: a restart does not go on from the checkpoints of another run in a folder of the same name") {
  const std::string words = "has the checkpoints of another run, and not those of the attempt before";
  const Training launch("lenet");
  const ChildResult result = restart_in_folder_of_another_run(launch, {}, "-step-36 (");
  CHECK(result.code == 66);
  CHECK_MESSAGE(contains(result.err, words), result.err);
  const Training without("lenet");  // checkpoints of its own
  const ChildResult same = restart_in_folder_of_another_run(
      without, {"checkpoint.resume=never", "checkpoint.every_epochs=0"}, "[Epoch 1, batch 1]");
  CHECK(same.code == 66);
  CHECK_MESSAGE(contains(same.err, words), same.err);
}

TEST_CASE("a restart goes on from the last checkpoint if somebody has removed the lock file of its folder") {
  const Training launch("lenet");
  ChildProcess child(
      {FLEETRUN_BINARY, "--max_restart=1", "--restart_delay=0.1", "job.json", "train.epochs=100000"},
      launch.options());
  REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "-step-24 ("); }, 60s));
  const pid_t worker = workers_in(launch.folder).at(0);
  ::kill(worker, SIGSTOP);
  fs::remove(launch.folder / "output/saved/.lock");
  ::kill(worker, SIGKILL);
  CHECK(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "resuming from "); }, 60s));
  child.send(SIGTERM);
  CHECK(child.wait().code == 128 + SIGTERM);
}

TEST_CASE("a restart goes on from this run's checkpoints, though the run itself began anew or from a path") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.epochs=5"}).code == 0);
  const std::string start = launch.folder / ("output/saved/" + saved(launch).front());
  for (const std::string& resume : {std::string("never"), start}) {
    CAPTURE(resume);
    fs::remove_all(launch.folder / "log");
    ChildProcess child({FLEETRUN_BINARY, "--nproc_per_node=2", "--max_restart=1", "--restart_delay=0.1",
                        "job.json", "checkpoint.resume=" + resume, "checkpoint.keep=100", "train.epochs=30"},
                       launch.options());
    REQUIRE(comes_true([&] { return contains(launch.folder.read("log/workerlog.0"), "-step-30 ("); }, 60s));
    ::kill(workers_in(launch.folder).at(0), SIGKILL);
    const ChildResult result = child.wait();
    REQUIRE_MESSAGE(result.code == 0, result.err);
    const std::string log = launch.folder.read("log/workerlog.0");
    std::smatch found;
    REQUIRE(std::regex_search(log, found, std::regex(R"(resuming from .* \(step (\d+)\))")));
    CHECK(std::stoi(found[1]) >= 30);
  }
}

TEST_CASE(
    "hunt 12: a training keeps the checkpoint in which its own initial weights lie, so that it can restart") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.epochs=1"}).code == 0);
  const std::string first = saved(launch).front();
  fs::create_symlink(launch.folder / ("output/saved/" + first + "/model.safetensors"),
                     launch.folder / "init.safetensors");
  const Words words = {"checkpoint.resume=never", "checkpoint.keep=2", "train.epochs=8",
                       "model.pretrained=init.safetensors"};
  kill_when(launch, "-step-24 (", SIGKILL, words);
  CHECK(launch.folder.has("output/saved/" + first));
  Words resumed = words;
  resumed[0] = "checkpoint.resume=auto";
  const ChildResult result = train(launch, resumed);
  REQUIRE_MESSAGE(result.code == 0, result.err);
  CHECK(contains(result.out, "resuming from "));
  CHECK(launch.folder.has("output/saved/" + first));
}

TEST_CASE("hunt 88: a training that resumes needs model.pretrained no more") {
  const Training launch("lenet");
  REQUIRE(train(launch, {"train.epochs=1", "checkpoint.dir=null"}).code == 0);
  fs::rename(launch.folder / "output/model.safetensors", launch.folder / "init.safetensors");
  const Words words = {"train.epochs=2", "model.pretrained=init.safetensors"};
  REQUIRE(train(launch, words).code == 0);
  fs::remove(launch.folder / "init.safetensors");
  Words more = words;
  more[0] = "train.epochs=3";
  const ChildResult resumed = train(launch, more);
  REQUIRE_MESSAGE(resumed.code == 0, resumed.err);
  CHECK(contains(resumed.out, "resuming from "));

  more.emplace_back("checkpoint.resume=never");
  const ChildResult anew = train(launch, more);
  CHECK(anew.code == 66);
  CHECK(contains(anew.err, "model.pretrained: " + launch.folder / "init.safetensors" + ": found nothing"));
  // This folder is not a checkpoint.
  for (const std::string& name : saved(launch)) fs::remove_all(launch.folder / ("output/saved/" + name));
  fs::create_directory(launch.folder / "output/saved/notes");
  const ChildResult without = train(launch, words);
  CHECK(without.code == 66);
  CHECK_MESSAGE(contains(without.err, "  while loading model.pretrained\n"), without.err);
}

}  // namespace
}  // namespace fleetrun::restart_from_checkpoint_test
