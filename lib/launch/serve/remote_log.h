// The log of a rank on another node, as it arrives in pieces (log_pieces.h).
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/json/json_value.h"
#include "launch/logs/log_text.h"
#include "launch/loop/clock.h"

namespace fleetrun::launch {

// More than ten members: what was shown so far, what the last answer said, and which attempt it belongs to.
class RemoteLog {
 public:
  static constexpr int kPresent = -1;  // the attempt that runs at the first request

  struct Start {
    int rank = 0;        // in the whole run, during the first of the attempts that are shown
    int local_rank = 0;  // on its node, which counts its ranks in the same way in every attempt
    bool errors = false;
    int attempt = kPresent;
    std::optional<std::int64_t> since;  // seconds since 1970
  };
  // `attempt`, which the prefix of `text` shares, becomes the attempt of the lines that are shown; null: nobody shows it.
  RemoteLog(const Start& start, LogText text, std::shared_ptr<int> attempt = nullptr)
      : start_(start), text_(std::move(text)), shown_attempt_(std::move(attempt)) {}

  int rank() const { return start_.rank; }
  int local_rank() const { return start_.local_rank; }
  bool of_errors() const { return start_.errors; }
  bool missing() const { return missing_; }  // the rank has no such log
  bool ended() const { return ended_; }      // the log of the last attempt has been shown
  bool has_news() const { return news_; }    // the last piece had text
  // Of an earlier attempt, some of the log has been shown, and at the last request it was no longer where that attempt had it.
  bool lost_rest() const { return lost_rest_; }
  // In bytes, as of the last piece: how much has been shown, the length of the log, and the difference.
  std::int64_t shown() const { return next_; }
  std::int64_t end() const { return size_; }
  std::int64_t behind() const { return size_ - next_; }

  void end_after(int attempt) { last_ = attempt; }  // later ones are shown by others

  JsonValue wish() const;  // the request for the next piece
  // Takes the answer to wish(), and returns the text that can be shown now. `newest` is the attempt that runs. After
  // the end of an earlier attempt's log it goes on with the log of the next attempt, up to the last one.
  std::string take(const JsonValue& piece, int newest, TimePoint now);
  // Skips to the first line that starts within the last `keep` bytes. Returns the text to show before that line.
  std::string skip(std::int64_t keep);
  std::string finish() { return text_.finish(); }

 private:
  std::string go_on();
  std::string show(const std::string& text, TimePoint now);

  Start start_;
  LogText text_;
  std::shared_ptr<int> shown_attempt_;
  std::int64_t next_ = 0, size_ = 0;
  std::optional<int> last_;  // attempt
  bool missing_ = false, news_ = false, ended_ = false, lost_rest_ = false;
  bool amid_line_ = false;  // after a skip
};

// One request for the next pieces of all these logs: {"do": "log", "logs": [...]}.
template <typename Logs>
JsonValue log_request(const Logs& logs) {
  JsonValue wishes = JsonValue::list({});
  for (const auto& log : logs) wishes.items.push_back(log.wish());
  return JsonValue::object({{"do", "log"}, {"logs", wishes}});
}

// The answer to such a request. `pieces` is null when the answer does not fit the request.
struct LogAnswer {
  const JsonValue* pieces = nullptr;
  int newest = 0;
  bool over = false;  // the run is over, and its logs grow no more
};
LogAnswer read_log_answer(const JsonValue& answer, std::size_t logs);

}  // namespace fleetrun::launch
