#include "launch/serve/remote_log.h"

#include <utility>

namespace fleetrun::launch {
namespace {

using Kind = JsonValue::Kind;

std::int64_t integer_in(const JsonValue& object, const char* key, std::int64_t fallback) {
  const JsonValue* const value = object.find(key, Kind::integer);
  return value == nullptr ? fallback : value->integer;
}

bool is_true(const JsonValue& object, const char* key) {
  const JsonValue* const value = object.find(key, Kind::boolean);
  return value != nullptr && value->boolean;
}

}  // namespace

JsonValue RemoteLog::wish() const {
  JsonValue wish = JsonValue::object({{"local_rank", start_.local_rank},
                                      {"errors", start_.errors},
                                      {"attempt", start_.attempt},
                                      {"from", next_}});
  if (start_.since) wish.add("since", *start_.since);
  return wish;
}

std::string RemoteLog::take(const JsonValue& piece, int newest, TimePoint now) {
  news_ = lost_rest_ = false;
  missing_ = is_true(piece, "missing");
  const JsonValue* const text = piece.find("text", Kind::text);
  const auto attempt = static_cast<int>(integer_in(piece, "attempt", newest));
  if (last_ && attempt > *last_) {  // it wanted the attempt that runs
    ended_ = true;
    return text_.finish();
  }
  if (text == nullptr) {
    if (attempt >= newest || missing_) return "";
    lost_rest_ = next_ > 0;  // else the node was lost before the attempt began
    return go_on();
  }
  start_.since.reset();
  start_.attempt = attempt;
  if (shown_attempt_) *shown_attempt_ = attempt;
  const std::int64_t from = integer_in(piece, "from", next_);
  std::string shown = from < next_ ? text_.end_line() : "";
  next_ = from + integer_in(piece, "bytes", 0);
  size_ = integer_in(piece, "size", next_);
  news_ = !text->text.empty();
  shown += show(text->text, now);
  if (start_.attempt >= newest || behind() > 0) return shown;
  return shown + go_on();
}

std::string RemoteLog::go_on() {
  if (last_ && start_.attempt >= *last_) ended_ = true;
  ++start_.attempt;
  next_ = size_ = 0;
  news_ = true;  // there is more to ask for
  return text_.finish();
}

std::string RemoteLog::show(const std::string& text, TimePoint now) {
  if (!amid_line_) return text_.take(text, now);
  const auto end = text.find('\n');
  if (end == std::string::npos) return "";
  amid_line_ = false;
  return text_.take(text.substr(end + 1), now);
}

std::string RemoteLog::skip(std::int64_t keep) {
  next_ = size_ - keep;
  amid_line_ = true;
  return text_.end_line();
}

LogAnswer read_log_answer(const JsonValue& answer, std::size_t logs) {
  const JsonValue* const pieces = answer.find("logs", Kind::list);
  if (pieces == nullptr || pieces->items.size() != logs) return {};
  return {pieces, static_cast<int>(integer_in(answer, "attempt", 0)), is_true(answer, "over")};
}

}  // namespace fleetrun::launch
