// A JobSet of Kubernetes (kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go; jobset.sigs.k8s.io/docs).
#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/render/batch_text.h"
#include "launch/render/pod_parts.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kJobSet = R"(<<header>>

apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: <<name>>
spec:
<<network>>
  failurePolicy:
    # When a pod fails, JobSet makes all pods again, up to 3 times.
    maxRestarts: 3
    rules:
      # Another attempt would end in the same way.
      - name: would_repeat
        action: FailJobSet
        onJobFailureReasons: [PodFailurePolicy<<deadline_reason>>]
  replicatedJobs:
    - name: nodes
      replicas: 1
      template:
        spec:
          # Each pod is one node and knows its number, JOB_COMPLETION_INDEX.
          completionMode: Indexed
          completions: <<nodes>>
          parallelism: <<nodes>>
<<deadline>>
          # The first pod that fails makes JobSet begin again.
          backoffLimit: 0
          podFailurePolicy:
            rules:
<<fail_job>>
          template:
<<template>>
)";

constexpr std::string_view kNetwork = R"(  network:
    # Gives each pod a name; <<first>> is the first one.
    enableDNSHostnames: true
    # The pods look for each other before they are ready.
    publishNotReadyAddresses: true
)";

constexpr std::string_view kHowToApplyJobSet =
    "Start it:            kubectl apply -f {0}.jobset.yaml\n"
    "See the output:      kubectl logs -f -l jobset.sigs.k8s.io/jobset-name={0} --prefix\n"
    "See the ranks:       kubectl exec job/{0}-nodes-0 -- {1}\n"
    "Stop and remove it:  kubectl delete -f {0}.jobset.yaml";

}  // namespace

std::string write_jobset(const BatchRun& run) {
  const std::string first = fmt::format("{0}-nodes-0-0.{0}", run.name);
  const PodSpec pod = {
      .container = "fleetrun",
      .node_rank = "$(JOB_COMPLETION_INDEX)",
      .first = first,
      .extra = "restartPolicy: Never\n" + (run.nodes == 1 ? "" : wait_for_first_pod(run, first))};
  const std::string how =
      how_to_make_secret(run) + fmt::format(kHowToApplyJobSet, run.name, how_to_see_ranks(run));
  return fill(
      kJobSet,
      {{"header", file_header(run, fmt::format("JobSet for a run on {}.", plural(run.nodes, "node")), how)},
       {"name", run.name},
       {"network", run.nodes == 1 ? "" : fill(kNetwork, {{"first", first}})},
       {"deadline_reason", run.timeout ? ", DeadlineExceeded" : ""},
       {"nodes", std::to_string(run.nodes)},
       {"deadline", indented(deadline_line(run), 10)},
       {"fail_job", indented(rule_to_fail(), 14)},
       {"template", pod_template(run, pod, 12)}});
}

}  // namespace fleetrun::launch
