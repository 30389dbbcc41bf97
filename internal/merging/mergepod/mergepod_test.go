package mergepod

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/platform/config"
	"github.com/tideline-io/tideline/internal/platform/gang"
)

func blueprint() Blueprint {
	j := &v1beta1.MergeJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ads", Name: "ctr", UID: "u-1"}}
	j.Spec.Store = v1beta1.ModelStore{
		Type: v1beta1.StoreS3, S3: &v1beta1.S3Store{Bucket: "models"}, Prefix: "ads/ctr", Increments: "inc/", Full: "full/",
		CompletionMarker: "_SUCCESS",
	}
	j.Spec.Template.Labels = map[string]string{"team": "ads", v1beta1.LabelMerge: "somebody else's"}
	j.Spec.Template.Spec = corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "fetch", Image: "f"}},
		Containers: []corev1.Container{
			{Name: "merge", Image: "m", Env: []corev1.EnvVar{{Name: "OUT", Value: "$(TIDELINE_OUTPUT_PATH)part"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")},
					Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")},
				}},
			{Name: "sidecar", Image: "s", TerminationMessagePolicy: corev1.TerminationMessageReadFile},
		},
		Overhead: corev1.ResourceList{"cpu": resource.MustParse("100m")},
	}
	tier, _ := config.DefaultTiers().FindTier("small-traffic")
	return Blueprint{
		Job: j, Tier: tier, Pool: "tideline-merge",
		Run: &v1beta1.MergeRun{
			ID: "20261122t004013z-7b3f9c01", Attempt: 2, MinReplicas: 2, MaxReplicas: 4, Increments: 60, Base: "20261121t144013z-7b3f9c01",
		},
	}
}

// vars are the variables that Tideline sets in a container.
func vars(c *corev1.Container) map[string]string {
	all := map[string]string{}
	for _, v := range c.Env {
		if strings.HasPrefix(v.Name, "TIDELINE_") {
			all[v.Name] = v.Value
		}
	}
	return all
}

func TestCorePod(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	pod := b.NewPod(0)
	g.Expect(pod.Name).To(Equal("ctr-merge-0"))
	g.Expect(pod.Labels).To(Equal(map[string]string{
		"team": "ads", "tideline.io/merge": "ctr", "tideline.io/run": "20261122t004013z-7b3f9c01",
		"tideline.io/attempt": "20261122t004013z-7b3f9c01-2", "tideline.io/worker-index": "0", "tideline.io/part": "core",
		"tideline.io/model-hash": ModelHash(b.Job),
	}))
	for key, value := range pod.Labels {
		g.Expect(validation.IsValidLabelValue(value)).To(BeEmpty(), key)
	}
	g.Expect(pod.Annotations).To(Equal(map[string]string{
		"scheduling.k8s.io/group-name": "ctr-merge", "volcano.sh/task-spec": "master", "volcano.sh/task-priority": "65536",
		"volcano.sh/preemptable": "false",
	}))
	g.Expect(pod.Spec.SchedulerName).To(Equal("volcano"))
	g.Expect(pod.Spec.PriorityClassName).To(Equal("tideline-small-traffic"))
	g.Expect(pod.Spec.RestartPolicy).To(Equal(corev1.RestartPolicyNever))
	g.Expect(pod.Spec.Containers[0].Resources).To(Equal(b.Job.Spec.Template.Spec.Containers[0].Resources))
	g.Expect(metav1.IsControlledBy(pod, b.Job)).To(BeTrue())
	g.Expect(pod.OwnerReferences[0].Kind).To(Equal("MergeJob"))
	g.Expect(pod.Spec.Containers[0].TerminationMessagePolicy).To(Equal(corev1.TerminationMessageFallbackToLogsOnError))
	g.Expect(pod.Spec.Containers[1].TerminationMessagePolicy).To(Equal(corev1.TerminationMessageReadFile), "the user's word stands")
	g.Expect(b.Job.Spec.Template.Spec.Containers[0].Env).To(HaveLen(1), "the template is not touched")
	g.Expect(b.Job.Spec.Template.Labels).To(HaveLen(2), "nor its labels")
}

