// Package largest has the largest status that a job can have, to bound what the API server and its clients carry.
package largest

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tideline-io/tideline/api/v1beta1"
)

// workers is how many a job may have at most.
const workers = 4096

// sentence is a message about as long as those that Tideline writes: 140 bytes.
const sentence = "The core of 4096 workers waits in queue recommendation: it is short of 3,584 nvidia.com/gpu, and " +
	"512 are free now. Ask for fewer workers."

var (
	at  = metav1.NewTime(time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC))
	ref = v1beta1.GangRef{Namespace: "recommendation-prod", Name: "ctr-main-model-v4-nightly-2026-11-24"}
)

// Status sets every field, and fills every list to the bound of its schema. No job has all of it at a time.
func Status() v1beta1.ElasticTrainingJobStatus {
	st := v1beta1.ElasticTrainingJobStatus{
		ObservedGeneration: 99, Phase: v1beta1.PhaseSuspended, Reason: v1beta1.ReasonTooManyRestarts,
		Message: strings.Repeat(sentence, 8),
		Queue:   "recommendation-prod", Profile: "recommendation-prod", Tier: "small-traffic",
		Attempt: &v1beta1.AttemptStatus{
			Number: 99, StartTime: at, MinReplicas: 2048, MaxReplicas: workers, Tier: "small-traffic", NprocPerNode: 8,
			Model: "NVIDIA-H100-80GB-HBM3", Checked: "7c1b0d529f3e4a86",
			HostPort: 29999, DataSets: data(),
		},
		Sizing:   sizing(),
		Replicas: workers, ReadyReplicas: workers, Summary: "4096/4096 (2048..4096)", Place: 99, Accelerators: 8 * workers,
		Targeted: true, Selector: v1beta1.LabelJob + "=" + ref.Name, Restarts: 99,
		Incident: &v1beta1.Incident{Number: 99, Time: at}, Progress: 1_000_000_000,
		Training: &v1beta1.TrainingProgress{
			Step: 1e15, Total: 1e15, CheckpointStep: ptr.To[int64](1e15), Progress: "100%",
			StepsPerSecond: "0.00028", TimeLeft: "3649d18h",
			Straggler: &v1beta1.TrainingStraggler{Worker: 4095, Node: strings.Repeat("n", 253), Slowness: "1000000.0"},
		},
		LastFailure: &v1beta1.WorkerFailure{
			Worker: 4095, Time: at, ExitCode: 137, Reason: "OOMKilled", InPlace: true, LostSince: &at,
			Message: strings.Repeat(sentence, 4),
		},
		Preemption: &v1beta1.PreemptionStatus{By: ref, Since: at, LostSince: &at, Tier: "main-traffic"},
		LeftInVain: &v1beta1.LeftInVain{For: ref, Time: at, Workers: workers, Whole: true},
		Checkpoint: &v1beta1.CheckpointStatus{For: "Eviction", RequestTime: at, Number: at.Unix()},
		Elasticity: &v1beta1.ElasticityStatus{
			LastEvictionTime: &at, LastEvictionReason: "PreemptionByScheduler", GaveWayTo: &ref, LastGrowthTime: &at, NextGrowthTime: &at,
			QuickLosses: 17, BudgetTime: &at, Aim: v1beta1.MaxWorkers, LastRestartTime: &at, OutageSeconds: 3600, Speeds: speeds(at),
		},
		StrandedTime: &at, StartTime: &at, RunningSince: &at, ActiveSeconds: 10_000_000, BelowMinSince: &at,
		WaitSeconds: ptr.To[int64](1e6), MasterCompletionTime: &at, CompletionTime: &at,
	}
	for _, kind := range []string{
		v1beta1.ConditionReady, v1beta1.ConditionReconciling, v1beta1.ConditionStalled, v1beta1.ConditionSuspended,
		v1beta1.ConditionScheduled, v1beta1.ConditionSchedulerConfigured, v1beta1.ConditionFullSize, v1beta1.ConditionRangePending,
		v1beta1.ConditionPagesRouted, v1beta1.ConditionOwnerChecked, v1beta1.ConditionSucceeded, v1beta1.ConditionFailed,
	} {
		st.Conditions = append(st.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, ObservedGeneration: 99, LastTransitionTime: at,
			Reason: v1beta1.ReasonTooManyRestarts, Message: strings.Repeat(sentence, 2),
		})
	}
	for i := range v1beta1.MaxPages {
		st.Pages = append(st.Pages, v1beta1.PageStatus{
			Name: fmt.Sprintf("profiler-of-the-second-epoch-%d", i), URL: "https://" + strings.Repeat("p", 500),
		})
	}
	st.PageRoute = "HTTPRoute"
	for range 101 {
		st.RestartTimes = append(st.RestartTimes, at)
	}
	for i := range v1beta1.MaxRoomSources {
		st.RoomFrom = append(st.RoomFrom, v1beta1.RoomSource{
			Namespace: ref.Namespace, Name: fmt.Sprintf("%s-%d", ref.Name, i), Workers: 256,
		})
	}
	for i := range v1beta1.MaxAvoidedNodes {
		st.AvoidedNodes = append(st.AvoidedNodes, v1beta1.AvoidedNode{
			Name: fmt.Sprintf("ip-10-11-12-%d.eu-central-1.compute.internal", i), Worker: 4095, Time: at, Rejections: 9, Failed: true,
			Reason: "UnexpectedAdmissionError", Message: sentence, Until: &at,
		})
	}
	fillMembers(&st)
	return st
}

