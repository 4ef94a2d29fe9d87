// Package setup brings a clone, and the repository that it lands in, to where landings
// are safe: configuration, hook, the branch under its lease.
//
// It promises that what it did before it does not do again, so that it may be run
// twice and by everybody, and that nothing is written before the authority was seen to
// take our refs. It refuses to let commands of a policy run: it says which want to.
package setup

import (
	"context"
	"fmt"
	"time"

	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/hook"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
)

// A Request says what to set up.
type Request struct {
	Repo   *git.Repo
	Remote string     // the authority; "" chooses by configuration
	Branch object.Ref // the target; "" chooses by policy, configuration and the authority's HEAD
	Tool   string     // the absolute path of git-lease
	Now    func() time.Time
	Notice func(format string, args ...any)
	Step   func(Step) // told of each step when it is done; may be nil
}

// A Step is one thing that is set up.
type Step struct {
	Name string `json:"name"` // stable: authority, target, writable, config, hook, lease, policy
	// Done is "done", "ok" for what was so before, or "later" for what cannot be yet.
	Done string `json:"done"`
	Text string `json:"text"`
}

// A Result says how things are now.
type Result struct {
	Remote string
	Branch object.Ref
	Lease  string
	Steps  []Step
	// Unaccepted are the commands of the policy that do not run in this clone yet.
	Unaccepted []policy.Command
	// Policy reports whether the target has one.
	Policy bool
}

// Accept lets the commands of the policy run in this clone from now on.
func (r *Result) Accept(dir session.Dir, tell func(Step)) error {
	if err := policy.Accept(dir, r.Unaccepted...); err != nil {
		return err
	}
	r.Unaccepted = nil
	step := Step{"policy", Done, "the commands of " + policy.File + " run in this clone from now on"}
	r.Steps = append(r.Steps, step)
	tell(step)
	return nil
}

// The words of Step.Done.
const (
	Done  = "done"
	OK    = "ok"
	Later = "later"
)

// Run sets everything up, or says what keeps it from that. The steps up to there are in
// the result. The error is one of opening, reading and writing the authority; of class
// Usage for a target that the policy there does not let be chosen; of class Conflict
// where the hook cannot be installed, or another lease has the branch.
func Run(ctx context.Context, r Request) (Result, error) {
	l, err := ledger.Open(r.Repo, ledger.Options{Remote: r.Remote, Now: r.Now, Notice: r.Notice})
	if err != nil {
		return Result{}, err
	}
	s := &setup{Request: r, l: l}
	s.Result.Remote = l.Remote
	for _, step := range []func(context.Context) error{s.target, s.writable, s.configure, s.hook, s.lease, s.policy} {
		if err := step(ctx); err != nil {
			return s.Result, err
		}
	}
	return s.Result, l.Flush(ctx, "land: init")
}

type setup struct {
	Request
	l    *ledger.Ledger
	view ledger.View
	onto bool // land.onto has to say what the target is
	Result
}

func (s *setup) tell(name, done, format string, args ...any) {
	step := Step{name, done, fmt.Sprintf(format, args...)}
	s.Steps = append(s.Steps, step)
	if s.Request.Step != nil {
		s.Request.Step(step)
	}
}

// target reads the authority, and finds out whether the branch that was asked for has
// to be configured.
func (s *setup) target(ctx context.Context) (err error) {
	s.view, err = s.l.Fetch(ctx, ledger.Want{})
	if chosen := s.Request.Branch; chosen != "" && (err == nil && s.view.Branch != chosen || fault.ClassOf(err) == fault.Usage) {
		usual := s.view.Branch
		if s.view, err = s.l.Fetch(ctx, ledger.Want{Branch: chosen}); err != nil {
			return err
		}
		if s.onto = true; s.view.Base == "" && usual != "" {
			return fault.New(fault.Usage, "%s has no branch %s", s.l.Remote, chosen.Branch()).
				WithHint("%s", s.l.Command("git", "land", "init", "--onto", usual.Branch()))
		}
	}
	if err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	s.Result.Branch, s.Result.Lease = s.view.Branch, s.view.Name
	where := s.l.Remote + " decides"
	if s.l.IsLocal() {
		where = "this repository decides, for its worktrees"
	}
	s.tell("target", OK, "%s; landings go onto %s, under the lease %s", where, s.view.Branch.Branch(), s.view.Name)
	if s.view.Problem != nil {
		return s.view.Problem
	}
	return nil
}

