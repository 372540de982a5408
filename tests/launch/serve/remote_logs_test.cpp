#include "launch/serve/remote_logs.h"

#include <functional>

#include <doctest/doctest.h>

#include "launch/serve/while_answered.h"

namespace fleetrun::launch::remote_logs_test {
namespace {

RemoteLog log_of(int rank) { return {{.rank = rank, .errors = false, .since = {}}, LogText()}; }

std::string answer_with(const std::string& text, bool over) {
  const JsonValue piece = JsonValue::object(
      {{"attempt", 0}, {"from", 0}, {"bytes", text.size()}, {"size", text.size()}, {"text", text}});
  return to_json(JsonValue::object({{"attempt", 0}, {"logs", JsonValue::list({piece})}, {"over", over}}));
}

// Runs `work` while a run answers the requests with these words, in turn. Returns the number of requests.
std::size_t requests_of(const TemporaryFolder& folder, const std::vector<std::string>& answers,
                        const std::function<void()>& work) {
  EventLoop loop;
  std::size_t asked = 0;
  while_answered(
      loop, folder,
      [&](const std::string&, const std::string&, const ControlServer::Reply& reply) {
        reply(asked < answers.size() ? answers[asked] : "");
        ++asked;
      },
      work);
  return asked;
}

TEST_CASE("a node that had nothing new after the end of the run is not asked again: the run may be gone") {
  const TemporaryFolder folder;
  std::string shown;
  RemoteLogs logs(folder.path(), [&](const std::string& text) { shown += text; });
  logs.add(1, log_of(2));
  logs.add(2, log_of(4));
  bool has_all_too_early = true;
  // The run ends after node 1 was asked and before node 2 is.
  const std::size_t asked =
      requests_of(folder, {answer_with("", false), answer_with("", true), answer_with("", true)}, [&] {
        logs.look();
        has_all_too_early = logs.has_all();
        logs.look();
      });
  CHECK_FALSE(has_all_too_early);
  CHECK(logs.has_all());
  CHECK(asked == 3);
}

TEST_CASE("a node that had something new after the end of the run is asked again") {
  const TemporaryFolder folder;
  std::string shown;
  RemoteLogs logs(folder.path(), [&](const std::string& text) { shown += text; });
  logs.add(1, log_of(2));
  bool has_all_too_early = true;
  requests_of(folder, {answer_with("goodbye\n", true), answer_with("", true)}, [&] {
    logs.look();
    has_all_too_early = logs.has_all();
    logs.look();
  });
  CHECK(shown == "goodbye\n");
  CHECK_FALSE(has_all_too_early);
  CHECK(logs.has_all());
}

}  // namespace
}  // namespace fleetrun::launch::remote_logs_test
