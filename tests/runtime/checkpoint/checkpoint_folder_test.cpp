#include "runtime/checkpoint/checkpoint_folder.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>
#include <memory>

#include "runtime/data/expect_error.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::checkpoint_folder_test {
namespace {

namespace fs = std::filesystem;

constexpr int kKeepAll = 100;

Snapshot snapshot(std::int64_t steps) {
  Snapshot made = {.state = {.steps = steps, .model = "mlp", .optimizer = "sgd"}};
  made.files["model.safetensors"]["fc1.weight"] = {{2, 3}, {1, 2, 3, 4, 5, static_cast<float>(steps)}};
  made.files["optimizer.safetensors"] = {};
  return made;
}

std::vector<std::string> names_in(const CheckpointFolder& folder) {
  std::vector<std::string> names;
  for (const std::string& path : folder.list()) names.push_back(fs::path(path).filename());
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("a folder keeps its identity from run to run, another one has another, and a copy has the same") {
  const TemporaryFolder home;
  const auto open = [&](const char* name) { return CheckpointFolder(home / name, kKeepAll); };
  const std::uint64_t first = open("a").identity();
  CHECK(first != 0);
  CHECK(open("a").identity() == first);
  CHECK(open("b").is_new());
  CHECK(open("b").identity() != first);
  CHECK_FALSE(open("b").is_new());
  fs::copy(home / "a", home / "copy");
  CHECK(open("copy").identity() == first);
  fs::create_directory(home / "old");
  home.write("old/.lock", "");
  CHECK(open("old").identity() == 0);
  CHECK(home.read("old/.lock").empty());
}

TEST_CASE("a checkpoint has the best weights so far, which later ones do not change, and goes with them") {
  const TemporaryFolder home;
  CheckpointFolder folder(home / "a", 1);
  const auto save_with = [&](std::int64_t steps, const std::string& best) {
    home.write("best.tmp", best);
    fs::rename(home / "best.tmp", home / "best");  // as a training replaces it
    Snapshot made = snapshot(steps);
    made.best = std::make_shared<const UniqueFd>(::open((home / "best").c_str(), O_RDONLY | O_CLOEXEC));
    return made;
  };
  const Snapshot first = save_with(1, "first");
  const Snapshot second = save_with(2, "second");
  const std::string path = folder.write(first);
  CHECK(home.read("a/000001-step-1/best.safetensors") == "first");
  folder.write(second);
  CHECK(home.read("a/000002-step-2/best.safetensors") == "second");
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("best weights that the disk does not give cost no checkpoint") {
  const TemporaryFolder home;
  CheckpointFolder folder(home / "a", 1);
  Snapshot made = snapshot(1);
  made.best = std::make_shared<const UniqueFd>(::open(home.path().c_str(), O_RDONLY | O_CLOEXEC));  // no file
  const std::string path = folder.write(made);
  CHECK_NOTHROW(read_checkpoint(path));
  CHECK_FALSE(fs::exists(path + "/best.safetensors"));
}

TEST_CASE("a checkpoint is read back as it was written") {
  const TemporaryFolder home;
  CheckpointFolder folder(home / "a/b", kKeepAll);
  const std::string path = folder.write(snapshot(12));
  CHECK(path == home / "a/b/000001-step-12");
  const Checkpoint read = read_checkpoint(path);
  CHECK(read.state == snapshot(12).state);
  CHECK(to_floats(read.files.at("model.safetensors").tensors.at("fc1.weight")) ==
        std::vector<float>{1, 2, 3, 4, 5, 12});
  CHECK(read.files.at("optimizer.safetensors").tensors.empty());
}

TEST_CASE("the newest checkpoints are kept, newest by when they were saved") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), 2);
  folder.write(snapshot(900));  // of a training that was started anew afterwards
  folder.write(snapshot(10));
  CHECK(names_in(folder) == Names{"000002-step-10", "000001-step-900"});
  folder.write(snapshot(20));
  CHECK(names_in(folder) == Names{"000003-step-20", "000002-step-10"});
}

TEST_CASE("a checkpoint has a copy of the history, goes with it, and is complete without one") {
  const TemporaryFolder home;
  CheckpointFolder folder(home / "saved", 1);
  Snapshot with = snapshot(10);
  with.history = {.path = home / "history.csv", .bytes = 15};
  const std::string none = folder.write(with);  // the training goes on without it
  CHECK_FALSE(fs::exists(none + "/history.csv"));
  home.write("history.csv", "step,epoch\n5,0\n10,0\n");  // the last row came after the checkpoint
  folder.write(with);
  CHECK(home.read("saved/000002-step-10/history.csv") == "step,epoch\n5,0\n");
  folder.write(snapshot(20));
  CHECK(names_in(folder) == Names{"000003-step-20"});
  CHECK_FALSE(home.has("saved/000002-step-10"));
}

