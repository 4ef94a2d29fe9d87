// Package child runs a command of the user's.
package child

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"
)

// A Request says what to run.
type Request struct {
	Argv   []string // required: the command and its arguments
	Dir    string   // where; empty is our own directory
	Env    []string // nil is our own environment
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Inherit are files that the command and its children keep open, such as
	// a witness. They are given numbers that nothing else uses.
	Inherit []*os.File
}

// A Result says how a command ended.
type Result struct {
	Code     int            // as a shell has it in $?
	Signal   syscall.Signal // that ended it, or 0
	Duration time.Duration
}

// Shell is the argv that has a shell run command.
func Shell(command string) []string { return []string{"sh", "-c", command} }

// Run runs a command and waits for its end.
func Run(ctx context.Context, req Request) (Result, error) {
	return Result{}, nil
}
