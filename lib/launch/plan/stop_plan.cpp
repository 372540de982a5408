#include "launch/plan/stop_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json/json_reader.h"
#include "launch/cli/flags/redact_command.h"
#include "launch/cli/flags/shell_words.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kResumeKey = "checkpoint.resume=";

// What rank 0 wrote when it was stopped.
struct StoppedTraining {
  bool saved = false;
  std::string resume;  // the value of checkpoint.resume that goes on; "": the present one does
};

StoppedTraining read_stopped_training(const std::string& train) {
  const JsonDocument document = read_json(train);
  const JsonValue* const stopped = document.root.find("stopped", JsonValue::Kind::boolean);
  const JsonValue* const resume = document.root.find("resume", JsonValue::Kind::text);
  return {.saved = stopped != nullptr, .resume = resume != nullptr ? resume->text : ""};
}

std::vector<std::string> command_with(const StopPlan& plan, const std::string& resume) {
  std::vector<std::string> words = plan.command;
  for (const std::string& setting : plan.settings)
    if (resume.empty() || !setting.starts_with(kResumeKey)) words.push_back(setting);
  if (!resume.empty()) words.push_back(fmt::format("{}{}", kResumeKey, resume));
  return words;
}

}  // namespace

StopPlan plan_stop(const job::CheckpointSpec& checkpoint, const StopFacts& facts) {
  const bool has_checkpoints = checkpoint.dir.has_value();
  const bool from_path = checkpoint.resume != "auto" && checkpoint.resume != "never";
  return {.of_job = true,
          .has_checkpoints = has_checkpoints,
          .resumes = from_path || (has_checkpoints && checkpoint.resume == "auto"),
          .begins_elsewhere = checkpoint.resume != "auto",
          .saves_in_logs = !has_checkpoints && facts.on_terminal && facts.one_node,
          .command = {},
          .settings = {}};
}

void set_command(const std::string& program, const std::vector<std::string>& words, std::size_t settings,
                 StopPlan& plan) {
  const auto first_setting = words.end() - static_cast<std::ptrdiff_t>(std::min(settings, words.size()));
  plan.command = {program};
  plan.command.insert(plan.command.end(), words.begin(), first_setting);
  plan.settings = {first_setting, words.end()};
}

std::string warn_of_stop(const StopPlan& plan) {
  if (!plan.of_job || plan.has_checkpoints || plan.saves_in_logs) return "";
  return "checkpoint.dir is not set, so a stop will lose the training";
}

std::string describe_going_on(const StopPlan& plan, bool was_stopped, const std::string& train, Saved saved) {
  const bool has_own_checkpoint = saved == Saved::own_checkpoint;
  StoppedTraining training = read_stopped_training(train);
  if (has_own_checkpoint && plan.has_checkpoints && plan.begins_elsewhere && training.resume.empty())
    training = {.saved = training.saved, .resume = "auto"};
  if (!plan.of_job || plan.command.empty() || (!was_stopped && !training.saved)) return "";
  if (saved == Saved::elsewhere) return "";
  if (saved == Saved::weights)
    return "fleetrun: the training was complete; the line \"weights: ...\" of rank 0 names its weights\n";
  if (has_own_checkpoint && plan.saves_in_logs && !training.saved)
    return "fleetrun: a checkpoint was saved, but fleetrun finds no train.json; the line \"checkpoint: ...\" of rank 0 names the checkpoint\n";
  std::string what = "to go on";
  if (!training.saved && training.resume.empty() && (!plan.resumes || saved == Saved::nothing))
    what = plan.has_checkpoints && saved != Saved::nothing ? "to start again"
                                                           : "nothing was saved; to start again";
  const std::vector<std::string> words = command_with(plan, training.resume);
  const std::vector<std::string> shown = redact_command(words);
  return fmt::format("fleetrun: {}, run{}\n    {}\n", what,
                     shown == words ? "" : " this with your secrets in place of ***", quote_words(shown));
}

}  // namespace fleetrun::launch
