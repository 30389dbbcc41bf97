package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// readApart is the argument with which this program only reads.
const readApart = "read"

// crowd is a program in which people read. Browsers are no part of what is measured, and here they take the same processors: so
// they run when nothing else wants to.
type crowd struct {
	program *exec.Cmd
	stop    io.Closer
	out     io.Reader
}

// gather has people read until disperse.
func gather(ctx context.Context, people []person) (*crowd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crowd{program: exec.CommandContext(ctx, "nice", "-n", "19", self, readApart)}
	c.program.Stderr = os.Stderr
	in, err := c.program.StdinPipe()
	if err != nil {
		return nil, err
	}
	if c.out, err = c.program.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := c.program.Start(); err != nil {
		return nil, err
	}
	c.stop = in
	return c, json.NewEncoder(in).Encode(people)
}

// disperse has them stop, and returns what they got.
func (c *crowd) disperse() (got seen, err error) {
	if err := c.stop.Close(); err != nil {
		return got, err
	}
	if err := json.NewDecoder(c.out).Decode(&got); err != nil {
		return got, fmt.Errorf("what readers got: %w", err)
	}
	return got, c.program.Wait()
}

// crowdOf is the program of a crowd: it is told of people, has them read until its input ends, and says what they got.
func crowdOf(ctx context.Context, in io.Reader, out io.Writer) error {
	var people []person
	told := json.NewDecoder(in)
	if err := told.Decode(&people); err != nil {
		return fmt.Errorf("who reads: %w", err)
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	return json.NewEncoder(out).Encode(readAll(reading, people))
}
