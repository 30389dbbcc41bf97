package mergepod

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// defaultRegion is the region of a store of type S3 that names none.
const defaultRegion = "us-east-1"

// StoreRegion is the region of a store; empty for a type without regions.
func StoreRegion(s *v1beta1.ModelStore) string {
	_, region := s.Server()
	if region == "" && s.Type == v1beta1.StoreS3 {
		return defaultRegion
	}
	return region
}

// claimPath is where containers have the volume of a store; empty for a store of type Claim that the schema refuses.
func claimPath(claim *v1beta1.ClaimStore) string {
	if claim == nil {
		return ""
	}
	return cmp.Or(claim.MountPath, v1beta1.DefaultClaimPath)
}

// containerEnv returns the variables of all containers of pod i. Paths are keys of the bucket, or of the volume, and end in a
// slash. A field that the MergeJob does not set has no variable, except TIDELINE_LAST_FULL_PATH, which is empty without a full
// model.
func (b Blueprint) containerEnv(i int32) []corev1.EnvVar {
	s, prefix := &b.Job.Spec.Store, withSlash(b.Job.Spec.Store.Prefix)
	endpoint, _ := s.Server()
	last := ""
	if b.Run.Base != "" {
		last = prefix + withSlash(s.Full) + withSlash(b.Run.Base)
	}
	vars := []corev1.EnvVar{
		{Name: "TIDELINE_MODEL", Value: ModelName(b.Job)},
		{Name: "TIDELINE_RUN_ID", Value: b.Run.ID},
		{Name: "TIDELINE_INDEX", Value: strconv.Itoa(int(i))},
		{Name: "TIDELINE_COUNT", Value: strconv.Itoa(int(b.Run.MinReplicas))},
		{Name: "TIDELINE_MAX_COUNT", Value: strconv.Itoa(int(b.Run.MaxReplicas))},
		{Name: "TIDELINE_INCREMENTS_FILE", Value: v1beta1.IncrementsFile},
		{Name: "TIDELINE_INCREMENTS_PATH", Value: prefix + withSlash(s.Increments)},
		{Name: "TIDELINE_INCREMENTS_COUNT", Value: strconv.Itoa(int(b.Run.Increments))},
		{Name: "TIDELINE_LAST_FULL_PATH", Value: last},
		{Name: "TIDELINE_OUTPUT_PATH", Value: prefix + withSlash(s.Full) + withSlash(b.Run.ID)},
		{Name: "TIDELINE_COMPLETION_MARKER", Value: s.CompletionMarker},
	}
	bucket, mounted, report := s.Place(), "", ""
	if s.Type == v1beta1.StoreClaim {
		bucket, mounted, report = "", claimPath(s.Claim), ReportName(b.Job.Name)
	}
	for _, v := range []corev1.EnvVar{
		{Name: "TIDELINE_STORE_TYPE", Value: string(s.Type)},
		{Name: "TIDELINE_STORE_BUCKET", Value: bucket},
		{Name: "TIDELINE_STORE_PATH", Value: mounted},
		{Name: "TIDELINE_STORE_REPORT", Value: report},
		{Name: "TIDELINE_STORE_ENDPOINT", Value: endpoint},
		{Name: "TIDELINE_STORE_REGION", Value: StoreRegion(s)},
	} {
		if v.Value != "" {
			vars = append(vars, v)
		}
	}
	for v := range vars {
		// Kubernetes would expand $(NAME) in a value. The names come from users and stay as they are.
		vars[v].Value = strings.ReplaceAll(vars[v].Value, "$", "$$")
	}
	return vars
}

// withSlash is a path with a slash at its end; empty for none.
func withSlash(name string) string {
	if name == "" || strings.HasSuffix(name, "/") {
		return name
	}
	return name + "/"
}