TEST_CASE("those from a number on are found, as a run asks for its own") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), kKeepAll);
  CHECK(folder.next_number() == 1);
  folder.write(snapshot(10));
  const std::int64_t own = folder.next_number();
  CHECK(folder.list(own).empty());
  const std::string second = folder.write(snapshot(20));
  CHECK(folder.list(own) == Names{second});
  CHECK(names_in(folder).size() == 2);
}

TEST_CASE("what a save that was cut off left behind is not a checkpoint, and is removed by the next run") {
  const TemporaryFolder home;
  fs::create_directories(home / ".partial-7");
  home.write(".partial-7/model.safetensors", "half of it");
  const CheckpointFolder folder(home.path(), kKeepAll);
  CHECK(folder.list().empty());
  CHECK_FALSE(home.has(".partial-7"));
}

TEST_CASE("files of somebody else are left alone") {
  const TemporaryFolder home;
  for (const char* name : {"notes.txt", "1-step-2", "000001-step-", "000001-step-2x", "a00001-step-2"})
    home.write(name, "mine");
  CheckpointFolder folder(home.path(), 1);
  folder.write(snapshot(1));
  folder.write(snapshot(2));
  CHECK(names_in(folder) == Names{"000002-step-2"});
  CHECK(home.read("notes.txt") == "mine");
  CHECK(home.has("000001-step-2x"));
}

TEST_CASE("what somebody else put beside or into checkpoints stays, and no link is followed") {
  const TemporaryFolder home;
  for (const char* name : {".partial-notes", ".partial-8", "elsewhere"}) fs::create_directory(home / name);
  home.write(".partial-notes/model.safetensors", "mine");
  home.write(".partial-8/notes.txt", "mine");
  home.write(".partial-8/model.safetensors", "half of it");
  home.write("elsewhere/model.safetensors", "mine");
  fs::create_symlink("elsewhere", home / ".partial-9");
  fs::create_symlink("elsewhere", home / "000000-step-1");
  CheckpointFolder folder(home.path(), 1);
  home.write(fs::path(folder.write(snapshot(1))).filename().string() + "/notes.txt", "mine");
  for (const int steps : {2, 3}) folder.write(snapshot(steps));
  CHECK(names_in(folder) == Names{"000003-step-3", "000001-step-1", "000000-step-1"});
  CHECK_NOTHROW(read_checkpoint(home / "000001-step-1"));
  CHECK_FALSE(home.has(".partial-8/model.safetensors"));
  for (const char* kept : {".partial-notes/model.safetensors", ".partial-8/notes.txt",
                           "000001-step-1/notes.txt", "elsewhere/model.safetensors"})
    CHECK_MESSAGE(home.read(kept) == "mine", kept);
  CHECK(fs::is_symlink(home / ".partial-9"));
}

TEST_CASE("a folder serves one run at a time") {
  const TemporaryFolder home;
  {
    const CheckpointFolder first(home.path(), 1);
    check_error(ErrorKind::create, "another run that is under way keeps its checkpoints in " + home.path(),
                [&] { CheckpointFolder(home.path(), 1); });
  }
  CheckpointFolder(home.path(), 1);
}

TEST_CASE("a run waits for a claimed folder for as long as it wants, and takes it when it is free") {
  const TemporaryFolder home;
  auto first = std::make_unique<CheckpointFolder>(home.path(), 1);
  int rounds = 0;
  check_error(ErrorKind::create, "another run that is under way",
              [&] { CheckpointFolder(home.path(), 1, [&] { return ++rounds < 3; }); });
  CHECK(rounds == 3);
  CHECK_NOTHROW(CheckpointFolder(home.path(), 1, [&] {
    first.reset();
    return true;
  }));
}

TEST_CASE("a run does not write into a folder that took the place of its own") {
  const TemporaryFolder home;
  CheckpointFolder first(home / "c", kKeepAll);
  fs::rename(home / "c", home / "moved");
  CheckpointFolder second(home / "c", kKeepAll);
  check_error(ErrorKind::create, home / "c was replaced during the training",
              [&] { first.write(snapshot(1)); });
  CHECK(second.list().empty());
  CHECK(second.write(snapshot(2)) == home / "c/000001-step-2");
}

TEST_CASE(
    "hunt 70: nor into one without a lock, and it removes no checkpoint there; its own may lose the lock") {
  const TemporaryFolder home;
  CheckpointFolder first(home / "c", 1);
  first.write(snapshot(1));
  fs::remove(home / "c/.lock");
  CHECK(first.write(snapshot(2)) == home / "c/000002-step-2");
  fs::rename(home / "c", home / "moved");
  fs::create_directory(home / "c");
  fs::copy(home / "moved/000002-step-2", home / "c/000002-step-2", fs::copy_options::recursive);
  check_error(ErrorKind::create, home / "c was replaced during the training",
              [&] { first.write(snapshot(3)); });
  CHECK(home.has("c/000002-step-2"));
}

TEST_CASE("hunt 76: a folder that is a link stays the run's own without its lock") {
  const TemporaryFolder home;
  fs::create_directory(home / "real");
  fs::create_directory_symlink("real", home / "c");
  CheckpointFolder folder(home / "c", kKeepAll);
  fs::remove(home / "real/.lock");
  CHECK(folder.write(snapshot(1)) == home / "c/000001-step-1");
}