func TestSurplusPod(t *testing.T) {
	g := NewWithT(t)
	pod := blueprint().NewPod(2)
	g.Expect(pod.Annotations).To(Equal(map[string]string{
		"scheduling.k8s.io/group-name": "ctr-merge-surplus", "volcano.sh/task-spec": "worker", "volcano.sh/task-priority": "65534",
		"volcano.sh/preemptable": "true",
	}))
	g.Expect(pod.Spec.PriorityClassName).To(Equal("tideline-small-traffic-surplus"))
	g.Expect(pod.Labels["tideline.io/part"]).To(Equal("surplus"))
	g.Expect(blueprint().NewPod(1).Labels["tideline.io/part"]).To(Equal("core"))
}

func TestPodsAreHeldToTheirTier(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	asked := b.Job.Spec.Template.Spec.Containers[0].Resources.Requests
	asked["memory"] = resource.MustParse("4Gi")
	b.Job.Spec.Template.Spec.Containers[0].Resources.Limits = nil
	for _, i := range []int32{0, 3} {
		limits := b.NewPod(i).Spec.Containers[0].Resources.Limits
		g.Expect(limits).To(Equal(corev1.ResourceList{"memory": resource.MustParse("4Gi")}), "pod %d", i)
	}
}

func TestContainersAreToldWhatTheyMerge(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	pod := b.NewPod(3)
	want := map[string]string{
		"TIDELINE_MODEL": "ctr", "TIDELINE_RUN_ID": "20261122t004013z-7b3f9c01", "TIDELINE_INDEX": "3", "TIDELINE_COUNT": "2",
		"TIDELINE_MAX_COUNT": "4", "TIDELINE_STORE_TYPE": "S3", "TIDELINE_STORE_BUCKET": "models",
		"TIDELINE_STORE_REGION":    "us-east-1",
		"TIDELINE_INCREMENTS_FILE": "/etc/tideline/increments/increments.gz", "TIDELINE_INCREMENTS_PATH": "ads/ctr/inc/",
		"TIDELINE_INCREMENTS_COUNT":  "60",
		"TIDELINE_LAST_FULL_PATH":    "ads/ctr/full/20261121t144013z-7b3f9c01/",
		"TIDELINE_OUTPUT_PATH":       "ads/ctr/full/20261122t004013z-7b3f9c01/",
		"TIDELINE_COMPLETION_MARKER": "_SUCCESS",
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		g.Expect(vars(&c)).To(Equal(want), c.Name)
		g.Expect(c.VolumeMounts).To(Equal([]corev1.VolumeMount{
			{Name: "tideline-increments", MountPath: "/etc/tideline/increments", ReadOnly: true},
		}), c.Name)
		g.Expect(c.EnvFrom).To(BeEmpty(), "Secrets are mounted by the template alone")
	}
	env := pod.Spec.Containers[0].Env
	g.Expect(env[len(env)-1].Name).To(Equal("OUT"), "it refers to variables before it")
	g.Expect(pod.Spec.Volumes).To(HaveLen(1))
	g.Expect(pod.Spec.Volumes[0].ConfigMap.Name).To(Equal(b.IncrementsMap(nil).Name))
}

func TestContainersAreToldOfTheStore(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	b.Job.Spec.Model = "ctr-v2"
	s := &b.Job.Spec.Store
	s.Prefix, s.S3.Endpoint, s.S3.Region = "", "https://s3.example.com", "cn-north-1"
	b.Run.Base = "by $(HAND)"
	got := vars(&b.NewPod(0).Spec.Containers[0])
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_MODEL", "ctr-v2"))
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_STORE_ENDPOINT", "https://s3.example.com"))
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_STORE_REGION", "cn-north-1"))
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_INCREMENTS_PATH", "inc/"))
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_LAST_FULL_PATH", "full/by $$(HAND)/"), "a name in the store is no reference")

	s.Type, s.S3, s.File, s.Prefix = v1beta1.StoreFile, nil, &v1beta1.FileStore{Path: "/srv/models"}, "ctr/"
	b.Run.Base = ""
	got = vars(&b.NewPod(0).Spec.Containers[0])
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_STORE_BUCKET", "/srv/models"))
	g.Expect(got).NotTo(HaveKey("TIDELINE_STORE_REGION"), "a folder is in no region")
	g.Expect(got).NotTo(HaveKey("TIDELINE_STORE_ENDPOINT"))
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_LAST_FULL_PATH", ""), "there is none")
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_OUTPUT_PATH", "ctr/full/20261122t004013z-7b3f9c01/"))
}

