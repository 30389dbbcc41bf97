"""Submits trainings to Tideline and waits for them, with the standard library alone: see docs/submit.md. Copy this file.

    import tideline

    job = tideline.Job("ctr", image="registry.example/ads/ctr:1.4", script="train.py", workers=(2, 8), gpus=1)
    run = tideline.submit(job, namespace="ads")
    run.wait(tell=print)
"""

import dataclasses
import json
import os
import pathlib
import ssl
import subprocess
import time
import urllib.error
import urllib.request

API_VERSION = "tideline.io/v1beta1"
LARGEST_SCRIPT = 512 << 10
MOST_FAILURES = 60
# What kubectl says of troubles that pass.
PASSING = ("(InternalError)", "(ServiceUnavailable)", "(Timeout)", "(ServerTimeout)", "(TooManyRequests)", "connection to the server",
           "connect to the server", "EOF", "connection reset", "timed out")


class TidelineError(Exception):
    """What went wrong, in words for people."""


class Refused(TidelineError):
    """The API server refused a request: the message is its own."""


class NotFound(Refused):
    """There is no such object."""


class Unreachable(TidelineError):
    """No answer came, or the server was in trouble: another try may help."""


class NotSucceeded(TidelineError):
    """The training failed or was deleted. `status` is the last one that was seen."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


class Kubectl:
    """Requests with the rights of whoever runs kubectl; command is the program with flags, such as ("kubectl", "--context=x")."""

    def __init__(self, command=("kubectl",)):
        self.command = list(command)

    def default_namespace(self):
        return self._run(["config", "view", "--minify", "-o", "jsonpath={..namespace}"]).strip() or "default"

    def request(self, method, path, body=None):
        verb = {"GET": "get", "POST": "create", "DELETE": "delete"}[method]
        arguments = [verb, "--raw", path] + (["-f", "-"] if body is not None else [])
        return self._run(arguments, None if body is None else json.dumps(body))

    def _run(self, arguments, content=None):
        try:
            done = subprocess.run(self.command + ["--request-timeout=30s", *arguments], input=content, capture_output=True,
                                  encoding="utf-8", timeout=60, check=False)
        except FileNotFoundError as e:
            raise TidelineError(f"there is no program {self.command[0]}: install kubectl") from e
        except subprocess.TimeoutExpired as e:
            raise Unreachable(f"{self.command[0]} took longer than {e.timeout:.0f} s") from e
        said = done.stderr.strip()
        if done.returncode == 0:
            return done.stdout
        if "(NotFound)" in said:
            raise NotFound(said)
        raise (Unreachable if any(words in said for words in PASSING) else Refused)(said)


class InCluster:
    """Requests from a pod, with the rights of its ServiceAccount."""

    def __init__(self, folder="/var/run/secrets/kubernetes.io/serviceaccount"):
        self.folder = pathlib.Path(folder)
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        self.server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self.tls = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))

    def default_namespace(self):
        return (self.folder / "namespace").read_text().strip()

    def request(self, method, path, body=None):
        # The kubelet writes a new token before the old one expires.
        headers = {"Authorization": "Bearer " + (self.folder / "token").read_text().strip(), "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.tls) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as e:
            said = e.read().decode(errors="replace")
            try:
                said = json.loads(said)["message"]
            except (ValueError, KeyError, TypeError):
                pass
            if e.code == 404:
                raise NotFound(said) from e
            raise (Unreachable if e.code >= 500 or e.code == 429 else Refused)(said) from e
        except OSError as e:
            raise Unreachable(f"{self.server}: {e}") from e


def connect():
    """The pod's own account within a cluster, and kubectl elsewhere."""
    return InCluster() if "KUBERNETES_SERVICE_HOST" in os.environ else Kubectl()


@dataclasses.dataclass
class Job:
    """A training by a script, as `tideline submit` makes one, or by the command of its image.

    workers is one number or (least, most). cpu and memory are what each worker needs, as Kubernetes writes it: "4", "16Gi".
    data has the version of each data set of the profile that the workers read, by its name.
    """

    name: str
    image: str
    script: str = ""
    command: tuple = ()
    arguments: tuple = ()
    workers: object = 1
    gpus: int = 0
    device: str = "nvidia.com/gpu"
    cpu: str = ""
    memory: str = ""
    env: dict = dataclasses.field(default_factory=dict)
    tier: str = ""
    task: str = ""
    data: dict = dataclasses.field(default_factory=dict)

    def objects(self, namespace):
        """The ElasticTrainingJob, and the ConfigMap with its script; None in its place without one."""
        if bool(self.script) == bool(self.command):
            raise TidelineError("a job has either a script or a command")
        least, most = self.workers if isinstance(self.workers, (tuple, list)) else (self.workers, self.workers)
        scripts, command, env = None, list(self.command), []
        if self.script:
            path = pathlib.Path(self.script)
            runner = {".py": "torchrun", ".sh": "sh"}.get(path.suffix)
            if runner is None:
                raise TidelineError(f"script {self.script}: its name must end in .py, which torchrun runs, or in .sh, which sh runs")
            command = [runner, "/script/" + path.name]
            if path.suffix == ".py":
                env.append({"name": "PYTHONUNBUFFERED", "value": "1"})
            scripts = {
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": self.name + "-script"},
                "immutable": True, "data": {path.name: _read(path)},
            }
        command += [_literal(a) for a in self.arguments]
        env += [{"name": name, "value": _literal(value)} for name, value in self.env.items()]
        container = {"name": "trainer", "image": self.image, "command": command, "resources": self._resources()}
        if env:
            container["env"] = env
        pod = {"containers": [container]}
        if scripts:
            container["volumeMounts"] = [{"name": "script", "mountPath": "/script", "readOnly": True}]
            pod["volumes"] = [{"name": "script", "configMap": {"name": scripts["metadata"]["name"]}}]
        spec = {"minReplicas": least, "maxReplicas": most, "template": {"spec": pod}}
        spec |= {key: value for key, value in (("tier", self.tier), ("task", self.task)) if value}
        if self.data:
            spec["dataSets"] = [{"name": name, "version": version} for name, version in self.data.items()]
        job = {"apiVersion": API_VERSION, "kind": "ElasticTrainingJob", "metadata": {"namespace": namespace, "name": self.name},
               "spec": spec}
        return job, scripts

    def _resources(self):
        given = {self.device: str(self.gpus) if self.gpus else "", "cpu": self.cpu, "memory": self.memory}
        requests = {name: str(amount) for name, amount in given.items() if amount}
        # Processors may be used beyond what is asked for; devices and memory may not.
        limits = {name: amount for name, amount in requests.items() if name != "cpu"}
        return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


