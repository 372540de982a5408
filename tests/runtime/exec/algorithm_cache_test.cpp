#include "runtime/exec/algorithm_cache.h"

#include <doctest/doctest.h>

#include <atomic>

#include <fmt/format.h>

#include "base/error/error.h"
#include "support/run_world.h"
#include "support/temporary_folder.h"

namespace fleetrun::runtime::algorithm_cache_test {
namespace {

constexpr const char* kPlace = "node1, a processor, a library 1.0";

std::string complaint(const std::function<void()>& work) {
  try {
    work();
    return "";
  } catch (const Error& error) {
    return fmt::format("{} {}", error.exit_code(), error.message());
  }
}

TEST_CASE("what was added is read by the next one, in another place nothing") {
  const TemporaryFolder folder;
  const AlgorithmCache cache(folder / "new/one", kPlace);
  CHECK(cache.read().empty());
  CHECK(cache.add({{"conv 1", "direct"}, {"conv 2", "winograd"}}).size() == 2);
  CHECK(AlgorithmCache(folder / "new/one", kPlace).read() ==
        Choices{{"conv 1", "direct"}, {"conv 2", "winograd"}});
  CHECK(AlgorithmCache(folder / "new/one", "node2, a processor, a library 1.0").read().empty());
}

TEST_CASE("the first writer wins, and the next one learns it") {
  const TemporaryFolder folder;
  const AlgorithmCache cache(folder.path(), kPlace);
  cache.add({{"a", "direct"}});
  const Choices both = {{"a", "direct"}, {"b", "winograd"}};
  CHECK(cache.add({{"a", "winograd"}, {"b", "winograd"}}) == both);
  CHECK(cache.read() == both);
}

TEST_CASE("writers at the same time lose nothing and end with the same choices") {
  constexpr int kWriters = 8;
  const TemporaryFolder folder;
  std::vector<Choices> seen(kWriters);
  testing::run_ranks(kWriters, [&](int writer) {
    const AlgorithmCache cache(folder.path(), kPlace);
    seen[static_cast<std::size_t>(writer)] =
        cache.add({{"shared", fmt::format("of {}", writer)}, {fmt::format("own {}", writer), "direct"}});
  });
  const Choices all = AlgorithmCache(folder.path(), kPlace).read();
  CHECK(all.size() == kWriters + 1);
  for (const Choices& choices : seen) CHECK(choices.at("shared") == all.at("shared"));
}

TEST_CASE("a file that is not a list of algorithms is reported, and made anew by the next one that adds") {
  const TemporaryFolder folder;
  const AlgorithmCache cache(folder.path(), kPlace);
  const std::string name = std::filesystem::path(cache.path()).filename();
  const std::string refused = fmt::format("65 {} is not a list of algorithms: ", cache.path());
  struct Case {
    const char *content, *why;
  };
  for (const Case& one : {Case{"{\"place\":", "line 1: "}, Case{"[]", "its place is not"},
                          Case{R"({"place": "elsewhere", "algorithms": {}})", "its place is not"},
                          Case{R"({"place": "node1, a processor, a library 1.0"})", "it has none"},
                          Case{R"({"place": "node1, a processor, a library 1.0", "algorithms": {"a": 1}})",
                               "an algorithm is not a text"}}) {
    CAPTURE(one.content);
    folder.write(name, one.content);
    CHECK(complaint([&] { cache.read(); }).starts_with(refused + one.why));
    CHECK(cache.add({{"a", "direct"}}) == Choices{{"a", "direct"}});
    CHECK(cache.read() == Choices{{"a", "direct"}});
  }
}

TEST_CASE("a folder that cannot be made is reported by its name") {
  const TemporaryFolder folder;
  folder.write("file", "");
  const AlgorithmCache cache(folder / "file/below", kPlace);
  CHECK(cache.read().empty());
  CHECK(complaint([&] {
          cache.add({{"a", "direct"}});
        }).starts_with("73 creating folder " + folder / "file/below"));
}

TEST_CASE("the folder is FLEETRUN_CACHE_DIR, else fleetrun's in the user's cache") {
  Environment environment;
  CHECK(complaint([&] { cache_folder(environment); }) ==
        "78 none of FLEETRUN_CACHE_DIR, XDG_CACHE_HOME and HOME names a folder");
  const TemporaryFolder home;
  environment.set("HOME", home.path());
  CHECK(cache_folder(environment) == home / ".cache/fleetrun");
  environment.set("XDG_CACHE_HOME", "not/absolute");
  CHECK(cache_folder(environment) == home / ".cache/fleetrun");
  environment.set("XDG_CACHE_HOME", "/var/cache/me");
  CHECK(cache_folder(environment) == "/var/cache/me/fleetrun");
  environment.set("FLEETRUN_CACHE_DIR", "/here");
  CHECK(cache_folder(environment) == "/here");
}

TEST_CASE("a home that is not there is not made") {
  const TemporaryFolder folder;
  Environment environment;
  environment.set("HOME", folder / "nowhere");
  CHECK(complaint([&] { cache_folder(environment); }) ==
        "78 HOME is " + folder / "nowhere" + ", which is not a folder");
}

}  // namespace
}  // namespace fleetrun::runtime::algorithm_cache_test