func TestContainersMountTheClaimOfTheStore(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	b.Job.Spec.Store.Type, b.Job.Spec.Store.S3 = v1beta1.StoreClaim, nil
	b.Job.Spec.Store.Claim = &v1beta1.ClaimStore{Name: "checkpoints"}
	own := corev1.VolumeMount{Name: "mine", MountPath: "/models", SubPath: "ads"}
	b.Job.Spec.Template.Spec.Containers[1].VolumeMounts = []corev1.VolumeMount{own}
	pod := b.NewPod(0)
	mount := corev1.VolumeMount{Name: "tideline-store", MountPath: "/models"}
	g.Expect(pod.Spec.Containers[0].VolumeMounts).To(ContainElement(mount), "to write it too")
	g.Expect(pod.Spec.InitContainers[0].VolumeMounts).To(ContainElement(mount))
	g.Expect(pod.Spec.Containers[1].VolumeMounts).To(And(ContainElement(own), Not(ContainElement(mount))), "the user's stands")
	var claims []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims = append(claims, v.Name+" "+v.PersistentVolumeClaim.ClaimName)
		}
	}
	g.Expect(claims).To(Equal([]string{"tideline-store checkpoints"}))
	got := vars(&pod.Spec.Containers[0])
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_STORE_TYPE", "Claim"))
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_STORE_PATH", "/models"))
	g.Expect(got).To(HaveKeyWithValue("TIDELINE_STORE_REPORT", "ctr-merge-store"))
	g.Expect(got).NotTo(Or(HaveKey("TIDELINE_STORE_BUCKET"), HaveKey("TIDELINE_STORE_REGION")))
	b.Job.Spec.Store.Claim.MountPath = "/mnt"
	g.Expect(vars(&b.NewPod(0).Spec.Containers[0])).To(HaveKeyWithValue("TIDELINE_STORE_PATH", "/mnt"))
}

func TestClaimsOfOneNameInTwoNamespacesAreTwoPlaces(t *testing.T) {
	g := NewWithT(t)
	one, other := blueprint().Job, blueprint().Job
	for _, j := range []*v1beta1.MergeJob{one, other} {
		j.Spec.Store.Type, j.Spec.Store.S3, j.Spec.Store.Claim = v1beta1.StoreClaim, nil, &v1beta1.ClaimStore{Name: "models"}
	}
	other.Name = "another"
	g.Expect(PlaceHashes(other)).To(Equal(PlaceHashes(one)))
	other.Namespace = "other"
	g.Expect(PlaceHashes(other)).NotTo(ContainElements(PlaceHashes(one)))
}

func TestPodKeepsWhatTheUserSet(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	mine := corev1.VolumeMount{Name: "mine", MountPath: "/etc/tideline/increments"}
	b.Job.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{mine}
	b.Job.Spec.Template.Spec.InitContainers[0].Env = []corev1.EnvVar{{Name: "TIDELINE_INDEX", Value: "9"}, {Name: "A", Value: "1"}}
	pod := b.NewPod(1)
	g.Expect(pod.Spec.Containers[0].VolumeMounts).To(Equal([]corev1.VolumeMount{mine}))
	init := pod.Spec.InitContainers[0]
	g.Expect(vars(&init)).To(HaveKeyWithValue("TIDELINE_INDEX", "1"), "what Tideline says is said once")
	g.Expect(init.Env[len(init.Env)-1]).To(Equal(corev1.EnvVar{Name: "A", Value: "1"}))
}

