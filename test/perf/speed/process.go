package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticks are what Linux counts the time of processes in: 100 a second on every platform that Go has.
const ticks = 100

// cpuOf is the CPU time that a process has used, in both modes.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(stat)
}

// parseStat reads the fields utime and stime of proc_pid_stat(5). The second field is a name in parentheses, which may have
// spaces.
func parseStat(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%q has too few fields", stat)
	}
	var sum time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * time.Second / ticks
	}
	return sum, nil
}

// memory of a process, in bytes: the most that it ever had in RAM, what it has, and what of that are pages of files, as its own
// program.
type memory struct{ peak, now, files int64 }

func memoryOf(pid int) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	return parseStatus(string(status))
}

// parseStatus reads proc_pid_status(5).
func parseStatus(status string) (m memory, err error) {
	into := map[string]*int64{"VmHWM": &m.peak, "VmRSS": &m.now, "RssFile": &m.files}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if field := into[name]; field != nil {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return m, err
			}
			*field = kilobytes << 10
			delete(into, name)
		}
	}
	if len(into) > 0 {
		return m, fmt.Errorf("the status of a process lacks %d fields", len(into))
	}
	return m, nil
}
