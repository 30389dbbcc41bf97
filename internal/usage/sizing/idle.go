package sizing

import "time"

// DeviceDay is what was seen of the accelerators of a task on a day of UTC.
type DeviceDay struct {
	// Day is the midnight that it began with.
	Day time.Time
	// LastBusy is until when they were last in use, zero for never on that day. LastSeen is of when the last sample is.
	LastBusy, LastSeen time.Time
	// Seen is for how long there are samples.
	Seen time.Duration
	// Pod is the name of the only pod that was seen; empty for several, or if that was not noted.
	Pod string
}

// DeviceDayOf reads the usage of a day; false for one in which no accelerator was seen. Days of an operator that did not note
// when one was last in use count as in use until their end.
func DeviceDayOf(at time.Time, u Usage) (DeviceDay, bool) {
	a := &u.Accelerators
	if a.HeldSeconds <= 0 || u.SeenSeconds <= 0 {
		return DeviceDay{}, false
	}
	d := DeviceDay{Day: at, Seen: time.Duration(u.SeenSeconds) * time.Second, LastSeen: time.Unix(a.LastSeen, 0), Pod: a.Pod}
	switch {
	case a.LastSeen == 0:
		d.LastSeen = at.Add(day * time.Second)
		if a.ActiveMilliseconds > 0 {
			d.LastBusy = d.LastSeen
		}
	case a.LastBusy > 0:
		d.LastBusy = time.Unix(a.LastBusy, 0)
	}
	return d, true
}

// IdleTime is for how long accelerators have been seen without use up to now: after they were last in use, and not before since.
// Time without samples is not idle, because it was not measured. A day's samples count as its last.
func IdleTime(days []DeviceDay, since time.Time) time.Duration {
	from := since
	for _, d := range days {
		if d.LastBusy.After(from) {
			from = d.LastBusy
		}
	}
	var idle time.Duration
	for _, d := range days {
		if d.LastSeen.After(from) {
			begin := d.Day
			if from.After(begin) {
				begin = from
			}
			idle += min(d.Seen, d.LastSeen.Sub(begin))
		}
	}
	return idle
}

// PodIdleTime is [IdleTime] of one pod of a task, by its name. Days on which other pods of the task were seen too do not count,
// because a day does not tell whose samples it has: whoever may create pods can have one pass for a pod of the task.
func PodIdleTime(days []DeviceDay, pod string, since time.Time) time.Duration {
	for _, d := range days {
		if d.Pod != pod && d.LastSeen.After(since) {
			since = d.LastSeen
		}
	}
	return IdleTime(days, since)
}
