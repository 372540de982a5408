// An examination for people, at most 80 columns wide, and for programs.
#pragma once
#include <string>
#include <vector>

#include "launch/doctor/judge.h"

namespace fleetrun::launch {

std::string doctor_table(const Examination& examination, const std::vector<DoctorFinding>& findings);
std::string doctor_json(const Examination& examination, const std::vector<DoctorFinding>& findings);

std::vector<std::string> wrap_words(const std::string& text, std::size_t width);

}  // namespace fleetrun::launch
