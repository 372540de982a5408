#include "prototxt/read_strategy.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/json/json_syntax.h"
#include "base/text/suggest.h"
#include "prototxt/message_tree.h"
#include "prototxt/parse_text.h"
#include "prototxt/places.h"
#include "prototxt/schema.h"

namespace fleetrun::prototxt {
namespace {

using job::PaddleVersion;
using job::StrategyDocument;

// Far above what any strategy has. Protobuf skips what is inside an unknown field by recursion, to any depth.
constexpr int kMostOpenBrackets = 64;

bool opens(char letter) { return letter == '{' || letter == '<' || letter == '['; }
bool closes(char letter) { return letter == '}' || letter == '>' || letter == ']'; }

// The bracket that goes too deep. Brackets in strings and comments count, too.
std::optional<std::size_t> find_too_deep(std::string_view text) {
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (opens(text[i]) && ++open > kMostOpenBrackets) return i;
    if (closes(text[i]) && open > 0) --open;
  }
  return std::nullopt;
}

std::optional<TextFault> find_fault_before_parsing(std::string_view text) {
  if (const auto fault = find_encoding_fault(text))
    return TextFault{fault->offset, "found " + fault->message};
  if (const auto offset = find_too_deep(text))
    return TextFault{*offset,
                     fmt::format("found more than {} open brackets, wanted fewer", kMostOpenBrackets)};
  return std::nullopt;
}

bool has_field(const Schema& schema, const UnknownField& field) {
  const pb::Descriptor* type = schema.strategy().file()->pool()->FindMessageTypeByName(field.type);
  return type != nullptr && type->FindFieldByName(field.name) != nullptr;
}

void add_names(const Schema& schema, const std::string& type_name, std::vector<std::string>& names) {
  const pb::Descriptor* type = schema.strategy().file()->pool()->FindMessageTypeByName(type_name);
  for (int i = 0; type != nullptr && i < type->field_count(); ++i) names.push_back(type->field(i)->name());
}

std::string describe_unknown(const UnknownField& field) {
  std::vector<std::string> names;
  add_names(schema_of_paddle_3(), field.type, names);
  add_names(schema_of_paddle_2(), field.type, names);
  const auto meant = closest(field.name, names);
  return fmt::format("found a field that {} does not have{}", field.type.substr(field.type.rfind('.') + 1),
                     meant ? fmt::format("; did you mean {}?", *meant) : "");
}

// The text, read with both schemas.
class Reading {
 public:
  explicit Reading(std::string_view text) : text_(text), places_(text) {}

  StrategyDocument read() {
    if (const auto fault = find_fault_before_parsing(text_)) return refuse(*fault);
    parse_text(text_, places_, schema_of_paddle_2(), two_);
    parse_text(text_, places_, schema_of_paddle_3(), three_);
    if (const auto fault = first_fault()) return refuse(*fault);
    sort_unknown(three_, schema_of_paddle_2(), only_two_);
    sort_unknown(two_, schema_of_paddle_3(), only_three_);
    report_mixture();
    const bool is_two = !only_two_.empty();
    document_.version = is_two                ? PaddleVersion::paddle_2
                        : only_three_.empty() ? PaddleVersion::any
                                              : PaddleVersion::paddle_3;
    MessageTree tree = tree_of(is_two ? two_ : three_, places_);
    document_.root = std::move(tree.root);
    document_.at_default = std::move(tree.at_default);
    std::stable_sort(document_.problems.begin(), document_.problems.end(),
                     [](const JsonProblem& a, const JsonProblem& b) { return a.position < b.position; });
    return std::move(document_);
  }

 private:
  StrategyDocument refuse(const TextFault& fault) const {
    StrategyDocument document;
    document.problems.push_back({places_.at(fault.offset), "", fault.message});
    return document;
  }

  // What is inside a field of one version only, the other parser skips.
  std::optional<TextFault> first_fault() const {
    if (!two_.fault || !three_.fault) return two_.fault ? two_.fault : three_.fault;
    return three_.fault->offset <= two_.fault->offset ? three_.fault : two_.fault;
  }

  // Fields that one schema does not have: those of the other schema, and those of neither.
  void sort_unknown(const ParsedText& parsed, const Schema& other,
                    std::map<std::size_t, std::string>& of_other) {
    for (const UnknownField& field : parsed.unknown) {
      if (has_field(other, field))
        of_other.emplace(field.offset, field.name);
      else if (reported_.insert(field.offset).second)
        document_.problems.push_back({places_.at(field.offset), field.name, describe_unknown(field)});
    }
  }

  void report_mixture() {
    if (only_two_.empty() || only_three_.empty()) return;
    const auto& [offset_two, two] = *only_two_.begin();
    const auto& [offset_three, three] = *only_three_.begin();
    const TextPosition there = places_.at(offset_three);
    document_.problems.push_back(
        {places_.at(offset_two), two,
         fmt::format(
             "found a field of PaddlePaddle 2.0, and {} of PaddlePaddle 3 in line {}, wanted fields of one version",
             three, there.line)});
  }

  std::string_view text_;
  Places places_;
  ParsedText two_, three_;
  std::map<std::size_t, std::string> only_two_,
      only_three_;  // fields that only this version has, by their offsets
  std::set<std::size_t> reported_;
  StrategyDocument document_;
};

}  // namespace

StrategyDocument read_strategy(std::string_view text) { return Reading(text).read(); }

}  // namespace fleetrun::prototxt
