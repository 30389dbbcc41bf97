package capacity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	appLabel  = "app"
	zoneLabel = "zone"
)

// drawRules draws rules about other pods, for the gang of some questions and for pods that are there before it.
func (q *question) drawRules(namespace string) {
	asked, there := q.name, q.name+"-there"
	for _, p := range q.bound {
		metav1.SetMetaDataLabel(&p.ObjectMeta, appLabel, there)
		switch {
		case q.chance(8):
			takePort(p, 9000)
		case q.chance(6):
			keepApart(p, pick(q, asked, there), pick(q, zoneLabel, corev1.LabelHostname))
		}
	}
	var rules []func(*corev1.Pod)
	draw := func(percent int, rule func(*corev1.Pod)) {
		if q.chance(percent) && q.apart == 0 {
			rules = append(rules, rule)
		}
	}
	key, whom := pick(q, zoneLabel, corev1.LabelHostname), pick(q, asked, asked, there)
	draw(10, func(p *corev1.Pod) { takePort(p, 9000) })
	draw(10, func(p *corev1.Pod) { keepApart(p, whom, key) })
	draw(10, func(p *corev1.Pod) { wantBeside(p, whom, key) })
	skew := 1 + q.random.Int32N(2)
	draw(10, func(p *corev1.Pod) { spreadOut(p, whom, key, skew) })
	draw(8, func(p *corev1.Pod) { useClaim(p, q.volume.Name) })
	if q.apart > 0 && q.chance(30) {
		rules = append(rules, func(p *corev1.Pod) { takePort(p, 9000) })
	}
	q.drawVolume(namespace)
	for _, p := range q.asks {
		metav1.SetMetaDataLabel(&p.ObjectMeta, appLabel, asked)
		for _, rule := range rules {
			rule(p)
		}
	}
	q.ruled = len(rules)
}

// drawVolume makes a claim that every node may mount, or every node of a zone, and its volume.
func (q *question) drawVolume(namespace string) {
	name := namespace + "-" + q.name
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	q.volume = &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: modes, Capacity: size, ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "example.com", Path: "/"}},
	}}
	if q.chance(50) {
		zones := corev1.NodeSelectorRequirement{Key: zoneLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{"1", "2"}}
		q.volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{zones}}},
		}}
	}
	q.claim = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, VolumeName: name, StorageClassName: new(""),
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	}
}

func takePort(p *corev1.Pod, port int32) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP}}
}

func selecting(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}}
}

func keepApart(p *corev1.Pod, app, key string) {
	affinityOf(p).PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selecting(app), TopologyKey: key}},
	}
}

func wantBeside(p *corev1.Pod, app, key string) {
	affinityOf(p).PodAffinity = &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selecting(app), TopologyKey: key}},
	}
}

func affinityOf(p *corev1.Pod) *corev1.Affinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	return p.Spec.Affinity
}

func spreadOut(p *corev1.Pod, app, key string, skew int32) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selecting(app),
	}}
}

func useClaim(p *corev1.Pod, name string) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}})
}

// rulesOf are the rules of a pod in a few words.
func rulesOf(p *corev1.Pod) string {
	words := ""
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		words += fmt.Sprintf(" apart %v", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		words += fmt.Sprintf(" beside %v", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if len(p.Spec.TopologySpreadConstraints) > 0 {
		words += fmt.Sprintf(" spread %v", p.Spec.TopologySpreadConstraints)
	}
	if len(p.Spec.Containers[0].Ports) > 0 {
		words += " a host port"
	}
	if len(p.Spec.Volumes) > 0 {
		words += " a claim"
	}
	return words
}
