package sizing

// Part is a container of a role; empty for what is known of its pods as a whole.
type Part struct {
	Role      Role
	Container string
}

// History is what is known of a task when a job of it starts.
type History struct {
	// WindowDays is of how many days, the last ones, from 1 to 28.
	WindowDays int
	// Usage of the window, merged, by part. A part that is not in it was never seen.
	Usage map[Part]Usage
	// Unavailable says why what was used lately is not known, in words for users; empty where it is.
	Unavailable string
}
