package submit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/cli"
)

const (
	// mostScript is the largest script, in bytes. A ConfigMap holds 1 MiB, and the API server stores every version of it.
	mostScript = 512 << 10
	// folder is where containers find the script, and volume what it is mounted by.
	folder, volume = "/script", "script"
	// container runs it.
	container = "trainer"
)

// request is what the user asks for, checked as far as that can be done without a cluster.
type request struct {
	namespace, name string
	// script is the file's name without its folder.
	script    string
	content   string
	arguments []string
	image     string
	min, max  int32
	resources corev1.ResourceList
	env       []corev1.EnvVar
	data      []v1beta1.JobDataSet
	tier      string
	task      string
}

// readScript reads a script; the error says why it cannot be one.
func readScript(path string) (content string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("script %s: %w", path, err)
		}
	}()
	// A device or a pipe might never end.
	switch found, err := os.Stat(path); {
	case errors.Is(err, os.ErrNotExist):
		return "", errors.New("there is no such file")
	case err != nil:
		return "", err
	case !found.Mode().IsRegular():
		return "", errors.New("it is no file")
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	read, err := io.ReadAll(io.LimitReader(file, mostScript+1))
	switch {
	case err != nil:
		return "", err
	case len(read) > mostScript:
		return "", fmt.Errorf("it is larger than %d KiB: put it, or what it carries, into the image", mostScript>>10)
	case len(read) == 0:
		return "", errors.New("it is empty")
	case !utf8.Valid(read) || bytes.IndexByte(read, 0) >= 0:
		return "", errors.New("it is no text")
	}
	return string(read), nil
}

// runners are the programs that run scripts, by the end of their names.
var runners = map[string]string{".py": "torchrun", ".sh": "sh"}

// scriptName matches names of files that a ConfigMap can hold.
var scriptName = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,200}$`)

// checkName tells whether a script's name is one that can be run.
func checkName(name string) error {
	if runners[filepath.Ext(name)] == "" {
		return cli.Usagef("script %q: its name must end in .py, which torchrun runs, or in .sh, which sh runs", name)
	}
	if !scriptName.MatchString(name) {
		return cli.Usagef("script %q: its name may have letters, digits, dots, dashes and underscores", name)
	}
	return nil
}

// foreign are characters that no job's name has.
var foreign = regexp.MustCompile(`[^a-z0-9]+`)

// mostStem is how many characters of a script's name begin a job's name, so that it has room for a suffix and for "-worker-4095".
const mostStem = 40

// nameFrom makes a job's name of a script's, which ends in a suffix that tells submissions apart.
func nameFrom(script, suffix string) string {
	stem := foreign.ReplaceAllString(strings.ToLower(strings.TrimSuffix(script, filepath.Ext(script))), "-")
	stem = strings.TrimLeft(stem, "-0123456789")
	stem = strings.Trim(stem[:min(len(stem), mostStem)], "-")
	if stem == "" {
		stem = "job"
	}
	return stem + "-" + suffix
}

// parseWorkers reads MIN..MAX, or one number for both.
func parseWorkers(s string) (least, most int32, err error) {
	from, to, isRange := strings.Cut(s, "..")
	if !isRange {
		to = from
	}
	a, errFrom := strconv.ParseInt(from, 10, 32)
	b, errTo := strconv.ParseInt(to, 10, 32)
	if errFrom != nil || errTo != nil || a < 1 || b < a || b > v1beta1.MaxWorkers {
		return 0, 0, cli.Usagef("--workers %q: it is a number, or MIN..MAX, from 1 to %d", s, v1beta1.MaxWorkers)
	}
	return int32(a), int32(b), nil
}

// environmentName matches names of variables that shells know.
var environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// parseEnvironment reads NAME=VALUE.
func parseEnvironment(given []string) ([]corev1.EnvVar, error) {
	var env []corev1.EnvVar
	for _, s := range given {
		name, value, found := strings.Cut(s, "=")
		if !found || !environmentName.MatchString(name) {
			return nil, cli.Usagef("--env %q: it is NAME=VALUE", s)
		}
		// Kubernetes would put another variable in place of $(NAME).
		env = append(env, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$(", "$$(")})
	}
	return env, nil
}

// parseData reads NAME:VERSION or NAME:VERSION:PATH.
func parseData(given []string) ([]v1beta1.JobDataSet, error) {
	var sets []v1beta1.JobDataSet
	for _, s := range given {
		parts := strings.SplitN(s, ":", 3) //nolint:mnd // a path may have no colon, which the API server says
		if len(parts) == 1 || slices.Contains(parts, "") {
			return nil, cli.Usagef("--data %q: it is NAME:VERSION, or NAME:VERSION:PATH", s)
		}
		set := v1beta1.JobDataSet{Name: parts[0], Version: parts[1]}
		if len(parts) > 2 {
			set.MountPath = parts[2]
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// parseResources reads what each worker needs.
func parseResources(gpus int64, device, cpu, memory string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	if gpus < 0 || gpus > 64 {
		return nil, cli.Usagef("--gpus %d: it is from 0 to 64 for each worker", gpus)
	}
	if gpus > 0 {
		list[corev1.ResourceName(device)] = *resource.NewQuantity(gpus, resource.DecimalSI)
	}
	for _, of := range []struct {
		flag, value string
		name        corev1.ResourceName
	}{{"--cpu", cpu, corev1.ResourceCPU}, {"--memory", memory, corev1.ResourceMemory}} {
		if of.value == "" {
			continue
		}
		q, err := resource.ParseQuantity(of.value)
		if err != nil || q.Sign() <= 0 {
			return nil, cli.Usagef("%s %q: it is a quantity above 0, such as 4 or 16Gi", of.flag, of.value)
		}
		list[of.name] = q
	}
	return list, nil
}

// objects are the training and the ConfigMap with its script.
func (r *request) objects() (*v1beta1.ElasticTrainingJob, *corev1.ConfigMap) {
	scripts := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name + "-script"},
		Immutable:  ptr.To(true), Data: map[string]string{r.script: r.content},
	}
	command := []string{runners[filepath.Ext(r.script)], folder + "/" + r.script}
	for _, argument := range r.arguments {
		command = append(command, strings.ReplaceAll(argument, "$(", "$$("))
	}
	needs := corev1.ResourceRequirements{Requests: r.resources.DeepCopy()}
	for name, q := range r.resources {
		// Processors may be used beyond what is asked for; devices and memory may not.
		if name != corev1.ResourceCPU {
			if needs.Limits == nil {
				needs.Limits = corev1.ResourceList{}
			}
			needs.Limits[name] = q
		}
	}
	env := r.env
	if filepath.Ext(r.script) == ".py" {
		// A line is seen when it is printed.
		env = append([]corev1.EnvVar{{Name: "PYTHONUNBUFFERED", Value: "1"}}, env...)
	}
	job := &v1beta1.ElasticTrainingJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.ElasticTrainingJobKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name},
		Spec: v1beta1.ElasticTrainingJobSpec{
			MinReplicas: r.min, MaxReplicas: r.max, Tier: r.tier, Task: r.task, DataSets: r.data,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Name: container, Image: r.image, Command: command, Env: env, Resources: needs,
					VolumeMounts: []corev1.VolumeMount{{Name: volume, MountPath: folder, ReadOnly: true}},
				}},
				Volumes: []corev1.Volume{{Name: volume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: scripts.Name},
				}}}},
			}},
		},
	}
	return job, scripts
}
