// Credentials of MUNGE, which many clusters run for Slurm: whoever decodes one learns its text and its user. Only processes of that user can, on
// hosts with the same key of MUNGE. libmunge is opened at the first use, so fleetrun does not need it.
#pragma once
#include <string>

namespace fleetrun::launch {

struct MungeAnswer {
  std::string text;
  std::string problem;  // "": none
};

MungeAnswer make_credential(const std::string& secret);  // for processes of our user
// The secret in a credential that a process of our user has made.
MungeAnswer open_credential(const std::string& credential);

}  // namespace fleetrun::launch