func TestGroups(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	core, surplus := b.CoreGroup(), b.SurplusGroup()
	g.Expect(core.Name).To(Equal("ctr-merge"))
	g.Expect(core.MinMember).To(Equal(int32(2)))
	g.Expect(core.PriorityClass).To(Equal("tideline-small-traffic"))
	g.Expect(core.Queue).To(Equal("tideline-merge"))
	g.Expect(core.MinResources.Cpu().String()).To(Equal("1200m"), "requests and overhead of two pods")
	g.Expect(core.MinResources.Memory().String()).To(Equal("8Gi"), "a limit stands in for a missing request")
	g.Expect(core.Labels).To(HaveKeyWithValue("tideline.io/attempt", AttemptName(b.Run)))
	g.Expect(metav1.IsControlledBy(core.PodGroup(), b.Job)).To(BeTrue())
	g.Expect(surplus.Name).To(Equal("ctr-merge-surplus"))
	g.Expect(surplus.PriorityClass).To(Equal("tideline-small-traffic-surplus"))
	g.Expect(surplus.MinMember).To(BeZero())
	g.Expect(surplus.MinResources).To(BeNil())
	for i, group := range map[int32]gang.Group{1: core, 2: surplus} {
		g.Expect(gang.GroupOf(b.NewPod(i))).To(Equal(group.Name))
	}
}

func TestIncrementsMap(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	m := b.IncrementsMap([]byte("gzipped"))
	g.Expect(m.Name).To(Equal("ctr-merge-increments"))
	g.Expect(m.Namespace).To(Equal("ads"))
	g.Expect(m.BinaryData).To(Equal(map[string][]byte{"increments.gz": []byte("gzipped")}))
	g.Expect(*m.Immutable).To(BeTrue())
	g.Expect(metav1.IsControlledBy(m, b.Job)).To(BeTrue())
	g.Expect(m.Labels).To(Equal(map[string]string{
		"tideline.io/merge": "ctr", "tideline.io/run": b.Run.ID, "tideline.io/job": "ctr",
	}), "all attempts share it")
}

func TestPodIndex(t *testing.T) {
	g := NewWithT(t)
	for _, i := range []int32{0, 9, 10, 4095} {
		index, ok := PodIndex("ctr", PodName("ctr", i))
		g.Expect(ok).To(BeTrue())
		g.Expect(index).To(Equal(i))
	}
	for _, name := range []string{
		"ctr-merge-01", "ctr-merge-", "ctr-merge--1", "ctr-merge-+1", "ctr-merge-4096", "ctr-merge-1x", "1", "x-merge-1", "ctr-merge",
	} {
		_, ok := PodIndex("ctr", name)
		g.Expect(ok).To(BeFalse(), name)
	}
}

func TestModelHashTellsModelsInStoresApart(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1beta1.MergeJob)
		same bool
	}{
		"the name":                       {func(j *v1beta1.MergeJob) { j.Name = "another" }, true},
		"what it calls the model":        {func(j *v1beta1.MergeJob) { j.Spec.Model = "other" }, true},
		"slashes of the prefix":          {func(j *v1beta1.MergeJob) { j.Spec.Store.Prefix = "ads/ctr/" }, true},
		"case and slash of the endpoint": {func(j *v1beta1.MergeJob) { j.Spec.Store.S3.Endpoint = "HTTPS://S3.example.com/" }, true},
		"what the pods are":              {func(j *v1beta1.MergeJob) { j.Spec.Template.Spec.NodeName = "n" }, true},
		"the scheme's own port": {func(j *v1beta1.MergeJob) { j.Spec.Store.S3.Endpoint = "https://s3.example.com:443" },
			true},
		"prefix and folder written otherwise": {func(j *v1beta1.MergeJob) {
			j.Spec.Store.Prefix, j.Spec.Store.Full = "", j.Spec.Store.Prefix+"/"+j.Spec.Store.Full
		}, true},
		"another folder of full models": {func(j *v1beta1.MergeJob) { j.Spec.Store.Full = "others/" }, false},
		"another bucket":                {func(j *v1beta1.MergeJob) { j.Spec.Store.S3.Bucket = "others" }, false},
		"another prefix":                {func(j *v1beta1.MergeJob) { j.Spec.Store.Prefix = "ads" }, false},
		"another endpoint":              {func(j *v1beta1.MergeJob) { j.Spec.Store.S3.Endpoint = "https://s4.example.com" }, false},
		"AWS's own endpoint":            {func(j *v1beta1.MergeJob) { j.Spec.Store.S3.Endpoint = "" }, false},
		"another type":                  {func(j *v1beta1.MergeJob) { j.Spec.Store.Type = v1beta1.StoreFile }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			one, other := blueprint().Job, blueprint().Job
			one.Spec.Store.S3.Endpoint, other.Spec.Store.S3.Endpoint = "https://s3.example.com", "https://s3.example.com"
			c.edit(other)
			g.Expect(ModelHash(one)).To(MatchRegexp("^[0-9a-f]{16}$"))
			if c.same {
				g.Expect(ModelHash(other)).To(Equal(ModelHash(one)))
			} else {
				g.Expect(ModelHash(other)).NotTo(Equal(ModelHash(one)))
			}
		})
	}
}