TEST_CASE("a checkpoint whose save fails leaves no trace and costs none of the earlier ones") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), 1);
  folder.write(snapshot(1));
  Snapshot broken = snapshot(2);
  broken.files["no/such/folder"] = {};
  error_of([&] { folder.write(broken); });
  CHECK(names_in(folder) == Names{"000001-step-1"});
  CHECK_FALSE(home.has(".partial-2"));
}

TEST_CASE(
    "the newest checkpoint stays until the next one is complete, however many others have files of the user") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), 2);
  for (const int steps : {1, 2})
    home.write(fs::path(folder.write(snapshot(steps))).filename().string() + "/notes.txt", "mine");
  folder.write(snapshot(3));
  Snapshot broken = snapshot(4);
  broken.files["no/such/folder"] = {};
  error_of([&] { folder.write(broken); });
  CHECK(names_in(folder) == Names{"000003-step-3", "000002-step-2", "000001-step-1"});
  folder.write(snapshot(5));
  CHECK(names_in(folder) == Names{"000004-step-5", "000002-step-2", "000001-step-1"});
}

TEST_CASE("checkpoints beyond a smaller keep make room for the next one before it is written") {
  const TemporaryFolder home;
  {
    CheckpointFolder large(home.path(), 4);
    for (int step = 1; step <= 4; ++step) large.write(snapshot(step));
  }
  CheckpointFolder folder(home.path(), 2);
  Snapshot broken = snapshot(5);
  broken.files["no/such/folder"] = {};
  error_of([&] { folder.write(broken); });
  CHECK(names_in(folder) == Names{"000004-step-4", "000003-step-3"});
  folder.write(snapshot(6));
  CHECK(names_in(folder) == Names{"000005-step-6", "000004-step-4"});
}

TEST_CASE(
    "the checkpoint that a training goes on from stays until the next one is complete, however old it is") {
  const TemporaryFolder home;
  std::vector<std::string> paths;
  {
    CheckpointFolder large(home.path(), 5);
    for (int step = 1; step <= 5; ++step) paths.push_back(large.write(snapshot(step)));
  }
  CheckpointFolder folder(home.path(), 2);
  folder.keep_until_next(paths[1] + "/.");
  Snapshot broken = snapshot(6);
  broken.files["no/such/folder"] = {};
  error_of([&] { folder.write(broken); });
  CHECK(names_in(folder) == Names{"000005-step-5", "000002-step-2"});
  folder.write(snapshot(7));
  CHECK(names_in(folder) == Names{"000006-step-7", "000005-step-5"});
}

TEST_CASE("the checkpoint that checkpoint.resume names stays, and counts towards those that are kept") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), 2);
  folder.keep(folder.write(snapshot(1)));
  for (int step = 2; step <= 5; ++step) folder.write(snapshot(step));
  CHECK(names_in(folder) == Names{"000005-step-5", "000001-step-1"});
}

TEST_CASE("a file that is missing, cut, empty or changed in one bit is named") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), kKeepAll);
  const std::string path = folder.write(snapshot(3)), file = "000001-step-3/model.safetensors";
  const std::string good = home.read(file);
  const auto problem = [&](ErrorKind kind, const std::string& words) {
    check_error(kind, words, [&] { read_checkpoint(path); });
  };
  home.write(file, good.substr(0, good.size() - 1));
  problem(ErrorKind::data, home / file + " has ");
  home.write(file, "");
  problem(ErrorKind::data, home / file + " has 0 bytes, wanted ");
  for (const std::size_t byte : {std::size_t{0}, good.size() / 2, good.size() - 1}) {
    std::string flipped = good;
    flipped[byte] = static_cast<char>(flipped[byte] ^ 4);
    home.write(file, flipped);
    problem(ErrorKind::data, "its content was changed");
  }
  fs::remove(home / file);
  problem(ErrorKind::missing, home / file);
  fs::remove(path + "/manifest.json");
  problem(ErrorKind::missing, path + "/manifest.json");
}

TEST_CASE("who names the folder of checkpoints learns the path of the newest") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), kKeepAll);
  folder.write(snapshot(3));
  const std::string newest = folder.write(snapshot(4));
  try {
    read_checkpoint(home.path());
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::missing);
    CHECK(error.message() == home.path() + " is a folder of checkpoints, wanted one of them");
    CHECK(error.hint() == "the newest is " + newest);
  }
}

TEST_CASE("a checkpoint that was set aside is not found again, and its number is not in the way") {
  const TemporaryFolder home;
  CheckpointFolder folder(home.path(), kKeepAll);
  const std::string path = folder.write(snapshot(3));
  CHECK(folder.set_aside(path) == path + ".bad");
  CHECK(folder.list().empty());
  CHECK(folder.set_aside(folder.write(snapshot(3))) == path + ".bad2");
}

}  // namespace
}  // namespace fleetrun::runtime::checkpoint_folder_test
