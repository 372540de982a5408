#include "launch/serve/log_pieces.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/error/error.h"
#include "base/json/json_reader.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::log_pieces_test {
namespace {

// Ranks 4 and 5 of a run, of which this node writes workerlog.0 and workerlog.1.
struct Scene {
  Scene() {
    verdict.ranks.resize(2);
    verdict.span = {4, 8};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder.path() + "/" + name, std::ios::binary) << text;
  }
  JsonValue ask(const std::string& logs) const {
    return read_log_pieces({files, attempt, verdict}, read_json("{\"logs\": " + logs + "}").root);
  }
  std::string piece(const std::string& log) const {
    return to_json(ask("[" + log + "]").find("logs")->value.items.front());
  }

  TemporaryFolder folder;
  LogFolder files{folder.path()};
  Attempt attempt;
  Verdict verdict;
};

TEST_CASE("a piece goes from the asked place to the end") {
  const Scene scene;
  scene.write("workerlog.1", "hello\nworld\n");
  CHECK(
      scene.piece(R"({"local_rank": 1, "from": 6})") ==
      R"({"local_rank": 1, "errors": false, "attempt": 0, "from": 6, "bytes": 6, "size": 12, "text": "world\n"})");
  CHECK(scene.piece(R"({"local_rank": 1, "from": 12})").ends_with(R"("bytes": 0, "size": 12, "text": ""})"));
  CHECK(to_json(scene.ask("[]")) == R"({"attempt": 0, "logs": []})");
}

TEST_CASE("a log that was renamed during the attempt is read where the rank writes it") {
  Scene scene;
  for (const int rank : {0, 1}) scene.attempt.logs.push_back(scene.files.open_worker_log(rank));
  scene.write("workerlog.1", "before\n");
  std::filesystem::rename(scene.folder.path() + "/workerlog.1", scene.folder.path() + "/mine");
  scene.write("workerlog.1", "another file\n");
  CHECK(scene.piece(R"({"local_rank": 1})").ends_with(R"("text": "before\n"})"));
}

TEST_CASE("a log that has become shorter is read from its start") {
  const Scene scene;
  scene.write("workerlog.1", "new\n");
  CHECK(scene.piece(R"({"local_rank": 1, "from": 100})")
            .ends_with(R"("from": 0, "bytes": 4, "size": 4, "text": "new\n"})"));
}

TEST_CASE("the pieces of one answer share 64 KiB, and what one leaves the next may take") {
  const Scene scene;
  scene.write("workerlog.0", "short\n");
  scene.write("workerlog.1", std::string(1 << 20, 'x'));
  const JsonValue logs = scene.ask(R"([{"local_rank": 0}, {"local_rank": 1}])").find("logs")->value;
  CHECK(logs.items[0].find("text")->value.text == "short\n");
  CHECK(logs.items[1].find("bytes")->value.integer == static_cast<std::int64_t>(kMostLogBytes - 6));
  CHECK(logs.items[1].find("size")->value.integer == 1 << 20);
}

TEST_CASE("bytes that JSON cannot carry are replaced, and no character is cut in two") {
  const Scene scene;
  scene.write("workerlog.0", std::string("a\0b\xff", 4));
  const JsonValue piece = scene.ask(R"([{"local_rank": 0}])").find("logs")->value.items.front();
  const JsonDocument read = read_json(to_json(piece));
  CHECK(read.problems.empty());
  CHECK(read.root.find("text")->value.text == "a?b\xef\xbf\xbd");
  CHECK(piece.find("bytes")->value.integer == 4);
  scene.write("workerlog.1", std::string(kMostLogBytes - 1, 'x') + "\xc3\xa9" + "end");
  const JsonValue cut = scene.ask(R"([{"local_rank": 1}])").find("logs")->value.items.front();
  CHECK(cut.find("bytes")->value.integer == static_cast<std::int64_t>(kMostLogBytes - 1));
}

TEST_CASE("a piece of bytes that are no text takes no more room on the network than text") {
  const Scene scene;
  scene.write("workerlog.0", std::string(1 << 20, '\x1b'));
  const JsonValue piece = scene.ask(R"([{"local_rank": 0}])").find("logs")->value.items.front();
  CHECK(piece.find("bytes")->value.integer > 5000);
  CHECK(to_json(JsonValue(to_json(piece))).size() < kMostLogBytes + 500);
  scene.write("workerlog.0", std::string(1 << 20, '\xff'));
  CHECK(to_json(JsonValue(to_json(scene.ask(R"([{"local_rank": 0}])")))).size() < kMostLogBytes + 500);
}