// A bucket's name is given once in each of AWS's worlds, and not once in each region. Other servers have no regions.
func TestBucketsOfOneNameInTwoWorldsOfAWSAreTwoPlaces(t *testing.T) {
	g := NewWithT(t)
	in := func(region, endpoint string) []string {
		j := blueprint().Job
		j.Spec.Store.S3.Region, j.Spec.Store.S3.Endpoint = region, endpoint
		return PlaceHashes(j)
	}
	const server = "https://s3.example.com"
	common := in("us-east-1", "")
	g.Expect(in("eu-west-1", "")).To(Equal(common), "whoever names another region has the same bucket, or none")
	g.Expect(in("cn-north-1", "")).To(Equal(in("cn-northwest-1", "")))
	g.Expect(in("cn-north-1", server)).To(Equal(in("us-east-1", server)), "a region is a part of the signature there")
	for _, region := range []string{"cn-north-1", "us-gov-west-1", "us-iso-east-1", "us-isob-east-1"} {
		g.Expect(in(region, "")).NotTo(ContainElements(common), region)
	}
	g.Expect(in("us-gov-west-1", "")).NotTo(ContainElements(in("cn-north-1", "")))
}

func TestPlacesAreSharedByWhoeverSharesAFolder(t *testing.T) {
	g := NewWithT(t)
	one, other := blueprint().Job, blueprint().Job
	other.Spec.Store.Full = "others/"
	g.Expect(PlaceHashes(other)).To(ContainElement(PlaceHashes(one)[1]), "the increments")
	g.Expect(PlaceHashes(other)).NotTo(ContainElement(ModelHash(one)))
	other.Spec.Store.Increments = "more/"
	g.Expect(PlaceHashes(other)).NotTo(ContainElements(PlaceHashes(one)))
	g.Expect(PlaceHashes(one)).To(ContainElement(ModelHash(one)))
}

func TestPodsCarryTheOwner(t *testing.T) {
	g := NewWithT(t)
	b := blueprint()
	b.Job.Spec.Template.Annotations = map[string]string{v1beta1.AnnotationOwner: "mallory", "note": "kept"}
	pod := b.NewPod(0)
	g.Expect(pod.Annotations).NotTo(HaveKey("tideline.io/owner"), "a template cannot name an owner")
	g.Expect(pod.Annotations).To(HaveKeyWithValue("note", "kept"))
	b.Job.Spec.Owner = "alice@example.com"
	for _, i := range []int32{0, 3} {
		pod = b.NewPod(i)
		g.Expect(pod.Annotations).To(HaveKeyWithValue("tideline.io/owner", "alice@example.com"))
		// printf alice@example.com | sha256sum | cut -c1-16
		g.Expect(pod.Labels).To(HaveKeyWithValue("tideline.io/owner-hash", "ff8d9819fc0e12bf"))
	}
	g.Expect(b.Job.Spec.Template.Annotations).To(HaveKeyWithValue("tideline.io/owner", "mallory"), "the template is not touched")
}
