#include "launch/page/page_facts.h"

#include <filesystem>

#include <fmt/format.h>

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

std::string text_in(const JsonValue& object, const char* key) {
  const JsonValue* const value = object.find(key, Kind::text);
  return value == nullptr ? "" : value->text;
}

int whole_in(const JsonValue& object, const char* key) {
  const JsonValue* const value = object.find(key, Kind::integer);
  return value == nullptr ? 0 : static_cast<int>(value->integer);
}

std::vector<JsonValue> items_in(const JsonValue& object, const char* key) {
  const JsonValue* const value = object.find(key, Kind::list);
  return value == nullptr ? std::vector<JsonValue>() : value->items;
}

std::vector<std::string> texts_in(const JsonValue& object, const char* key) {
  std::vector<std::string> texts;
  for (const JsonValue& item : items_in(object, key)) texts.push_back(item.text);
  return texts;
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// "workerlog.0" of "log/workerlog.0", "attempt-1/workerlog.0" of "log/attempt-1/workerlog.0".
std::string in_folder(const std::string& log) {
  const std::filesystem::path path(log);
  const std::string folder = path.parent_path().filename();
  return (folder.starts_with("attempt-") ? folder + "/" : "") + path.filename().string();
}

PageRank read_rank(const JsonValue& json, int first, int count) {
  PageRank rank = {.rank = whole_in(json, "rank"), .role = text_in(json, "role")};
  rank.state = text_in(json, "description");
  if (rank.state.empty()) rank.state = rank.role == "never_started" ? "never started" : rank.role;
  const std::string log = text_in(json, "log");
  if (!log.empty() && rank.rank >= first && rank.rank < first + count) rank.log = in_folder(log);
  return rank;
}

PageEnd read_end(const JsonValue& report) {
  return {.cause = text_in(report, "cause"),
          .message = text_in(report, "message"),
          .exit_code = whole_in(report, "exit_code"),
          .exception = text_in(report, "exception"),
          .evidence = texts_in(report, "evidence"),
          .last_lines = texts_in(report, "last_lines"),
          .roll_call = texts_in(report, "roll_call"),
          .text = {}};
}

std::vector<std::string> read_notes(const JsonValue& report) {
  std::vector<std::string> notes;
  for (const JsonValue& slow : items_in(report, "stragglers")) notes.push_back(text_in(slow, "message"));
  for (const JsonValue& still : items_in(report, "stand_stills")) {
    const JsonValue* const seconds = still.find("seconds", Kind::number);
    notes.push_back(fmt::format("no rank worked for {:.1f} s: {}", seconds == nullptr ? 0 : seconds->number,
                                text_in(still, "why")));
  }
  return notes;
}

}  // namespace

PageFacts read_report_facts(const JsonValue& report, int first, int count) {
  PageFacts facts = {.name = text_in(report, "job_id"),
                     .run_id = text_in(report, "run_id"),
                     .host = text_in(report, "host"),
                     .command = join(texts_in(report, "command")),
                     .version = text_in(report, "fleetrun"),
                     .started = text_in(report, "started"),
                     .end = read_end(report),
                     .progress = {},
                     .ranks = {},
                     .attempts = {},
                     .notes = read_notes(report),
                     .job = {},
                     .files = {},
                     .history = {}};
  if (const JsonMember* const seconds = report.find("seconds")) facts.seconds = seconds->value.number;
  for (const JsonValue& rank : items_in(report, "ranks"))
    facts.ranks.push_back(read_rank(rank, first, count));
  for (const JsonValue& attempt : items_in(report, "earlier_attempts")) {
    const std::string folder = std::filesystem::path(text_in(attempt, "logs")).filename();
    facts.attempts.push_back({static_cast<int>(facts.attempts.size()), text_in(attempt, "message"), folder});
  }
  return facts;
}

}  // namespace fleetrun::launch
