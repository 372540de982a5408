// A Job of Volcano (volcano-sh/apis, pkg/apis/batch/v1alpha1/job.go; volcano-sh/volcano, docs/user-guide/how_to_use_svc_plugin.md and
// how_to_use_job_policy.md).
#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/render/batch_text.h"
#include "launch/render/pod_parts.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kVolcanoJob = R"(<<header>>

apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: <<name>>
spec:
  schedulerName: volcano
<<queue>>
  # Volcano starts all pods or none.
  minAvailable: <<nodes>>
  plugins:
    # Gives each pod its number, VC_TASK_INDEX.
    env: []
    # Gives each pod a name. The pods look for each other before they are ready.
    svc: ["--publish-not-ready-addresses=true"]
  maxRetry: 3
  policies:
    # Of the exit codes of fleetrun only 75 asks for another attempt (docs/exit-codes.md).
    - exitCode: 75
      action: RestartJob
    - event: PodEvicted
      action: RestartJob
  tasks:
    - name: node
      replicas: <<nodes>>
      template:
<<template>>
)";

constexpr std::string_view kHowToApplyVolcano =
    "Start it:            kubectl apply -f {0}.volcano.yaml\n"
    "See the output:      kubectl logs -f -l volcano.sh/job-name={0} --prefix\n"
    "See the ranks:       kubectl exec {0}-node-0 -- {1}\n"
    "Stop and remove it:  kubectl delete -f {0}.volcano.yaml";

}  // namespace

std::string write_volcano(const BatchRun& run) {
  const std::string first = fmt::format("{0}-node-0.{0}", run.name);
  const PodSpec pod = {
      .container = "fleetrun",
      .node_rank = "$(VC_TASK_INDEX)",
      .first = first,
      .extra = "restartPolicy: Never\n" + (run.nodes == 1 ? "" : wait_for_first_pod(run, first))};
  const std::string how =
      how_to_make_secret(run) + fmt::format(kHowToApplyVolcano, run.name, how_to_see_ranks(run));
  return fill(
      kVolcanoJob,
      {{"header",
        file_header(run, fmt::format("Volcano Job for a run on {}.", plural(run.nodes, "node")), how)},
       {"name", run.name},
       {"queue", run.own.queue.empty() ? "" : "  queue: " + quote_yaml(run.own.queue) + "\n"},
       {"nodes", std::to_string(run.nodes)},
       {"template", pod_template(run, pod, 8)}});
}

}  // namespace fleetrun::launch
