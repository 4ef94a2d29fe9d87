package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A status is what git land says of the lease under which the release would land.
type status struct {
	Lease, Remote string
	Base          string // the commit that the branch is at there
	Hold          *struct {
		Operation, Holder string
		Fence             uint64
		Own               bool // by the token that this process has
	}
	Lost       *struct{ Message string } // that the hold of our token was taken off it
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

// notOurs says who holds the lease, if it is not this process.
func (s status) notOurs() string {
	if s.Hold == nil {
		return fmt.Sprintf("nobody holds the lease %s at %s", s.Lease, s.Remote)
	}
	return fmt.Sprintf("the lease %s at %s is held by %s, operation %s, of which this session has no token", s.Lease, s.Remote, s.Hold.Holder, s.Hold.Operation)
}

// demand refuses to go on without the lease, which a step has of its landing.
func (t *tool) demand() (status, error) {
	s, err := t.status()
	if err != nil {
		return s, err
	}
	if _, ok := s.holds(); ok {
		return s, nil
	}
	f := &fault{held, s.notOurs(), "git lease show " + quote(s.Lease)}
	if s.Hold == nil {
		f.code, f.hint = lost, t.underLease(t.name, t.args...)
	}
	if os.Getenv("GIT_LAND_STEP") != "" {
		f.hint = "git land status   (it says what has become of the landing, and what is next)"
	}
	return s, f
}

// leased has a command run under the lease. Where this session does not hold it that is the
// same command again, within git lease run: it refuses with exit 3 and the operation of
// who holds the lease, and gives the lease back however the command ends.
func (t *tool) leased() (operation string, err error) {
	if os.Getenv("GIT_LEASE_TOKEN") != "" || os.Getenv("GIT_LEASE_SESSION") != "" {
		s, err := t.status()
		if operation, ok := s.holds(); ok || err != nil {
			return operation, err
		}
		if s.Lost != nil { // what was begun under it may be half done, and somebody else's by now
			return "", &fault{lost, s.Lost.Message, "unset GIT_LEASE_TOKEN GIT_LEASE_SESSION && " + t.call(t.name) + "   (as somebody who holds nothing)"}
		}
	}
	argv := slices.Concat([]string{"git", "lease", "run", "-m", "release " + t.name}, t.at(), []string{"--", self(), t.name}, t.at())
	if t.dirty {
		argv = append(argv, "--dirty")
	}
	return "", t.become(argv)
}

// underLease is the command line of this program under a lease of its own, for a shell.
func (t *tool) underLease(command string, operands ...string) string {
	return strings.Join(slices.Concat([]string{"git", "lease", "run"}, t.at(), []string{"--", t.call(command, operands...)}), " ")
}

// givenUp is how one does by hand a step of a landing that was given up.
func (t *tool) givenUp(step string, operands ...string) string {
	return "   (or, for what a release that was given up lacks: GIT_LAND_COMMIT=COMMIT " + t.underLease(step, operands...) + "; git land log has the COMMIT)"
}

// chain is the first event of the lease, which names all that follow. A fence grows within
// one chain alone: the lease of another branch or repository has a chain of its own.
func (t *tool) chain(s status) (string, error) {
	text, err := t.git("lease", "show", "--json", "--remote", s.Remote, s.Lease)
	if err != nil {
		return "", err
	}
	shown := struct{ Leases []struct{ Tip string } }{}
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		return "", err
	}
	return t.git("rev-list", "--first-parent", "--max-parents=0", shown.Leases[0].Tip)
}
