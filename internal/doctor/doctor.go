// Package doctor looks over a clone and its authority, and says what works and
// what does not.
//
// It promises that each complaint comes with the command that mends it, and that a
// sound clone has none. It tries things rather than believe configuration: it
// writes and deletes refs of the probe at the authority, and runs the hook on made-up
// input. It mends nothing itself.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/hook"
	"gitland/internal/land"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
)

// A Check is one thing that was looked at.
type Check struct {
	Name string `json:"name"` // stable
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	// Command mends it, or begins to; empty where nothing is wrong.
	Command string `json:"command,omitempty"`
}

// A Request says what to look at.
type Request struct {
	Repo   *git.Repo
	Remote string // "" chooses by configuration
	Branch object.Ref
	Tool   string // the absolute path of git-lease
	Now    func() time.Time
	Notice func(format string, args ...any)
}

// skew is by how much a clock may go wrong before it is worth a word.
const skew = 5 * time.Minute

// Examine makes all checks, in an order in which one explains the next. What
// cannot be looked at because of an earlier complaint is left out.
func Examine(ctx context.Context, r Request) []Check {
	d := &doctor{Request: r}
	d.version(ctx)
	d.identity()
	d.signing(ctx)
	d.mirrors()
	d.config()
	if !d.authority() {
		return d.checks
	}
	d.remote(ctx)
	d.hooks(ctx)
	d.unfinished()
	return d.checks
}

type doctor struct {
	Request
	l      *ledger.Ledger
	view   ledger.View
	checks []Check
}

