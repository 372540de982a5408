// A PyTorchJob of Kubeflow's training operator, v1 (kubeflow/training-operator, docs/api/kubeflow.org_v1_generated.asciidoc).
#include <fmt/format.h>

#include "base/text/plural.h"
#include "launch/render/batch_text.h"
#include "launch/render/pod_parts.h"
#include "launch/render/shell_parts.h"
#include "launch/render/writers.h"

namespace fleetrun::launch {
namespace {

constexpr std::string_view kPyTorchJob = R"(<<header>>

apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: <<name>>
spec:
  runPolicy:
<<deadline>>
    backoffLimit: 3
  # The operator gives each pod its number in RANK and makes the service <<name>>-master-0.
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      # The operator starts a pod again after exit codes of 128 and more, such as 143 when the cluster removed the pod.
      restartPolicy: ExitCode
      template:
<<template>>
<<workers>>
)";

constexpr std::string_view kWorkers = R"(    Worker:
      replicas: <<replicas>>
      restartPolicy: ExitCode
      template:
<<template>>
)";

constexpr std::string_view kHowToApplyJob =
    "Start it:            kubectl apply -f {0}.kubeflow.yaml\n"
    "See the output:      kubectl logs -f -l training.kubeflow.org/job-name={0} --prefix\n"
    "See the ranks:       kubectl exec {0}-master-0 -- {1}\n"
    "Stop and remove it:  kubectl delete -f {0}.kubeflow.yaml";

}  // namespace

std::string write_kubeflow(const BatchRun& run) {
  // The operator looks for a container of this name.
  std::vector<std::string> names = {run.name + "-master-0"};
  for (int worker = 0; worker < run.nodes - 1; ++worker)
    names.push_back(fmt::format("{}-worker-{}", run.name, worker));
  const PodSpec pod = {
      .container = "pytorch", .node_rank = "$(RANK)", .first = names.front(), .replaced = names, .extra = ""};
  const std::string pods = pod_template(run, pod, 8);
  const std::string workers =
      run.nodes == 1 ? "" : fill(kWorkers, {{"replicas", std::to_string(run.nodes - 1)}, {"template", pods}});
  const std::string how =
      how_to_make_secret(run) + fmt::format(kHowToApplyJob, run.name, how_to_see_ranks(run));
  return fill(
      kPyTorchJob,
      {{"header",
        file_header(run, fmt::format("Kubeflow PyTorchJob for a run on {}.", plural(run.nodes, "node")),
                    how)},
       {"name", run.name},
       {"deadline", indented(deadline_line(run), 4)},
       {"template", pods},
       {"workers", workers}});
}

}  // namespace fleetrun::launch
