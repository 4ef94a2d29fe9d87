package land

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// rebaseCommand brings HEAD onto the target by hand.
func rebaseCommand(l *ledger.Ledger, branch object.Ref) string {
	if l.IsLocal() {
		return fault.Command("git", "rebase", "--autostash", branch.Branch())
	}
	return fault.Command("git", "pull", "--rebase", "--autostash", l.Remote, branch.Branch())
}

// conflict tells a merge conflict as a refusal, with what both sides did to the paths
// and the commands that mend it; other errors stay as they are. commit is the one of
// the change that conflicts, "" where there is none.
func (p *plan) conflict(ctx context.Context, l *ledger.Ledger, err error, commit object.OID) error {
	conflict, ok := errors.AsType[*git.ConflictError](err)
	if !ok {
		return err
	}
	what := "the change"
	if commit != "" {
		what = "commit " + commit.Short()
	}
	var told []string
	for _, path := range conflict.Paths {
		if kinds := conflict.Kinds(path); len(kinds) > 0 {
			path += " (" + strings.Join(kinds, ", ") + ")"
		}
		told = append(told, path)
	}
	theirs, yours, err := p.bothSides(ctx, l, conflict.All())
	if err != nil {
		return err
	}
	m, err := p.mending(ctx, l, conflict.All())
	if err != nil {
		return err
	}
	branch := p.view.Branch.Branch()
	f := fault.New(fault.Conflict, "%s conflicts with %s at %s in: %s", what, branch, p.view.Base.Short(), shortList(told)).
		WithFacts(map[string]any{"paths": conflict.Paths, "conflicts": conflict.Conflicts, "base": p.view.Base, "commit": commit,
			"theirs": theirs, "yours": yours, "mend": m}).
		WithDetails(sideLines(branch, theirs)...)
	if p.change.kind == fromCommits {
		f.WithDetails(sideLines("yours", yours)...)
	} else {
		f.WithDetails("yours: not committed yet")
	}
	return f.WithHint("%s   (mend the conflict there, then: %s)", m.Begin, m.Finish)
}

// maxSide is how many commits of a side are named, and maxShown how much of what their
// authors wrote.
const (
	maxSide  = 5
	maxShown = 120
)

// A sideCommit changed a path that is in conflict.
type sideCommit struct {
	Commit  object.OID `json:"commit"`
	Author  string     `json:"author"` // Name <email>
	Subject string     `json:"subject"`
}

// bothSides are the newest commits on either side of the fork that changed the paths.
func (p *plan) bothSides(ctx context.Context, l *ledger.Ledger, paths []string) (theirs, yours []sideCommit, err error) {
	fork := object.OID("")
	if p.change.head != "" {
		if fork, err = l.Repo.MergeBase(ctx, p.view.Base, p.change.head); err != nil {
			return nil, nil, err
		}
	}
	scope := git.Scope{Paths: paths[:min(len(paths), 100)], FromTop: true, Literal: true}
	if theirs, err = side(ctx, l, fork, p.view.Base, scope); err != nil || p.change.kind != fromCommits {
		return theirs, []sideCommit{}, err
	}
	yours, err = side(ctx, l, fork, p.change.head, scope)
	return theirs, yours, err
}

func side(ctx context.Context, l *ledger.Ledger, fork, tip object.OID, scope git.Scope) ([]sideCommit, error) {
	commits := []sideCommit{}
	list, err := l.Repo.Touching(ctx, fork, tip, scope, maxSide+1)
	for _, oid := range list {
		c, err := l.Repo.Commit(ctx, oid)
		if err != nil {
			return commits, err
		}
		subject, _, _ := strings.Cut(c.Message, "\n")
		author := c.Author[:strings.LastIndex(c.Author, ">")+1]
		commits = append(commits, sideCommit{oid, event.CleanText(author, maxShown), event.CleanText(subject, maxShown)})
	}
	return commits, err
}

func sideLines(name string, commits []sideCommit) []string {
	var lines []string
	for i, c := range commits {
		if i == maxSide {
			return append(lines, name+": and older ones")
		}
		lines = append(lines, fmt.Sprintf("%s: %s  %s  %s", name, c.Commit.Short(), c.Author, c.Subject))
	}
	return lines
}
