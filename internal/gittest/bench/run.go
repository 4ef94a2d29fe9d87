package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"

	"gitland/internal/gittest"
)

// run calls f as a test is called, outside of one: with a T that cleans up
// after f, and at whose Fatalf and Skipf f ends.
func run(f func(gittest.T)) (skipped string, err error) {
	t := &bencher{}
	// Ctrl-C ends the command that is running, and by its failure us, so that
	// nothing is left behind.
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	defer signal.Stop(interrupt)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer t.cleanUp()
		f(t)
	}()
	<-ended
	return t.skipped, t.err
}

// A bencher is used by one goroutine.
type bencher struct {
	skipped  string
	err      error
	cleanups []func()
}

func (t *bencher) Helper() {}

func (t *bencher) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *bencher) Fatalf(format string, args ...any) {
	t.err = fmt.Errorf(format, args...)
	runtime.Goexit()
}

func (t *bencher) Skipf(format string, args ...any) {
	t.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (t *bencher) TempDir() string {
	dir, err := os.MkdirTemp("", "gitland-bench-")
	if err != nil {
		t.Fatalf("%w", err)
	}
	t.Cleanup(func() { t.err = errors.Join(t.err, os.RemoveAll(dir)) })
	return dir
}

func (t *bencher) cleanUp() {
	for len(t.cleanups) > 0 {
		last := len(t.cleanups) - 1
		f := t.cleanups[last]
		t.cleanups = t.cleanups[:last]
		f()
	}
}
