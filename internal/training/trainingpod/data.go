package trainingpod

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tideline-io/tideline/api/v1beta1"
	"github.com/tideline-io/tideline/internal/training/rendezvous"
)

// dataVolume begins the name of the volume of a data set.
const dataVolume = "tideline-data-"

// addData mounts the data sets of the attempt in the training container, and tells it where each is.
func addData(job *v1beta1.ElasticTrainingJob, spec *corev1.PodSpec) {
	if job.Status.Attempt == nil {
		return
	}
	trainer := &spec.Containers[rendezvous.TrainerIndex(spec.Containers)]
	for _, place := range job.Status.Attempt.DataSets {
		where := place.Prefix
		if place.Claim != "" {
			volume := dataVolume + place.Name
			where = pathOf(job, place.Name)
			// Read-only twice: a volume that is attached for reading cannot be written by a container with rights of its own either.
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: place.Claim, ReadOnly: true},
			}})
			trainer.VolumeMounts = append(trainer.VolumeMounts, corev1.VolumeMount{
				Name: volume, MountPath: where, SubPath: place.Folder, ReadOnly: true,
			})
		}
		// Kubernetes would put another variable, such as a key, in place of $(NAME).
		trainer.Env = append(trainer.Env, corev1.EnvVar{Name: dataVariable(place.Name), Value: strings.ReplaceAll(where, "$(", "$$(")})
	}
}

// pathOf is where the training container has the data of a claim. The spec cannot change while the attempt has pods.
func pathOf(job *v1beta1.ElasticTrainingJob, name string) string {
	asked := v1beta1.JobDataSet{Name: name}
	if i := slices.IndexFunc(job.Spec.DataSets, func(d v1beta1.JobDataSet) bool { return d.Name == name }); i >= 0 {
		asked = job.Spec.DataSets[i]
	}
	return asked.Path()
}

// dataVariable is the variable that tells the training container where a data set is.
func dataVariable(name string) string {
	return "TIDELINE_DATA_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// CheckData returns an error for each data set whose path in the training container is that of another mount, of the template or
// of other data, or has one below it, which could not be made in a volume that is read-only; and for each volume of the template
// that has the name of a data set's.
func CheckData(job *v1beta1.ElasticTrainingJobSpec) field.ErrorList {
	containers := job.Template.Spec.Containers
	if len(job.DataSets) == 0 || len(containers) == 0 {
		return nil
	}
	var all field.ErrorList
	type mount struct{ path, of string }
	var mounts []mount
	trainer := rendezvous.TrainerIndex(containers)
	for _, m := range containers[trainer].VolumeMounts {
		mounts = append(mounts, mount{path.Clean(m.MountPath), fmt.Sprintf("spec.template.spec.containers[%d].volumeMounts", trainer)})
	}
	for i := range job.DataSets {
		mounts = append(mounts, mount{job.DataSets[i].Path(), fmt.Sprintf("spec.dataSets[%d]", i)})
	}
	for i := range job.DataSets {
		d := &job.DataSets[i]
		at := field.NewPath("spec", "dataSets").Index(i)
		for _, m := range mounts {
			if m.of != at.String() && strings.HasPrefix(m.path+"/", d.Path()+"/") {
				all = append(all, field.Invalid(at.Child("mountPath"), d.Path(), "is, or has in it, "+m.path+" of "+m.of+
					", and data is read-only: set another mountPath"))
				break
			}
		}
		for v := range job.Template.Spec.Volumes {
			if name := job.Template.Spec.Volumes[v].Name; name == dataVolume+d.Name {
				all = append(all, field.Invalid(field.NewPath("spec", "template", "spec", "volumes").Index(v).Child("name"), name,
					"is the name of the volume of data set "+d.Name+": choose another name"))
			}
		}
	}
	return all
}
