"""Checks manifests: those of Kubernetes itself with kubernetes-validate, custom resources against the schemas beside this file.

usage: check_manifests.py MANIFEST...     prints every mistake; ends with 1 if there is one
       check_manifests.py --args MANIFEST  prints the arguments of the first container as a JSON list, as Kubernetes passes them
"""
import json
import re
import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

SCHEMAS = {
    "kubeflow.org/v1": "pytorchjob.schema.json",
    "jobset.x-k8s.io/v1alpha2": "jobset.schema.json",
    "batch.volcano.sh/v1alpha1": "volcano.schema.json",
}


def pod_specs(value):
    """Every pod template below a value, as a Pod. The template of a job contains another template, that of its pods."""
    if isinstance(value, dict):
        spec = value["template"].get("spec") if isinstance(value.get("template"), dict) else None
        if spec is not None and "template" not in spec:
            yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    for part in parts:
        yield from pod_specs(part)


def jobs(document):
    """Every replicated job of a JobSet, as a Job."""
    for job in document["spec"].get("replicatedJobs", []):
        yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]}, "spec": job["template"]["spec"]}


def mistakes(document):
    try:
        if document["apiVersion"] in SCHEMAS:
            schema = json.loads((Path(__file__).parent / SCHEMAS[document["apiVersion"]]).read_text())
            jsonschema.validate(document, schema)
        else:
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        for part in [*jobs(document), *pod_specs(document)]:
            kubernetes_validate.validate(part, kubernetes_validate.latest_version(), strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
        yield f"{document['kind']}: {error.message} at {'/'.join(map(str, error.path))}"


def expanded(word):
    """A word of `args` as a container gets it; $(NAME) stays as it is."""
    return re.sub(r"\$\$", "$", word)


def main(words):
    if words[0] == "--args":
        pods = [pod for document in yaml.safe_load_all(Path(words[1]).read_text()) for pod in pod_specs(document)]
        print(json.dumps([expanded(word) for word in pods[0]["spec"]["containers"][0]["args"]]))
        return 0
    found = [f"{path}: {mistake}" for path in words for document in yaml.safe_load_all(Path(path).read_text())
             for mistake in mistakes(document)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