TEST_CASE("an earlier attempt is read where the restart has put it, the present one in the folder") {
  Scene scene;
  scene.verdict.attempt = 1;
  std::filesystem::create_directory(scene.folder.path() + "/attempt-0");
  scene.write("attempt-0/workerlog.0", "before\n");
  scene.write("workerlog.0", "after\n");
  CHECK(scene.piece(R"({"local_rank": 0, "attempt": 0})").ends_with(R"("text": "before\n"})"));
  CHECK(scene.piece(R"({"local_rank": 0, "attempt": 1})").ends_with(R"("text": "after\n"})"));
  CHECK(scene.piece(R"({"local_rank": 0, "attempt": -1})").ends_with(R"("text": "after\n"})"));
  CHECK(scene.piece(R"({"local_rank": 0, "attempt": 2})").ends_with(R"("attempt": 2, "missing": false})"));
}

TEST_CASE("the log of stderr is missing once the rank has a log without it, and not before") {
  const Scene scene;
  CHECK(scene.piece(R"({"local_rank": 0, "errors": true})").ends_with(R"("missing": false})"));
  scene.write("workerlog.0", "");
  CHECK(scene.piece(R"({"local_rank": 0, "errors": true})").ends_with(R"("missing": true})"));
  scene.write("workerlog.0.err", "oh\n");
  CHECK(scene.piece(R"({"local_rank": 0, "errors": true})").ends_with(R"("text": "oh\n"})"));
}

TEST_CASE("only what was written since some time") {
  const Scene scene;
  scene.write("workerlog.0", "old\nnew\n");
  scene.write(".times", "1000 0 4\n2000 0 8\n");
  CHECK(scene.piece(R"({"local_rank": 0, "since": 1500})").ends_with(R"("text": "new\n"})"));
}

// The hole stands for entries of months, which nobody could read within a test.
TEST_CASE("logs that do not exist or are empty do not make the search for a time read all entries") {
  const Scene scene;
  scene.write("workerlog.0", "old\nnew\n");
  scene.write("workerlog.1", "");
  scene.write(".times", "");
  const std::string times = scene.folder / ".times";
  std::filesystem::resize_file(times, std::uintmax_t{1} << 32);
  std::ofstream(times, std::ios::app) << "\n1000 0 4\n2000 0 8\n";
  const JsonValue logs = scene
                             .ask(R"([{"local_rank": 0, "since": 1500},
                                       {"local_rank": 0, "errors": true, "since": 1500},
                                       {"local_rank": 1, "since": 1500}])")
                             .find("logs")
                             ->value;
  CHECK(logs.items[0].find("text")->value.text == "new\n");
  CHECK(logs.items[1].find("text") == nullptr);
  CHECK(logs.items[2].find("text")->value.text.empty());
}

TEST_CASE("a rank that this node does not have has no log, and requests that are none are refused") {
  const Scene scene;
  CHECK(scene.piece(R"({"local_rank": 2})").ends_with(R"("missing": true})"));
  CHECK_THROWS_WITH_AS(scene.ask(R"([{"rank": 4}])"), "found local rank -1, wanted a rank of this node",
                       Error);
  CHECK_THROWS_AS(scene.ask(R"([{"local_rank": 99999999999}])"), Error);
  CHECK_THROWS_AS(scene.ask(R"([{"local_rank": "0"}, 7])"), Error);
  CHECK_THROWS_AS(scene.ask("7"), Error);
}

TEST_CASE("the numbers that the ranks have now do not matter for the log of an earlier attempt") {
  Scene scene;
  scene.verdict.attempt = 1;
  scene.verdict.span = {2, 4};
  std::filesystem::create_directory(scene.folder.path() + "/attempt-0");
  scene.write("attempt-0/workerlog.1", "before\n");
  CHECK(scene.piece(R"({"local_rank": 1, "attempt": 0, "from": 4})")
            .ends_with(R"("size": 7, "text": "re\n"})"));
}

}  // namespace
}  // namespace fleetrun::launch::log_pieces_test
