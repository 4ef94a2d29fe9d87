// Package verify runs a check on exactly one tree.
//
// It owns where that happens: in place when the working tree has just the
// content of the tree, before the run and after it, else in a verification
// worktree, which it makes, keeps, locks while in use, heals and reuses. It
// promises that a verdict is about the tree it names, that a run which ended
// for any reason but its own is no verdict, and that the check gets neither
// git's repository variables nor a lease's token.
//
// It refuses to publish: the caller does. It does not initialise submodules,
// and it does not look at what git ignores: caches and installed dependencies
// stay from run to run, which is the point of keeping a worktree.
package verify

import (
	"context"
	"io"

	"gitland/internal/ledger"
	"gitland/internal/note"
	"gitland/internal/object"
)

// A Request asks for one run of one check.
type Request struct {
	Tree    object.OID // what is verified
	Base    object.OID // of the target when the tree was built; may be empty
	Check   string     // the check's name, recorded as it is
	Command string     // for sh -c, recorded as it is
	Unit    string     // cleaned
	ID      string     // is in every temporary name
	// Setup is land.verify.setup: for sh -c, run once in each new verification
	// worktree. Empty means that there is nothing to set up.
	Setup   string
	Output  io.Writer // what check and setup print, as they run; nil discards it
	Environ []string  // the user's, for check and setup
}

// Run runs the check and says what it found: a pass for exit code 0, a fail for
// any other, also for a command that could not be found.
func Run(ctx context.Context, l *ledger.Ledger, r Request) (note.Verification, error) {
	return note.Verification{}, nil
}
