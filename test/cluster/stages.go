package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ManualAnnotation set to "true" on a pod keeps KWOK from making it Running or
// completing it: the test drives the pod's status itself. The pod still goes
// away when it is deleted.
const ManualAnnotation = "tideline.io/test-manual"

// LingerAnnotation set to "true" on a pod keeps KWOK from removing it once it is deleted, as a kubelet does not before its
// grace is over. A deletion without grace removes it.
const LingerAnnotation = "tideline.io/test-lingers"

// A stage is what KWOK does to objects that match its selector.
const (
	nodeInitializeStage = "kustomize/stage/node/fast/node-initialize.yaml"
	podReadyStage       = "kustomize/stage/pod/fast/pod-ready.yaml"
	podCompleteStage    = "kustomize/stage/pod/fast/pod-complete.yaml"
	podDeleteStage      = "kustomize/stage/pod/fast/pod-delete.yaml"
)

var stageFiles = []string{nodeInitializeStage, podReadyStage, podCompleteStage, podDeleteStage}

// requirement is one line of a stage's selector.
func requirement(key, operator string, values ...any) map[string]any {
	return map[string]any{"key": key, "operator": operator, "values": values}
}

var (
	notManual = requirement(`.metadata.annotations["`+ManualAnnotation+`"]`, "NotIn", "true")
	// KWOK completes the pods of every owner of kind Job, so also Volcano's.
	ofBatchJob = requirement(".metadata.ownerReferences.[].apiVersion", "In", "batch/v1")

	notLingering = requirement(`.metadata.annotations["`+LingerAnnotation+`"]`, "NotIn", "true")

	// KWOK deletes by name, without a UID. Its own request changes the pod once more before the pod is gone, and would make it
	// delete again: perhaps a pod that was created under the name meanwhile. As strings, because KWOK compares no numbers.
	notBeingRemoved = requirement(".metadata.deletionGracePeriodSeconds | tostring", "NotIn", "0")

	narrowed = map[string][]any{
		podDeleteStage:   {notBeingRemoved, notLingering},
		podReadyStage:    {notManual},
		podCompleteStage: {notManual, ofBatchJob},
	}
)

// stages returns KWOK's own stages, some of them narrowed, as one stream.
func stages(kwok Built) ([]byte, error) {
	var out bytes.Buffer
	for _, name := range stageFiles {
		content, err := kwok.file(name)
		if err != nil {
			return nil, err
		}
		content, err = narrow(content, narrowed[name])
		if err != nil {
			return nil, fmt.Errorf("narrowing KWOK's %s: %w", name, err)
		}
		_, _ = fmt.Fprintf(&out, "---\n%s\n", content)
	}
	return out.Bytes(), nil
}

// narrow adds requirements to the selector of a stage.
func narrow(stage []byte, more []any) ([]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(stage, &object); err != nil {
		return nil, err
	}
	path := []string{"spec", "selector", "matchExpressions"}
	selector, found, err := unstructured.NestedSlice(object, path...)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("it has no %v", path)
	}
	if err := unstructured.SetNestedSlice(object, append(selector, more...), path...); err != nil {
		return nil, err
	}
	return json.Marshal(object) // JSON is YAML too
}