// settle finds out whether land.onto has to say what the target is.
func (s *setup) settle(ctx context.Context) error {
	team, err := s.l.HeadPolicy(ctx)
	byPolicy := team.Says("land.onto")
	switch {
	case err != nil:
		return err
	case byPolicy && s.Request.Branch == team.Target:
		return nil
	case s.Request.Branch != "" && byPolicy:
		return fault.New(fault.Usage, "%s at %s has landings go onto %s, which counts before a clone's own land.onto", policy.File, s.l.Remote, team.Target.Branch()).
			WithHint("name the branch each time: %s", s.l.Command("git", "land", "--onto", s.view.Branch.Branch()))
	case s.Request.Branch == "" && (!s.l.IsLocal() || byPolicy || team.Target != ""):
		return nil
	case s.Request.Branch == "" && s.Repo.GitDir != s.Repo.CommonDir:
		return fault.New(fault.Usage, "each worktree has a HEAD of its own, and this one is not the main one's: onto which branch landings go is not clear").
			WithHint("%s", s.l.Command("git", "land", "init", "--onto", "BRANCH"))
	}
	s.onto = true // HEAD may move, and each worktree has one of its own
	return nil
}

// writable tries the authority, whatever this clone remembers of it.
func (s *setup) writable(ctx context.Context) error {
	if s.l.IsLocal() {
		return nil
	}
	found, err := s.l.Examine(ctx)
	if err != nil {
		return err
	}
	text := " takes our refs, compares and swaps, and moves several of them all or none"
	if !found.Atomic {
		text = " takes our refs, and compares and swaps; it moves one at a time"
	}
	if found.Fenced {
		text += "; its hooks watch over them"
	}
	s.tell("writable", OK, "%s", s.l.Remote+text)
	return nil
}

// configure writes down what was chosen, so that it stays so when another remote
// comes, or the authority's HEAD moves.
func (s *setup) configure(ctx context.Context) error {
	if err := s.put(ctx, "lease.remote", s.l.Remote); err != nil {
		return err
	}
	if s.onto {
		if err := s.put(ctx, "land.onto", s.view.Branch.Branch()); err != nil {
			return err
		}
	}
	return s.l.ShowRecords(ctx)
}

func (s *setup) put(ctx context.Context, key, value string) error {
	if s.Repo.Config.Get(key) == value {
		s.tell("config", OK, "%s is %s", key, value)
		return nil
	}
	if err := s.Repo.PutConfig(ctx, key, value); err != nil {
		return err
	}
	if now := s.Repo.Config.Get(key); now != value {
		return fault.New(fault.Conflict, "%s is %s now in this clone's own configuration, and another scope, which counts before that, has %s", key, value, now).
			WithHint("%s   (it says where; take it out there, then again)", fault.Command("git", "config", "--show-scope", "--show-origin", "--get-all", key))
	}
	s.tell("config", Done, "%s is %s from now on", key, value)
	return nil
}

func (s *setup) hook(ctx context.Context) error {
	if s.l.IsLocal() {
		return nil // nobody pushes to it
	}
	changes, err := hook.Install(ctx, s.Repo, s.Tool, hook.Client)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.Done == "removed" {
			s.tell("hook", Done, "git has %s in its configuration now, and %s is as it was before", c.Hook, c.Path)
			continue
		}
		done, also := Done, ""
		if c.Done == "unchanged" {
			done = OK
		}
		if c.Before != "" {
			also = "; what was there before runs after it"
		}
		s.tell("hook", done, "%s refuses pushes that go around the lease: %s%s", c.Hook, c.Path, also)
	}
	return nil
}

func (s *setup) lease(ctx context.Context) error {
	branch := s.view.Branch.Branch()
	if s.view.Base == "" {
		branches, err := s.l.Branches(ctx)
		if err != nil {
			return err
		}
		if len(branches) > 0 { // then no landing makes one: it could be misspelt
			s.tell("lease", Later, "%s has no branch %s, so nothing can land there before somebody makes it: %s", s.l.Remote, branch,
				s.l.Command("git", "land", "override", "--reason", "WHY", "COMMIT:"+string(s.view.Branch)))
			return nil
		}
		s.tell("lease", Later, "%s has no branch %s yet: the first landing makes it, and puts it under the lease %s", s.l.Remote, branch, s.view.Name)
		return nil
	}
	done, err := lease.Adopt(ctx, s.l, lease.Adoption{Want: ledger.Want{Name: s.view.Name, Branch: s.view.Branch}})
	if err != nil {
		return err
	}
	if done.Event == nil {
		s.tell("lease", OK, "%s is under the lease %s", branch, done.Name)
		return nil
	}
	s.tell("lease", Done, "%s is under the lease %s from now on", branch, done.Name)
	return nil
}

func (s *setup) policy(context.Context) error {
	team := s.view.Policy
	switch {
	case team.Problem != nil:
		return team.Problem
	case team.Blob == "":
		return nil
	}
	s.Policy = true
	var err error
	commands := team.Commands()
	s.Unaccepted, err = policy.Unaccepted(s.l.Dir, commands...)
	if err == nil && len(s.Unaccepted) == 0 && len(commands) > 0 {
		s.tell("policy", OK, "the commands of %s run in this clone", policy.File)
	}
	return err
}
