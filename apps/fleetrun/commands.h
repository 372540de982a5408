// What the subcommands do; subcommands.cpp lists them. Each prints to stdout what the user asked for and returns the exit
// code. Throws Error.
#pragma once
#include <array>

#include "base/system/environment.h"
#include "launch/cli/flags/read_flags.h"
#include "launch/starters/agent.h"

namespace fleetrun {

using launch::FoundFlags;

inline constexpr const char* kDoctorName = "doctor";
inline constexpr std::array kExportNames = {
    "torchvision", "paddle"};  // what --names takes (checkpoint/weight_names.h); first the default

int run_config_command(const FoundFlags& found, const Environment& environment);
int run_doctor_command(const FoundFlags& found, const Environment& environment);
int run_doctor_agent(const FoundFlags& found, const Environment& environment, const launch::Agent& agent);
int run_eval_command(const FoundFlags& found, const Environment& environment);
int run_export_command(const FoundFlags& found, const Environment& environment);
int run_bench_command(const FoundFlags& found, const Environment& environment);
int run_logs_command(const FoundFlags& found, const Environment& environment);
int run_ps_command(const FoundFlags& found, const Environment& environment);
int run_stop_command(const FoundFlags& found, const Environment& environment);
int run_signal_command(const FoundFlags& found, const Environment& environment);
int run_render_command(const FoundFlags& found, const Environment& environment);
int run_strategy_command(const FoundFlags& found, const Environment& environment);
int run_plan_command(const FoundFlags& found, const Environment& environment);
int run_predict_command(const FoundFlags& found, const Environment& environment);
int run_tune_command(const FoundFlags& found, const Environment& environment);
int run_watch_command(const FoundFlags& found, const Environment& environment);
int run_plot_command(const FoundFlags& found, const Environment& environment);
int run_completion_command(const FoundFlags& found, const Environment& environment);
int run_man_command(const FoundFlags& found, const Environment& environment);

}  // namespace fleetrun
