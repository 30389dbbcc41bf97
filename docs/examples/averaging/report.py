"""Reports what was written to the volume of a MergeJob, in its ConfigMap: see docs/merging.md. Copy this file.

    report.append("ctr-merge-store", "increments", "step-000100.safetensors")    # a training, after a checkpoint is whole
    report.append(env["TIDELINE_STORE_REPORT"], "full", env["TIDELINE_RUN_ID"])  # a merge, last of all

The pod's ServiceAccount needs the rights to get and patch that ConfigMap, and nothing else.
"""

import json
import os
import ssl
import time
import urllib.request

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"   # where Kubernetes mounts the pod's token
KEEP = 1000                                                 # lines of a key: the oldest go first


def append(configmap, key, name, keep=KEEP):
    """Adds a line to a key, or dates it anew where the name is there already, as after a restart."""
    lines = {}
    for line in (call("GET", configmap).get("data") or {}).get(key, "").splitlines():
        if line.strip():
            old, written = line.split()
            lines[old] = written
    lines[name] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    kept = sorted(lines.items())[-keep:]                    # names rise from line to line
    text = "".join(f"{name} {written}\n" for name, written in kept)
    call("PATCH", configmap, {"data": {key: text}})         # the other key stays as it is


def call(method, configmap, body=None):
    with open(f"{ACCOUNT}/namespace") as namespace, open(f"{ACCOUNT}/token") as token:
        url = "https://{}:{}/api/v1/namespaces/{}/configmaps/{}".format(
            os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"], namespace.read().strip(), configmap)
        headers = {"Authorization": "Bearer " + token.read().strip(), "Content-Type": "application/merge-patch+json"}
    request = urllib.request.Request(url, method=method, headers=headers, data=json.dumps(body).encode() if body else None)
    context = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")
    for left in reversed(range(5)):
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return json.load(answer)
        except OSError as error:
            wrong = 400 <= getattr(error, "code", 500) < 500 and error.code != 429
            if wrong or left == 0:                          # no right, or no such ConfigMap: to ask again helps nobody
                raise
            time.sleep(2)
