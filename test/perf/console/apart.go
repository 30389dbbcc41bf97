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

// readerProcess is a program of its own in which people read, at the lowest priority. Browsers are no part of what is measured,
// and here they share the processors with what is.
type readerProcess struct {
	program *exec.Cmd
	in      io.Closer
	out     io.Reader
}

// startReaders has people read until stop.
func startReaders(ctx context.Context, people []person) (*readerProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &readerProcess{program: exec.CommandContext(ctx, "nice", "-n", "19", self, readApart)}
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
	c.in = in
	return c, json.NewEncoder(in).Encode(people)
}

// stop ends the program, and returns what they got.
func (c *readerProcess) stop() (got seen, err error) {
	if err := c.in.Close(); err != nil {
		return got, err
	}
	if err := json.NewDecoder(c.out).Decode(&got); err != nil {
		return got, fmt.Errorf("what readers got: %w", err)
	}
	return got, c.program.Wait()
}

// readUntilEnd is that program: it reads who the people are, has them read until its input ends, and writes what they got.
func readUntilEnd(ctx context.Context, in io.Reader, out io.Writer) error {
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
