#include "launch/serve/page_server.h"

#include <unistd.h>

#include <doctest/doctest.h>

#include "launch/page/run_page.h"
#include "support/temporary_folder.h"

namespace fleetrun::launch::page_server_test {
namespace {

TEST_CASE("who knows the token gets the page and the files of the run, anybody else 403") {
  const TemporaryFolder folder;
  folder.write("report.html", "<!doctype html>page");
  folder.write("workerlog.0", "<script>");
  folder.write("backup_env.0.json", "secret");
  folder.write("other.txt", "of somebody else");
  const auto ask = [&](const std::string& path) { return answer_watcher(path, "0123abcd", folder.path()); };
  CHECK(ask("/0123abcd/").body == "<!doctype html>page");
  CHECK(ask("/0123abcd/workerlog.0").body == "<script>");
  CHECK(ask("/0123abcd/workerlog.0").type == "text/plain; charset=utf-8");
  CHECK(ask("/0123abcd").status == "308 Permanent Redirect");
  for (const char* path : {"/", "/0123abc/", "/0123abce/", "/report.html", "//", "/0123abcdx/", ""})
    CHECK_MESSAGE(ask(path).status == "403 Forbidden", path);
  for (const char* path : {"/0123abcd/backup_env.0.json", "/0123abcd/other.txt", "/0123abcd/../report.html",
                           "/0123abcd/.control", "/0123abcd/attempt-0/../x", "/0123abcd/workerlog.1"})
    CHECK_MESSAGE(ask(path).status == "404 Not Found", path);
}

TEST_CASE("before a run has written its page there is one that waits; a link is not followed") {
  const TemporaryFolder folder;
  CHECK(answer_watcher("/t/", "t", folder.path()).body.find("Waiting for a run") != std::string::npos);
  REQUIRE(::symlink("/etc/passwd", (std::string(folder.path()) + "/workerlog.0").c_str()) == 0);
  CHECK(answer_watcher("/t/workerlog.0", "t", folder.path()).status == "404 Not Found");
}

TEST_CASE("the page of a run that nobody runs any more says so") {
  const TemporaryFolder folder;
  folder.write("report.html", run_page({.name = "train", .end = {}}));
  const std::string page = answer_watcher("/t/", "t", folder.path()).body;
  CHECK(page.find("fleetrun was killed") != std::string::npos);
  CHECK(page.find("<main data-running>") == std::string::npos);
  folder.write("report.html", run_page({.name = "train", .end = PageEnd()}));
  CHECK(answer_watcher("/t/", "t", folder.path()).body.find("fleetrun was killed") == std::string::npos);
}

TEST_CASE("a token is new each time") {
  CHECK(make_page_token().size() == 32);
  CHECK(make_page_token() != make_page_token());
}

}  // namespace
}  // namespace fleetrun::launch::page_server_test
