#include "base/json/json_reader.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json/json_syntax.h"

namespace fleetrun {
namespace {

using Kind = JsonValue::Kind;
using After = JsonBreak::After;
using Inside = JsonBreak::Inside;

// long double: 1e309 then is a number that we can name instead of the end of parsing.
using WideJson =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, long double>;

// Reads a text and records how far it has come.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** furthest = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    *furthest = ++at;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
};

constexpr int kOutOfRange = 406;  // nlohmann's number for "number overflow"
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::string_view kNumberLetters = "0123456789+-.eE";
constexpr std::size_t kLongestShownNumber = 40;  // bytes

std::string describe_too_large(const std::string& number) {
  return fmt::format("found {}{}, wanted a number that fits into 64 bits (up to about 1.8e308)",
                     number.substr(0, kLongestShownNumber), number.size() > kLongestShownNumber ? "..." : "");
}

// Line and column of offsets that only grow: one walk over the text for all of them.
class Locator {
 public:
  explicit Locator(std::string_view text) : text_(text) {}

  TextPosition at(std::size_t offset) {
    for (; offset_ < offset; ++offset_) {
      const auto byte = static_cast<unsigned char>(text_[offset_]);
      if (byte == '\n') {
        ++position_.line;
        position_.column = 1;
      } else if ((byte & 0xC0U) != 0x80U) {  // the bytes after the first of a character count nothing
        ++position_.column;
      }
    }
    return position_;
  }

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
  TextPosition position_{1, 1};
};

// Receives nlohmann's SAX events and grows the tree. Returning false ends the parse.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, JsonDocument& document)
      : text_(text), furthest_(text.data()), locator_(text), document_(document) {}

  CountingIterator begin() { return {text_.data(), &furthest_}; }
  CountingIterator end() { return {text_.data() + text_.size(), &furthest_}; }

  bool null() { return put(JsonValue(), read_so_far()); }
  bool boolean(bool value) { return put(JsonValue(value), read_so_far()); }
  bool number_integer(std::int64_t) { return put_number(); }
  bool number_unsigned(std::uint64_t) { return put_number(); }
  bool number_float(long double value, const std::string&) { return put_number(value < 1 && value > -1); }
  bool string(std::string& value);
  bool binary(WideJson::binary_t&) { return false; }  // never in text
  bool start_object(std::size_t) { return open(JsonValue::object()); }
  bool start_array(std::size_t) { return open(JsonValue::list({})); }
  bool key(std::string& name);
  bool end_object();
  bool end_array() { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& exception);

 private:
  struct Open {  // a list or object that is not closed yet
    JsonValue* value;
    std::string path;
  };

  std::size_t read_so_far() const { return static_cast<std::size_t>(furthest_ - text_.data()); }
  std::size_t next_token() const;
  std::string path_of_next() const;
  JsonValue& place(JsonValue value);
  bool put(JsonValue value, std::size_t token_end);
  bool put_number(bool is_small = false);
  bool open(JsonValue value);
  bool close();
  void report(std::size_t offset, std::string path, std::string message) {
    document_.problems.push_back({locator_.at(offset), std::move(path), std::move(message)});
  }

  std::string_view text_;
  const char* furthest_;
  Locator locator_;
  JsonDocument& document_;
  std::vector<Open> open_;
  std::size_t token_end_ = 0;  // after the last token that was right
  After after_ = After::start;
};

// Between two tokens stand only spaces, a comma or a colon: the parser has checked which.
std::size_t TreeBuilder::next_token() const {
  const std::size_t found = text_.find_first_not_of(" \t\r\n,:", token_end_);
  return found == std::string_view::npos ? text_.size() : found;
}

std::string TreeBuilder::path_of_next() const {
  if (open_.empty()) return "";
  const auto& [value, path] = open_.back();
  if (value->is(Kind::list)) return item_path(path, value->items.size());
  return after_ == After::key ? child_path(path, value->members.back().key) : path;
}

// Puts a value into the innermost open list or object; an object has its key already.
JsonValue& TreeBuilder::place(JsonValue value) {
  value.position = locator_.at(next_token());
  if (open_.empty()) return document_.root = std::move(value);
  JsonValue& parent = *open_.back().value;
  if (parent.is(Kind::list)) return parent.items.emplace_back(std::move(value));
  return parent.members.back().value = std::move(value);
}

