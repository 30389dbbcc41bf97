package main

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	_ "unsafe" // for linkname
)

// This file and the assembly beside it are in operators that tests build, and in no other: testutil.BuildSettableOperator lays them
// over package main. They have the wall clock say what a file says, as that of a node does whose clock is set:
//
//	time.Now -> runtime -> vdsoClockgettimeSym: the kernel's function, or ours, which adds secondsAhead to the wall clock
//
// The monotonic clock stays as it is. A Go that reads its clocks in another way does not link this, or ends the program at once.

// clockFile is the variable with the file's path. The file is read at the start and at each SIGUSR1.
const clockFile = "TIDELINE_TEST_CLOCK"

//go:linkname vdsoClockgettimeSym runtime.vdsoClockgettimeSym
var vdsoClockgettimeSym uintptr

// kernelClock is the kernel's function, and secondsAhead what ours adds. The assembly reads both.
var kernelClock, secondsAhead uint64

// settableClock is called as the kernel's function is, and settableClockPC says where it is.
func settableClock()
func settableClockPC() uintptr

func init() {
	if os.Getenv(clockFile) == "" {
		return
	}
	if kernelClock = uint64(vdsoClockgettimeSym); kernelClock == 0 {
		endWithoutClock("the kernel has no function for it")
	}
	vdsoClockgettimeSym = settableClockPC()
	setClock()
	set := make(chan os.Signal, 1)
	signal.Notify(set, syscall.SIGUSR1)
	go func() {
		for range set {
			setClock()
		}
	}()
}

// setClock sets the clock to what the file says, and holds that it was, and that the monotonic clock was not.
func setClock() {
	content, err := os.ReadFile(os.Getenv(clockFile))
	if err != nil {
		endWithoutClock(err.Error())
	}
	ahead, err := time.ParseDuration(strings.TrimSpace(string(content)))
	if err != nil {
		endWithoutClock(err.Error())
	}
	before := time.Now()
	by := ahead - time.Duration(atomic.SwapUint64(&secondsAhead, uint64(ahead/time.Second)))*time.Second
	after := time.Now()
	wall, steady := after.Round(0).Sub(before.Round(0))-by, after.Sub(before)
	if wall.Abs() > time.Minute || steady.Abs() > time.Minute {
		endWithoutClock(fmt.Sprintf("the wall clock went on by %s, and the monotonic one by %s", wall, steady))
	}
	fmt.Fprintf(os.Stderr, "The clock of this node is %s ahead.\n", ahead)
}

func endWithoutClock(why string) {
	fmt.Fprintln(os.Stderr, "The clock cannot be set:", why)
	os.Exit(1)
}
