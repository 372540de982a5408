// The parts of a pod that the manifests for Kubernetes share.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "launch/render/batch_run.h"

namespace fleetrun::launch {

constexpr int kPodPort = 6069;  // a pod has its own address, so the port is free

// The template of a pod, indented by `indent` spaces: fleetrun as the node `node_rank` (an expression of Kubernetes), which meets the
// others at the pod `first`. `replaced`: the names of all pods, if a pod that is lost is replaced while the others go on. `extra` are more lines of the pod's spec, such as initContainers; `container` is the container's name.
struct PodSpec {
  std::string container;
  std::string node_rank;
  std::string first;
  std::vector<std::string> replaced = {};
  std::string extra;
};
std::string pod_template(const BatchRun& run, const PodSpec& spec, std::size_t indent);

// Lines for the spec of a pod of a run on several nodes. fleetrun ends with code 2 when the name of the first node does not resolve, so the
// pods wait for it.
std::string wait_for_first_pod(const BatchRun& run, const std::string& first);

// A rule of a podFailurePolicy: the job fails at exit codes of failures that another attempt would repeat.
std::string rule_to_fail();

// Every line that is not empty, moved to the right.
std::string indented(const std::string& text, std::size_t spaces);

// For the header of a manifest: how to make the Secret with the key; "" where no key is needed.
std::string how_to_make_secret(const BatchRun& run);

std::string how_to_see_ranks(const BatchRun& run);  // "fleetrun ps", with the log folder where it needs one

// "activeDeadlineSeconds: 3600" or "".
std::string deadline_line(const BatchRun& run);

std::string image_of(const BatchRun& run);  // as a YAML scalar

}  // namespace fleetrun::launch
