#include "prototxt/parse_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include <fmt/format.h>

#include "base/text/printable.h"

namespace fleetrun::prototxt {
namespace {

constexpr int kDeepest = 16;  // messages inside each other; the schemas have 5
constexpr std::size_t kLongestShownToken = 60;

// The parts of a message of protobuf around its own words: `{"Expected ", ", got: ", ""}`.
using Frame = std::initializer_list<std::string_view>;

// What stands between the parts; nothing if the message has another form.
std::optional<std::vector<std::string>> match(std::string_view message, Frame frame) {
  std::vector<std::string> found;
  for (auto part = frame.begin(); part != frame.end(); ++part) {
    const bool is_last = part + 1 == frame.end();
    const std::size_t at = is_last && part->empty() ? message.size() : message.find(*part);
    if (at == std::string_view::npos || (part == frame.begin() && at != 0)) return std::nullopt;
    if (part != frame.begin()) found.emplace_back(message.substr(0, at));
    message.remove_prefix(at + part->size());
  }
  return found;
}

std::string shown(const std::string& token) {
  return token.empty() ? "the end of the file" : printable_start(token, kLongestShownToken);
}

std::string in_our_words_for(const std::string& wanted) {
  if (wanted == "identifier") return "the name of a field or a value";
  return wanted == "integer" ? "a whole number" : wanted == "double" ? "a number" : "a " + wanted;
}

struct Words {
  std::string message;
  std::string before = {};  // protobuf's position is after this word
};

// Of the messages of text_format.cc and tokenizer.cc in protobuf 3.21.
Words in_our_words(const std::string& message) {
  if (const auto parts = match(message, {"Expected \"", "\", found \"", "\"."}))
    return {fmt::format("found {}, wanted {}", shown((*parts)[1]), (*parts)[0])};
  if (const auto parts = match(message, {"Expected ", ", got: ", ""}))
    return {fmt::format("found {}, wanted {}", shown((*parts)[1]), in_our_words_for((*parts)[0]))};
  if (const auto parts = match(message, {"Non-repeated field \"", "\" is specified multiple times."}))
    return {fmt::format("found {} for the second time, wanted it once", (*parts)[0]), (*parts)[0]};
  if (const auto parts = match(message, {"Invalid value for boolean field \"", "\". Value: \"", "\"."}))
    return {fmt::format("found {} for {}, wanted true or false", shown((*parts)[1]), (*parts)[0]),
            (*parts)[1]};
  if (const auto parts = match(message, {"Unknown enumeration value of \"", "\" for field \"", "\"."}))
    return {fmt::format("found {}, which is not a value of {}", shown((*parts)[0]), (*parts)[1]),
            (*parts)[0]};
  if (const auto parts = match(message, {"Integer out of range (", ")"}))
    return {fmt::format("found {}, wanted a number in the range of the field's type", shown((*parts)[0]))};
  return {"found text that protobuf cannot read: " + printable(message)};
}

class Complaints : public pb::io::ErrorCollector {
 public:
  Complaints(const Places& places, ParsedText& parsed) : places_(places), parsed_(parsed) {}

  void AddError(int line, int column, const std::string& message) override {
    if (parsed_.fault) return;
    const Words words = in_our_words(message);
    const std::size_t offset = places_.offset_of(line, column);
    parsed_.fault =
        TextFault{words.before.empty() ? offset : places_.before(offset, words.before), words.message};
  }

  // Its position is that of the word after the name.
  void AddWarning(int line, int column, const std::string& message) override {
    const auto parts = match(message, {"Message type \"", "\" has no field named \"", "\"."});
    if (!parts) return AddError(line, column, message);
    const std::size_t offset = places_.before(places_.offset_of(line, column), (*parts)[1]);
    parsed_.unknown.push_back({offset, (*parts)[0], (*parts)[1]});
  }

 private:
  const Places& places_;
  ParsedText& parsed_;
};

}  // namespace

void parse_text(std::string_view text, const Places& places, const Schema& schema, ParsedText& parsed) {
  parsed.message = schema.make_strategy();
  Complaints complaints(places, parsed);
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&complaints);
  parser.WriteLocationsTo(&parsed.places);
  parser.AllowUnknownField(true);  // then it goes on after one
  parser.SetRecursionLimit(kDeepest);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  const bool good = parser.Parse(&stream, parsed.message.get());
  if (!good && !parsed.fault) parsed.fault = TextFault{text.size(), "found text that protobuf cannot read"};
}

}  // namespace fleetrun::prototxt
