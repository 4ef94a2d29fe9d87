package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// A status is what git land says of the lease under which the release would land.
type status struct {
	Lease, Remote string
	Base          string // the commit that the branch is at there
	Hold          *struct {
		Operation, Holder string
		Own               bool // by the token that this process has
	}
	Unfinished []struct{ Operation, Next string }
}

func (t *tool) status() (s status, err error) {
	cmd := exec.Command("git", append([]string{"land", "status", "--json"}, t.at()...)...)
	cmd.Dir = t.top
	text, err := cmd.Output()
	refusal := struct {
		Error struct{ Message, Hint string }
	}{}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && json.Unmarshal(text, &refusal) == nil {
		return s, &fault{exit.ExitCode(), refusal.Error.Message, refusal.Error.Hint}
	}
	if err != nil {
		return s, fmt.Errorf("git land status: %w", err)
	}
	return s, json.Unmarshal(text, &s)
}

// holds is the operation under which this process works, if it does. It believes no
// variable: the remote says whether our token holds the lease. That is the lease of the
// branch, whatever other ones a session has.
func (s status) holds() (operation string, ok bool) {
	if s.Hold == nil || !s.Hold.Own {
		return "", false
	}
	return s.Hold.Operation, true
}

// demand refuses to go on without the lease.
func (t *tool) demand() (operation string, err error) {
	s, err := t.status()
	if err != nil {
		return "", err
	}
	operation, ok := s.holds()
	switch {
	case ok:
		return operation, nil
	case s.Hold == nil:
		return "", &fault{lost, fmt.Sprintf("this session does not hold the lease %s at %s: nobody does", s.Lease, s.Remote),
			"unset GIT_LEASE_TOKEN   (without one, prepare and publish take the lease themselves)"}
	}
	return "", &fault{held, fmt.Sprintf("the lease %s at %s is held by %s, operation %s, and not by this session", s.Lease, s.Remote, s.Hold.Holder, s.Hold.Operation),
		"git lease show " + quote(s.Lease)}
}

// leased has a command run under the lease. Where this session has no token that is the
// same command again, within git lease run: it refuses with exit 3 and the operation of
// who holds the lease, and gives the lease back however the command ends.
func (t *tool) leased(command string) (operation string, err error) {
	if os.Getenv("GIT_LEASE_TOKEN") != "" {
		return t.demand()
	}
	if os.Getenv("GIT_LEASE_SESSION") != "" { // git lease may keep a token for it
		s, err := t.status()
		if operation, ok := s.holds(); ok || err != nil {
			return operation, err
		}
	}
	argv := slices.Concat([]string{"git", "lease", "run", "-m", "release " + command}, t.at(), []string{"--", self(), command}, t.at())
	if t.dirty {
		argv = append(argv, "--dirty")
	}
	return "", t.become(argv)
}