func (d *doctor) good(name, format string, args ...any) {
	d.checks = append(d.checks, Check{Name: name, OK: true, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) bad(name, command, format string, args ...any) {
	d.checks = append(d.checks, Check{Name: name, Text: fmt.Sprintf(format, args...), Command: command})
}

// failed is bad for an error, with its own way on where it has one.
func (d *doctor) failed(name, command string, err error) {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Hint != "" {
		command = f.Hint
	}
	d.bad(name, command, "%v", err)
}

func (d *doctor) version(ctx context.Context) {
	version, err := d.Repo.Version(ctx)
	if err != nil {
		d.failed("git", "git version", err)
		return
	}
	d.good("git", "git %s (%s or newer is wanted)", version, git.MinVersion)
}

func (d *doctor) identity() {
	ident, err := d.Repo.Ident()
	if err != nil {
		d.failed("identity", "git config user.name 'Your Name' && git config user.email you@example.com", err)
		return
	}
	d.good("identity", "events are by %s", ident)
}

// mirrors finds remotes to which a plain git push deletes what is not here, the
// leases too, without telling a hook of it.
func (d *doctor) mirrors() {
	for _, name := range d.Repo.Config.Remotes() {
		if mirror, err := d.Repo.Config.Bool("remote."+name+".mirror", false); mirror || err != nil {
			d.bad("mirror", fault.Command("git", "config", "--unset", "remote."+name+".mirror"),
				"git push to %s mirrors this clone: it deletes the leases, records and verifications there, and no hook hears of it", name)
		}
	}
}

// config finds settings that would be ours if they were spelt otherwise: git takes any.
func (d *doctor) config() {
	for _, key := range policy.Unknown(d.Repo.Config) {
		d.bad("config", fault.Command("git", "config", "--unset-all", key), "git's configuration has %s, which means nothing to git land and git lease", key)
	}
}

func (d *doctor) authority() bool {
	var err error
	if d.l, err = ledger.Open(d.Repo, ledger.Options{Remote: d.Remote, Now: d.Now, Notice: d.Notice}); err != nil {
		d.failed("authority", "git remote -v", err)
		return false
	}
	if d.l.IsLocal() {
		d.good("authority", "this repository decides, for its worktrees")
	} else {
		d.good("authority", "%s decides", d.l.Remote)
	}
	return true
}

// target looks whether a target that there is not is the first branch that lands.
func (d *doctor) target(ctx context.Context) {
	switch branches, err := d.l.Branches(ctx); {
	case err != nil:
		d.failed("target", "git ls-remote "+d.l.Remote, err)
	case len(branches) > 0:
		d.bad("target", d.l.Command("git", "land", "override", "--reason", "WHY", "COMMIT:"+string(d.view.Branch))+"   (or have land.onto name one that there is)",
			"%s has no branch %s, so nothing can land there", d.l.Remote, d.view.Branch.Branch())
	}
}

func (d *doctor) remote(ctx context.Context) {
	var err error
	d.view, err = d.l.Fetch(ctx, ledger.Want{Branch: d.Branch})
	if err != nil {
		d.failed("reachable", "git ls-remote "+d.l.Remote, err)
		return
	}
	d.good("reachable", "%s answers; the target is %s, under the lease %s", d.l.Remote, d.view.Branch.Branch(), d.view.Name)
	if d.view.Base == "" {
		d.target(ctx)
	}
	if d.view.Problem != nil {
		d.failed("chain", "git lease log", d.view.Problem)
	}
	d.clock()
	d.policy()
	if _, err := d.Repo.Ident(); err != nil {
		return // nothing can be written without one
	}
	found, err := d.l.Examine(ctx)
	if err != nil {
		d.failed("writable", "git lease doctor", err)
		return
	}
	d.good("writable", "our refs can be written there, and its compare-and-swap is one")
	switch {
	case found.Atomic:
		d.good("atomic", "it moves several refs all or none")
	case !found.Fenced:
		d.good("atomic", "it cannot move several refs together: landings take the lease, announce themselves, and move one ref after the other")
	}
	if found.Fenced && !found.Atomic {
		d.bad("fence", "git config receive.advertiseAtomic true   (in the repository at "+d.l.Remote+", by whoever runs it)",
			"it watches over our refs and cannot move several together, so nothing can land: a branch moves there only in one push with its event")
	} else if found.Fenced {
		d.good("fence", "it watches over our refs: a branch moves there only with its event")
	} else if !d.l.IsLocal() {
		d.good("fence", "nobody watches over our refs there: a push with --no-verify, or by another client, goes by (git lease hook install --server, for whoever runs it)")
	}
}

// policy looks at what the team has agreed on, and whether its commands run here.
func (d *doctor) policy() {
	team, branch := d.view.Policy, d.view.Branch.Branch()
	left, err := policy.Unaccepted(d.l.Dir, team.Commands()...)
	switch {
	case team.Problem != nil:
		words := []string{"git", "land", "--force-unverified", "--reason", "WHY", "-m", "Mend the policy"}
		if d.Branch != "" {
			words = append(words, "--onto", branch)
		}
		d.bad("policy", d.l.Command(words...)+" -- "+policy.File, "on %s: %v", branch, team.Problem)
	case err != nil:
		d.failed("policy", "git land init", err)
	case len(left) > 0:
		d.bad("policy", d.l.Command("git", "land", "init"), "%s on %s has commands that nobody has let run in this clone: %d", policy.File, branch, len(left))
	case team.Blob == "":
		d.good("policy", "%s has no %s", branch, policy.File)
	default:
		d.good("policy", "%s on %s is understood, and the commands in it may run here", policy.File, branch)
	}
}

// clock compares this clock with those of others, as far as the newest event
// tells: what was done in the future was done by a clock that is ahead, or this one is
// behind. Nothing is decided by clocks, but people read them.
func (d *doctor) clock() {
	if d.view.Tip == nil {
		return
	}
	if ahead := d.view.Tip.Time.Sub(d.Now()); ahead > skew {
		d.bad("clock", "date", "the newest event, by %s%s, is %s in the future: that clock is ahead, or this one is behind",
			d.view.Tip.Actor, on(*d.view.Tip), ahead.Round(time.Minute))
		return
	}
	d.good("clock", "no event is of the future")
}

func on(e event.Event) string {
	if e.By.Host == "" {
		return ""
	}
	return " on " + e.By.Host
}

// hooks looks at the pre-push hook of each worktree, and tries it where it is.
func (d *doctor) hooks(ctx context.Context) {
	if d.l.IsLocal() {
		return // nobody pushes to it
	}
	states, err := hook.Status(ctx, d.Repo, d.Tool, hook.Client)
	if err != nil {
		d.failed("hook", "git lease hook status", err)
		return
	}
	for _, s := range states {
		if s.State != "active" {
			why := ""
			if s.Ignored {
				why = ", and git before 2.54 does not run the one in its configuration"
			} else if s.Off != "" {
				why = " by " + s.Off
			}
			state := s.State
			if state == "other" {
				state = "not ours"
			}
			d.bad("hook", s.Mend(), "in %s the pre-push hook is %s%s: a plain git push goes around the lease", s.Worktree, state, why)
			continue
		}
		if err := d.try(ctx, s); err != nil {
			d.bad("hook", fault.Command("git", "-C", s.Worktree, "lease", "hook", "install"), "in %s the pre-push hook lets a push through that it should refuse: %v", s.Worktree, err)
			continue
		}
		d.good("hook", "in %s the pre-push hook is active: %s", s.Worktree, s.Path)
	}
}

// try runs the hook on a push that rewrites the lease, which is refused whoever
// holds what.
func (d *doctor) try(ctx context.Context, s hook.State) error {
	ref, err := d.l.LeaseRef("main")
	if err != nil {
		return err
	}
	some := d.Repo.Format.EmptyTree()
	line := fmt.Sprintf("(delete) %s %s %s\n", d.Repo.Format.Zero(), ref, some)
	refused, said, err := d.Repo.RunHook(ctx, s.Path, s.Worktree, line, d.l.Remote, d.l.Remote)
	if err != nil {
		return err
	}
	if !refused {
		return fmt.Errorf("it was told that %s is deleted, and said %q", ref, strings.TrimSpace(said))
	}
	return nil
}

func (d *doctor) unfinished() {
	list, err := land.ListUnfinished(d.l.Dir)
	if err != nil {
		d.failed("unfinished", "git land status", err)
	}
	list = slices.DeleteFunc(list, func(u land.Unfinished) bool { return u.Alive })
	for _, u := range list {
		d.bad("unfinished", u.Next, "operation %s on %s did not end", u.Operation, u.Branch.Branch())
	}
	if err == nil && len(list) == 0 {
		d.good("unfinished", "no landing of this clone is left over")
	}
	if waiting, err := d.l.Dir.Outbox().List(); err == nil && len(waiting) > 0 {
		d.bad("unpublished", d.l.Command("git", "land", "reconcile", "--fix")+"   (or any landing: what waits goes with it)",
			"unpublished verifications of this clone: %d, in %s", len(waiting), filepath.Join(d.Repo.CommonDir, "lease", "outbox"))
	}
}