def _literal(value):
    """Kubernetes would put a variable in place of $(NAME)."""
    return str(value).replace("$(", "$$(")


def _read(path):
    try:
        if path.exists() and not path.is_file():  # Reading a device or a pipe might not end.
            raise TidelineError(f"script {path}: it is no file")
        with path.open("rb") as script:
            content = script.read(LARGEST_SCRIPT + 1)
            size = max(len(content), path.stat().st_size)
    except OSError as e:
        raise TidelineError(f"script {path}: {e.strerror}") from e
    if not 0 < size <= LARGEST_SCRIPT:
        raise TidelineError(f"script {path}: it has {size} bytes, and may have 1 to {LARGEST_SCRIPT}. "
                            "Put it, or what it carries, into the image")
    try:
        return content.decode()
    except UnicodeDecodeError as e:
        raise TidelineError(f"script {path}: it is no text") from e


def submit(job, namespace=None, api=None):
    """Creates a Job, or the manifest of an ElasticTrainingJob as a dict, and returns its Run.

    The API server judges everything first without keeping it, so that a refusal leaves nothing behind.
    """
    api = api or connect()
    namespace = namespace or api.default_namespace()
    manifest, scripts = job.objects(namespace) if isinstance(job, Job) else (job, None)
    jobs, maps = _path(namespace), f"/api/v1/namespaces/{namespace}/configmaps"
    for path, thing in ((jobs, manifest), (maps, scripts)):
        if thing:
            api.request("POST", path + "?dryRun=All", thing)
    made = json.loads(api.request("POST", jobs, manifest))
    run = Run(api, namespace, made["metadata"]["name"], made["metadata"]["uid"])
    if scripts:
        owner = {"apiVersion": API_VERSION, "kind": "ElasticTrainingJob", "name": run.name, "uid": run.uid}
        try:
            api.request("POST", maps, {**scripts, "metadata": {**scripts["metadata"], "ownerReferences": [owner]}})
        except TidelineError:
            run.delete()  # Its pods would wait for the script for ever.
            raise
    return run


def _path(namespace, name=""):
    return f"/apis/{API_VERSION}/namespaces/{namespace}/elastictrainingjobs" + ("/" + name if name else "")


@dataclasses.dataclass
class Run:
    """A training that was submitted."""

    api: object
    namespace: str
    name: str
    uid: str

    def status(self):
        """The job's status as a dict; NotFound once it is deleted, also if another job has its name by then."""
        seen = json.loads(self.api.request("GET", _path(self.namespace, self.name)))
        if seen["metadata"]["uid"] != self.uid:
            raise NotFound(f"{self.namespace}/{self.name} was deleted, and another job has its name")
        return seen.get("status", {})

    def wait(self, timeout=None, tell=None, every=1.0):
        """Returns the last status of a training that succeeded; NotSucceeded otherwise, TimeoutError after timeout seconds.

        tell is called with each new sentence about what the job does. The training goes on whatever happens here.
        """
        end = None if timeout is None else time.monotonic() + timeout
        last, told, failures = {}, "", 0
        while True:
            try:
                last, failures = self.status(), 0
            except NotFound as e:
                raise NotSucceeded(f"{self.namespace}/{self.name} was deleted", last) from e
            except Unreachable:
                failures += 1  # An API server that restarts is back soon.
                if failures > MOST_FAILURES:
                    raise
            phase = last.get("phase", "")
            words = f"{phase}, {last.get('reason', '')}: {last.get('message', '')}"
            if tell and phase and words != told:
                told = words
                tell(words)
            if phase == "Succeeded":
                return last
            if phase == "Failed":
                raise NotSucceeded(f"{self.namespace}/{self.name} failed: {last.get('message', '')}", last)
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"{self.namespace}/{self.name} has not ended within {timeout} s: {words}")
            time.sleep(every)

    def delete(self):
        """Ends the training. It is no error if it is gone."""
        try:
            self.status()
            only = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": self.uid}}
            self.api.request("DELETE", _path(self.namespace, self.name), only)
        except NotFound:
            pass
