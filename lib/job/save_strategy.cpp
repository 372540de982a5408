#include "job/save_strategy.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "job/read/draft.h"
#include "job/read/json_tree.h"
#include "job/strategy_files/load_prototxt.h"
#include "job/strategy_files/strategy_fields.h"
#include "job/strategy_files/strategy_file.h"

namespace fleetrun::job {
namespace {

constexpr std::string_view kBelowStrategy = "strategy.";

std::string section_of(const std::string& path) { return path.substr(0, path.find('.')); }

// The fields of a job, and the key that each comes from.
class JobFields {
 public:
  JobFields(const ParsedJob& job, PaddleVersion version, bool all)
      : version_(version), root_(JsonValue::object()) {
    if (job.spec.strategy_file) root_ = read_strategy_file(*job.spec.strategy_file).root;
    for (const std::string& field : job.turned_off) put_at(root_, field, false);
    for (const KeyValue& value : job.values) {
      const std::string section =
          section_of(value.key.substr(std::min(value.key.size(), kBelowStrategy.size())));
      if (value.key.starts_with(kBelowStrategy) && value.is_set &&
          (section == "build_strategy" || section == "execution_strategy"))
        in_full_.insert(section);
    }
    for (const KeyValue& value : job.values)
      if (value.key.starts_with(kBelowStrategy)) add(value, all);
  }

  SavedStrategy save() const {
    const StrategyText written = prototxt_plugin().write(root_, version_, {in_full_.begin(), in_full_.end()});
    SavedStrategy saved = {written.text, {}};
    for (const JsonProblem& problem : written.problems) {
      const auto source = sources_.find(problem.path.substr(0, problem.path.find('[')));
      if (source != sources_.end() && source->second->is_set)
        saved.left_out.push_back(
            fmt::format("{}: {}: {}", source->second->origin, source->second->key, problem.message));
    }
    return saved;
  }

 private:
  void add(const KeyValue& value, bool all) {
    const JsonValue setting = read_json(value.value).root;
    const std::string key = value.key.substr(kBelowStrategy.size());
    const FieldOfKey field = field_of_key(key, setting, version_);
    const bool completes = in_full_.count(section_of(key)) != 0 && section_of(field.path) == section_of(key);
    if (setting.is(JsonValue::Kind::null) || !(value.is_set || completes || all)) return;
    put_at(root_, field.path, field.value);
    sources_[field.path] = &value;
  }

  const PaddleVersion version_;
  JsonValue root_;
  std::set<std::string> in_full_;
  std::map<std::string, const KeyValue*> sources_;
};

}  // namespace

SavedStrategy save_strategy_of(const ParsedJob& job, PaddleVersion version, bool all) {
  return JobFields(job, version, all).save();
}

SavedStrategy save_strategy_again(const StrategyDocument& document, const std::string& file,
                                  PaddleVersion version) {
  const StrategyText written = prototxt_plugin().write(document.root, version, {});
  SavedStrategy saved = {written.text, {}};
  for (const JsonProblem& problem : written.problems)
    saved.left_out.push_back(
        fmt::format("{}: {}: {}", describe_place(file, problem.position), problem.path, problem.message));
  return saved;
}

bool is_saved_strategy(std::string_view text) {
  const StrategyDocument document = prototxt_plugin().read(text);
  const auto is_written_as = [&](PaddleVersion version) {
    return prototxt_plugin().write(document.root, version, {}).text == text;
  };
  return document.problems.empty() &&
         (is_written_as(PaddleVersion::paddle_2) || is_written_as(PaddleVersion::paddle_3));
}

}  // namespace fleetrun::job
