package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	batchv1alpha1 "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/test/testutil"
	"github.com/tideline-io/tideline/test/testutil/trainingoperator"
)

// Every job is of 2 to 4 workers, and has room for 4.
const least, most = 2, 4

// A subject makes pods for jobs.
type subject struct {
	key, title string
	// user is what the API server calls it, and process the name of its process, none if it is the client itself.
	user, process string
	// start starts it on a cluster that has Volcano.
	start func(ctx context.Context, r *run) error
	// objects are what the client creates for a job, in order, and deletes.
	objects func(job types.NamespacedName) []client.Object
}

// Keys of the subjects.
const (
	floor, volcanoJob, volcanoNames = "floor", "volcano", "volcano-svc"
	trainingOperator, tideline      = "training-operator", "tideline"
)

func all() []subject {
	return []subject{
		{key: floor, title: "a plain client", user: clientUser, objects: plainObjects},
		{
			key: volcanoJob, title: "Volcano Job", user: "system:serviceaccount:volcano-system:volcano-controllers",
			process: controllers, objects: func(job types.NamespacedName) []client.Object { return volcanoObjects(job, nil) },
		},
		{
			// Volcano's examples of distributed training have this plugin: workers find each other by names.
			key: volcanoNames, title: "Volcano Job, svc", user: "system:serviceaccount:volcano-system:volcano-controllers",
			process: controllers,
			objects: func(job types.NamespacedName) []client.Object {
				return volcanoObjects(job, map[string][]string{"svc": {}})
			},
		},
		{
			key: trainingOperator, title: "training-operator", user: trainingoperator.User, process: "training-operator",
			start:   func(ctx context.Context, r *run) error { return trainingoperator.Start(ctx, r.cluster) },
			objects: pyTorchObjects,
		},
		{
			key: tideline, title: "Tideline",
			user:    "system:serviceaccount:" + testutil.OperatorNamespace + ":" + testutil.OperatorServiceAccount,
			process: "tideline", start: startTideline, objects: tidelineObjects,
		},
	}
}

// startTideline starts the operator with the limit of memory that users have, without webhooks and a Lease, and with profiles.
func startTideline(ctx context.Context, r *run) error {
	if err := r.Install(ctx); err != nil {
		return err
	}
	kubeconfig := filepath.Join(r.dir, "tideline.kubeconfig")
	if err := r.cluster.KubeconfigFor(ctx, testutil.OperatorNamespace, testutil.OperatorServiceAccount, kubeconfig); err != nil {
		return err
	}
	var err error
	if r.pprof, err = testutil.FreeAddress(); err != nil {
		return err
	}
	_, memory, err := testutil.ShippedMemory(ctx)
	if err != nil {
		return err
	}
	operator, err := testutil.StartOperator(ctx, testutil.OperatorOptions{
		Env: memory, Program: r.options.operator, Kubeconfig: kubeconfig, Log: filepath.Join(r.dir, "tideline.log"), Bare: true,
		Args: []string{
			"--webhooks=false", "--leader-elect=false", "--health-probe-bind-address=0", "--pprof-bind-address=" + r.pprof,
		},
	})
	if err != nil {
		return err
	}
	r.operator = operator
	return nil
}

func tidelineObjects(job types.NamespacedName) []client.Object {
	return []client.Object{testutil.Job(job.Name).In(job.Namespace).Range(least, most).GPUs(1).
		With(func(e *v1beta1.ElasticTrainingJob) { e.Spec.Elasticity.Growth = v1beta1.Growth{} }).Obj()}
}

func template(container string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		SchedulerName: "volcano",
		Containers: []corev1.Container{{
			Name: container, Image: "registry.example/trainer:1", Command: []string{"torchrun", "train.py"},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{testutil.GPUResource: resource.MustParse("1")}},
		}},
	}}
}

func plainObjects(job types.NamespacedName) []client.Object {
	objects := []client.Object{&schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name},
		Spec:       schedulingv1beta1.PodGroupSpec{MinMember: least, Queue: "default"},
	}}
	for i := range most {
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: job.Namespace, Name: job.Name + "-" + strconv.Itoa(i),
				Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: job.Name},
			},
			Spec: template("trainer").Spec,
		})
	}
	return objects
}

func volcanoObjects(job types.NamespacedName, plugins map[string][]string) []client.Object {
	return []client.Object{&batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name},
		Spec: batchv1alpha1.JobSpec{
			SchedulerName: "volcano", MinAvailable: least, Plugins: plugins,
			Tasks: []batchv1alpha1.TaskSpec{{Name: "worker", Replicas: most, Template: template("trainer")}},
		},
	}}
}

func pyTorchObjects(job types.NamespacedName) []client.Object {
	return []client.Object{&kubeflowv1.PyTorchJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name},
		Spec: kubeflowv1.PyTorchJobSpec{
			RunPolicy: kubeflowv1.RunPolicy{SchedulingPolicy: &kubeflowv1.SchedulingPolicy{MinAvailable: ptr.To[int32](least)}},
			PyTorchReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{
				kubeflowv1.PyTorchJobReplicaTypeWorker: {
					Replicas: ptr.To[int32](most), Template: template(kubeflowv1.PyTorchJobDefaultContainerName),
				},
			},
		},
	}}
}

// keepProfile reads a profile of the operator into a file of the folder for profiles.
func (r *run) keepProfile(ctx context.Context, path, file string) error {
	if r.pprof == "" {
		return nil
	}
	content, err := get(ctx, "http://"+r.pprof+"/debug/pprof/"+path)
	if err != nil {
		return fmt.Errorf("read the profile %s: %w", path, err)
	}
	if err := os.MkdirAll(r.options.profiles, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.options.profiles, file), content, 0o600)
}