// fillMembers fills the lists that grow with the number of workers.
func fillMembers(st *v1beta1.ElasticTrainingJobStatus) {
	for i := range int32(workers) {
		st.Members = append(st.Members, v1beta1.Member{
			Index: i, UID: types.UID(fmt.Sprintf("7c1b0d52-9f3e-4a86-b1d7-2f6e8a90%04x", i)), State: v1beta1.MemberStranded, Restarts: 10,
		})
		st.Incident.Workers = append(st.Incident.Workers, i)
		st.Elasticity.Evicted = append(st.Elasticity.Evicted, i)
		if i >= workers-v1beta1.MaxRetries {
			st.Retries = append(st.Retries, v1beta1.Retry{Index: i, Failures: 10, Rejections: 10, Time: at})
		}
	}
}

func sizing() *v1beta1.SizingStatus {
	st := &v1beta1.SizingStatus{
		Mode: v1beta1.SizingRecommend, Time: at, Summary: "cpu -3.5 memory -120Gi", Accelerators: sentence,
	}
	for i := range 64 {
		st.Resources = append(st.Resources, v1beta1.SizedResource{
			Role: "worker", Container: fmt.Sprintf("sidecar-%d", i), Resource: "memory", Requested: resource.MustParse("200Gi"),
			Sized: resource.MustParse("80Gi"), Reason: v1beta1.SizedByUse,
			Message:       "7 days of 12 runs used at most 61Gi, to which 30 % are added. The template asks for 200Gi.",
			OOMKilledTime: &at,
		})
	}
	return st
}

// speeds of as many sizes as are kept.
func speeds(measured metav1.Time) (all []v1beta1.MeasuredSpeed) {
	for i := range int32(v1beta1.MaxSpeeds) {
		all = append(all, v1beta1.MeasuredSpeed{Workers: workers - i, PercentPerHour: "0.00000000000000417", Time: measured})
	}
	return all
}

func data() []v1beta1.DataPlace {
	places := make([]v1beta1.DataPlace, v1beta1.MaxJobDataSets)
	for i := range places {
		places[i] = v1beta1.DataPlace{
			Name: fmt.Sprintf("recommendation-clicks-%d", i), Version: "2026-11-24", Claim: "recommendation-clicks",
			Folder: "2026/11/24", Prefix: "s3://recommendation-prod/clicks/2026-11-24",
		}
	}
	return places
}
