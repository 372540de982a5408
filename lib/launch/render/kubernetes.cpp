// An Indexed Job of Kubernetes with a headless Service (kubernetes.io/docs/tasks/job/job-with-pod-to-pod-communication and
// kubernetes.io/docs/tasks/job/pod-failure-policy).
#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/render/batch_text.h"
#include "launch/render/pod_parts.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr int kMostRetries = 3;

constexpr std::string_view kService =
    R"(# A headless service gives each pod a name; <<name>>-0.<<name>> is the first one.
apiVersion: v1
kind: Service
metadata:
  name: <<name>>
spec:
  clusterIP: None
  # The pods look for each other before they are ready.
  publishNotReadyAddresses: true
  selector:
    job-name: <<name>>
---
)";

constexpr std::string_view kJob = R"(<<header>>

<<service>>
apiVersion: batch/v1
kind: Job
metadata:
  name: <<name>>
spec:
  # Each pod is one node and knows its number, JOB_COMPLETION_INDEX.
  completionMode: Indexed
  completions: <<nodes>>
  parallelism: <<nodes>>
<<deadline>>
  # All pods of a run fail together, so this allows <<retries>> more attempts.
  backoffLimit: <<backoff>>
  podFailurePolicy:
    rules:
      # The cluster removed the pod; this does not count as a failure.
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
            status: "True"
<<fail_job>>
  template:
<<template>>
)";

constexpr std::string_view kHowToApply =
    "Start it:            kubectl apply -f {0}.k8s.yaml\n"
    "See the output:      kubectl logs -f -l job-name={0} --prefix\n"
    "See the ranks:       kubectl exec job/{0} -- {1}\n"
    "Stop and remove it:  kubectl delete -f {0}.k8s.yaml";

std::string extra_lines(const BatchRun& run, const std::string& first) {
  if (run.nodes == 1) return "restartPolicy: Never\n";
  return fmt::format("restartPolicy: Never\n# The pods' names belong to this service.\nsubdomain: {}\n{}",
                     run.name, wait_for_first_pod(run, first));
}

std::vector<std::string> names_of_pods(const BatchRun& run) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(run.nodes));
  for (int node = 0; node < run.nodes; ++node) names.push_back(fmt::format("{0}-{1}.{0}", run.name, node));
  return names;
}

}  // namespace

std::string write_kubernetes(const BatchRun& run) {
  const std::string first = names_of_pods(run).front();
  const PodSpec pod = {.container = "fleetrun",
                       .node_rank = "$(JOB_COMPLETION_INDEX)",
                       .first = first,
                       .replaced = names_of_pods(run),
                       .extra = extra_lines(run, first)};
  const std::string how = how_to_make_secret(run) + fmt::format(kHowToApply, run.name, how_to_see_ranks(run));
  return fill(
      kJob, {{"header",
              file_header(run, fmt::format("Kubernetes manifest for a run on {}.", plural(run.nodes, "node")),
                          how)},
             {"service", run.nodes == 1 ? "" : fill(kService, {{"name", run.name}})},
             {"name", run.name},
             {"nodes", std::to_string(run.nodes)},
             {"deadline", indented(deadline_line(run), 2)},
             {"retries", std::to_string(kMostRetries)},
             {"backoff", std::to_string(kMostRetries * run.nodes)},
             {"fail_job", indented(rule_to_fail(), 6)},
             {"template", pod_template(run, pod, 4)}});
}

}  // namespace fleetrun::launch
