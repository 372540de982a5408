#include "runtime/data/formats/class_names.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error/error.h"
#include "base/text/plural.h"
#include "base/text/printable.h"

namespace fleetrun::runtime {
namespace {

// The numbers at the end of the names, if the text in front of them is the same in all names. Numbers behind such a text are labels only
// if they are small: n01440764, the name of a class of ImageNet, is none.
std::optional<std::vector<std::size_t>> numbers_in(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  const std::string prefix = names.front().substr(0, names.front().find_last_not_of("0123456789") + 1);
  std::vector<std::size_t> numbers;
  numbers.reserve(names.size());
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) return std::nullopt;
    std::size_t number = 0;
    const char* const last = name.data() + name.size();
    const auto [end, problem] = std::from_chars(name.data() + prefix.size(), last, number);
    if (problem != std::errc() || end != last) return std::nullopt;
    if (!prefix.empty() && number > names.size()) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

// Sorted as text, 10 stands before 2.
bool are_in_order(const std::vector<std::size_t>& numbers) { return std::ranges::is_sorted(numbers); }

bool are_labels(const std::vector<std::size_t>& numbers) {
  return are_in_order(numbers) && !numbers.empty() && numbers.front() == 0 &&
         numbers.back() == numbers.size() - 1;
}

// The first label that is not the number in its name.
std::size_t first_other_number(const std::vector<std::size_t>& numbers) {
  std::size_t label = 0;
  while (numbers[label] == label) ++label;
  return label;
}

std::string first_and_last(const std::vector<std::string>& names) {
  std::string first = fmt::format("label 0 is {}", printable(names.front()));
  if (names.size() == 1) return first;
  return fmt::format("{} and label {} is {}", first, names.size() - 1, printable(names.back()));
}

}  // namespace

LabelNote compare_names_and_numbers(const NamedClasses& model, const NamedClasses& set) {
  if (model.names.empty() == set.names.empty()) return {};
  const std::vector<std::string>& names = model.names.empty() ? set.names : model.names;
  const std::string who =
      model.names.empty() ? fmt::format("{} has names of classes, and {} was trained on numbers as labels",
                                        set.who, model.who)
                          : fmt::format("{} was trained on names of classes, and {} has numbers as labels",
                                        model.who, set.who);
  const std::optional<std::vector<std::size_t>> numbers = numbers_in(names);
  if (numbers && are_labels(*numbers)) return {};
  if (numbers && !are_in_order(*numbers)) {
    const std::size_t label = first_other_number(*numbers);
    return {fmt::format("fleetrun sorts class names as text, so {} has label {}; {}", printable(names[label]),
                        label, who),
            true};
  }
  return {fmt::format("{}: fleetrun takes the labels in the order of the names, so {}", who,
                      first_and_last(names))};
}

std::string compare_labels(const DataSet& test, std::string_view name, const std::vector<std::string>& known,
                           int classes) {
  const std::vector<std::string>& found = test.class_names();
  if (known.empty() && !found.empty() && test.classes() < classes)
    throw Error(ErrorKind::data,
                fmt::format("{} has {}, the model {} without names: the labels that belong to "
                            "the names are not known",
                            name, plural(test.classes(), "class", "es"), classes),
                "an image_list gives each image its label, and labels count from 0");
  const LabelNote note = compare_names_and_numbers({"the model", known}, {std::string(name), found});
  return note.text.empty() ? "" : "warning: " + note.text;
}

}  // namespace fleetrun::runtime