bool TreeBuilder::put(JsonValue value, std::size_t token_end) {
  place(std::move(value));
  token_end_ = token_end;
  after_ = After::value;
  return true;
}

bool TreeBuilder::string(std::string& value) {
  if (value.find('\0') != std::string::npos)
    report(next_token(), path_of_next(), "found a text with the character U+0000, wanted one without");
  return put(JsonValue(std::move(value)), read_so_far());
}

// A number is taken from the text itself: to the last digit, and as people wrote it. The parser is up to one
// character past it. A small number that does not fit is so near to 0 that it is 0.
bool TreeBuilder::put_number(bool is_small) {
  const std::size_t start = next_token();
  const std::size_t end = std::min(text_.find_first_not_of(kNumberLetters, start), text_.size());
  JsonValue value;
  value.text = std::string(text_.substr(start, end - start));
  const char* const first = value.text.data();
  const char* const last = first + value.text.size();
  const bool whole = value.text.find_first_of(".eE") == std::string::npos;
  const bool fits = whole && std::from_chars(first, last, value.integer).ec == std::errc();
  value.kind = fits ? Kind::integer : Kind::number;
  if (std::from_chars(first, last, value.number).ec == std::errc::result_out_of_range && !is_small) {
    value.number = value.text.front() == '-' ? -kInfinity : kInfinity;
    report(start, path_of_next(), describe_too_large(value.text));
  }
  return put(std::move(value), end);
}

bool TreeBuilder::open(JsonValue value) {
  if (open_.size() >= static_cast<std::size_t>(kJsonDepthLimit)) {
    report(next_token(), open_[1].path,
           fmt::format("found more than {} levels of nesting, wanted fewer", kJsonDepthLimit));
    return false;
  }
  std::string path = path_of_next();
  open_.push_back({&place(std::move(value)), std::move(path)});
  token_end_ = read_so_far();
  after_ = After::opening;
  return true;
}

bool TreeBuilder::close() {
  open_.pop_back();
  token_end_ = read_so_far();
  after_ = After::value;
  return true;
}

bool TreeBuilder::key(std::string& name) {
  const std::size_t start = next_token();
  if (name.find('\0') != std::string::npos)
    report(start, child_path(open_.back().path, name),
           "found a key with the character U+0000, wanted one without");
  open_.back().value->members.push_back({std::move(name), locator_.at(start), JsonValue()});
  token_end_ = read_so_far();
  after_ = After::key;
  return true;
}

bool TreeBuilder::end_object() {
  std::vector<const JsonMember*> by_name;
  for (const JsonMember& member : open_.back().value->members) by_name.push_back(&member);
  std::stable_sort(by_name.begin(), by_name.end(), [](auto* a, auto* b) { return a->key < b->key; });
  const JsonMember* first = nullptr;  // of those with the same key
  for (const JsonMember* member : by_name) {
    if (first == nullptr || first->key != member->key) {
      first = member;
      continue;
    }
    document_.problems.push_back({member->position, child_path(open_.back().path, member->key),
                                  fmt::format("found the key again, wanted it once; it is first at {}:{}",
                                              first->position.line, first->position.column)});
  }
  return close();
}

bool TreeBuilder::parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& exception) {
  if (exception.id == kOutOfRange) {
    const std::size_t start = next_token();
    const std::size_t end = std::min(text_.find_first_not_of(kNumberLetters, start), text_.size());
    report(start, path_of_next(), describe_too_large(std::string(text_.substr(start, end - start))));
    return false;
  }
  JsonBreak broken{.offset = token_end_, .after = after_};
  if (!open_.empty()) {
    broken.inside = open_.back().value->is(Kind::list) ? Inside::list : Inside::object;
    broken.opened = open_.back().value->position;
  }
  const JsonFault fault = diagnose_json(text_, broken);
  report(fault.offset, path_of_next(), "found " + fault.message);
  return false;
}

}  // namespace

JsonDocument read_json(std::string_view text) {
  JsonDocument document;
  if (const auto fault = find_encoding_fault(text)) {
    document.problems.push_back({Locator(text).at(fault->offset), "", "found " + fault->message});
    return document;
  }
  TreeBuilder builder(text, document);
  document.complete = WideJson::sax_parse(builder.begin(), builder.end(), &builder);
  std::stable_sort(document.problems.begin(), document.problems.end(),
                   [](const JsonProblem& a, const JsonProblem& b) { return a.position < b.position; });
  return document;
}

}  // namespace fleetrun
