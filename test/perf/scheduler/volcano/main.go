// Volcano runs Volcano's own scheduler over objects that it is told of, one session whenever it is asked to. It is a program of
// its own because Volcano and the operator need different versions of Kubernetes' libraries.
//
// It reads questions and writes answers in JSON, one a line: see Question and Answer. Its arguments are the path of a scheduler
// configuration.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
)

func main() {
	// Each session makes much garbage beside a heap of some ten megabytes.
	debug.SetGCPercent(400)
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if err := answer(os.Args[1], os.Stdin, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "volcano:", err)
		os.Exit(1)
	}
}

func answer(configuration string, from io.Reader, to io.Writer) error {
	text, err := os.ReadFile(configuration)
	if err != nil {
		return err
	}
	s, err := newScheduler(string(text))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	questions, answers := json.NewDecoder(bufio.NewReaderSize(from, 1<<20)), json.NewEncoder(out)
	for {
		var q Question
		if err := questions.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := s.run(&q)
		if err != nil {
			return err
		}
		if err := errors.Join(answers.Encode(a), out.Flush()); err != nil {
			return err
		}
	}
}
