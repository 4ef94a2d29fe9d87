package land

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
	"gitland/internal/step"
)

// A journal is what a landing writes down before its first side effect, be it a check
// that is run, so that
// another process can bring it to its end. It is private to this clone, and
// never the truth about who holds a lease or what has landed.
type journal struct {
	Format    int       `json:"format"`
	Operation ulid.ULID `json:"operation"`
	Landing   ulid.ULID `json:"landing"`
	// Origin tells the clone in which it began from its copies.
	Origin  session.Origin `json:"origin"`
	GitDir  string         `json:"git_dir"` // of the worktree that lands, from the common one: clones are moved
	Remote  string         `json:"remote"`
	Address string         `json:"address"` // of the remote, as ledger.Address
	Lease   string         `json:"lease"`
	Branch  object.Ref     `json:"branch"`
	Unit    string         `json:"unit"`
	// Token is the root of a lease that the landing acquired for itself;
	// empty on the one-push way, and under a lease that the session brought.
	Token   string `json:"token,omitempty"`
	Brought bool   `json:"brought,omitempty"`
	// Lent is the secret of the hold that the session brought, and Hold its
	// operation: the session may be gone, as that of git lease run is, and what
	// it announced has to be finished.
	Lent string    `json:"lent,omitempty"`
	Hold ulid.ULID `json:"hold"`

	// Check and Command are what -x gave.
	Check   string `json:"check,omitempty"`
	Command string `json:"command,omitempty"`

	// Allow, and what follows up to ExpectHead, are as in the Selection; Rev is its Head.
	Allow      []Guard     `json:"allow,omitempty"`
	NoVerify   bool        `json:"no_verify,omitempty"`
	Mode       policy.Mode `json:"mode,omitempty"`
	Rev        string      `json:"rev,omitempty"`
	ExpectBase string      `json:"expect_base,omitempty"`
	ExpectHead string      `json:"expect_head,omitempty"`

	Text     string     `json:"text,omitempty"` // the message, or the record's note
	Kind     kind       `json:"kind"`
	Local    object.Ref `json:"local_branch,omitempty"`
	Head     object.OID `json:"head,omitempty"`
	HeadTree object.OID `json:"head_tree"`
	// Elsewhere means that Head was not HEAD's commit.
	Elsewhere bool       `json:"elsewhere,omitempty"`
	Tree      object.OID `json:"tree"` // HEAD's tree with the change
	// Staged is where the index was not as HEAD, within the chosen paths.
	Staged []savedChange `json:"staged,omitempty"`

	// Attempts are the pushes that were made, or about to be; all but the last
	// are known to have been overtaken.
	Attempts []attempt `json:"attempts,omitempty"`

	// Override are the moves of what is no landing but an override, whose journal
	// package lease has written; Reason, Rewrite and Follow are of that too. Of the
	// attempts it has what is in a ledger.Attempt.
	Override []event.Update `json:"override,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Rewrite  []object.Ref   `json:"rewrite,omitempty"`
	Follow   bool           `json:"refs_follow,omitempty"`

	// Steps follow the landing; or they are those of Motion, which is no landing of this
	// journal, and which package step has written: it follows Land, where that is one.
	Steps  []step.Step    `json:"steps,omitempty"`
	Typed  []policy.Step  `json:"typed_steps,omitempty"` // those that were typed
	Motion ulid.ULID      `json:"motion,omitzero"`
	Land   *event.Landing `json:"land,omitempty"`
	Record string         `json:"record,omitempty"`
}

// An attempt is one push.
type attempt struct {
	ledger.Attempt
	Commit object.OID  `json:"commit"` // that the branch would be at
	Tree   object.OID  `json:"tree"`
	Moves  []savedMove `json:"moves"`
	Record string      `json:"record"` // the line for the note on Commit
	// Land is what its event says.
	Land event.Landing `json:"land"`
	// Apart: the remote cannot move refs together. The events begin with what
	// announces the landing, and Moves have no record.
	Apart bool `json:"apart,omitempty"`
	// Announced is the intent that did so.
	Announced object.OID `json:"announced,omitempty"`
}

// A savedMove is a git.Move on disk.
type savedMove struct {
	Ref object.Ref `json:"ref"`
	New object.OID `json:"new"`
	Old object.OID `json:"old"`
}

// A savedChange is a git.Change on disk. In JSON a path that is no UTF-8 would be another
// one, so its bytes stand beside it.
type savedChange struct {
	git.Change
	Bytes []byte `json:"path_bytes,omitempty"`
}

func saveChanges(changes []git.Change) []savedChange {
	var saved []savedChange
	for _, c := range changes {
		s := savedChange{Change: c}
		if !utf8.ValidString(c.Path) {
			s.Bytes = []byte(c.Path)
		}
		saved = append(saved, s)
	}
	return saved
}

func loadChanges(saved []savedChange) []git.Change {
	var changes []git.Change
	for _, s := range saved {
		if s.Bytes != nil {
			s.Path = string(s.Bytes)
		}
		changes = append(changes, s.Change)
	}
	return changes
}

func saveMoves(moves []git.Move) []savedMove {
	var saved []savedMove
	for _, m := range moves {
		saved = append(saved, savedMove{Ref: m.Ref, New: m.New, Old: m.Old.OID()})
	}
	return saved
}

// checking reports whether the landing came no further than its check: nothing of it
// can be on its way then.
func (j journal) checking() bool {
	return len(j.Attempts) == 0 && j.Token == "" && j.Override == nil && j.Motion.IsZero()
}

// base is where the attempt expects the branch to be; empty for none.
func (a attempt) base(branch object.Ref) object.OID {
	for _, m := range a.Moves {
		if m.Ref == branch {
			return m.Old
		}
	}
	return ""
}

func (j journal) attempts() []ledger.Attempt {
	var list []ledger.Attempt
	for _, a := range j.Attempts {
		list = append(list, a.Attempt)
	}
	return list
}

// ended is the attempt that has landed, and the event that says so: one of ours,
// or one that somebody else wrote for this very landing when they finished it.
func (j journal) ended(f ledger.Fate) (*attempt, event.Event) {
	for _, e := range slices.Backward(f.Others) {
		if e.Kind != event.Land && e.Kind != event.Repair || e.By.Land == nil || e.By.Land.ID != j.Landing {
			continue
		}
		for i, a := range j.Attempts {
			if a.Commit == e.By.Land.Commit {
				return &j.Attempts[i], e
			}
		}
	}
	return nil, event.Event{}
}

// change is what landed, for bringing the local side along.
func (j journal) change(ctx context.Context, repo *git.Repo) (change, error) {
	c := change{kind: j.Kind, branch: j.Local, head: j.Head, headTree: j.HeadTree, apart: j.Elsewhere, tree: j.Tree, staged: loadChanges(j.Staged)}
	var err error
	if c.kind != fromCommits {
		c.diff, err = repo.DiffTrees(ctx, c.headTree, c.tree)
	}
	return c, err
}

// root is the token of the lease that the landing acquired, zero if none.
func (j journal) root() (session.Root, error) {
	if j.Token == "" {
		return session.Root{}, nil
	}
	return session.ParseRoot(j.Token)
}

// loadJournal reads one journal and checks that this version can act on it.
func loadJournal(dir session.Dir, op ulid.ULID) (journal, error) {
	var j journal
	err := dir.Journal().Load(op, &j)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return j, err
	case err != nil:
	case j.Format > j.known(): // after a rollback: it may have the token of a lease that is held
		return j, fault.New(fault.Failed, "the journal of operation %s, which did not end, has format %d, and this version knows %d", op, j.Format, j.known()).
			WithHint("install a newer gitland, one that knows journals of format %d, and run: git land resume", j.Format)
	case j.Format != j.known():
		err = fmt.Errorf("journal format %d, and this version knows %d", j.Format, j.known())
	case j.Operation != op || j.Lease == "" || j.Branch == "" || j.Remote == "":
		err = errors.New("it is not the journal of that operation")
	}
	if err == nil {
		return j, nil
	}
	path := dir.Journal().Path(op)
	return j, fault.New(fault.Failed, "the journal of operation %s, which did not end, cannot be read: %w", op, err).
		WithHint("see with `git land log` and `git lease log` whether it landed, then: %s", fault.Command("rm", path))
}

const journalFormat = 1

// known is the format of journals such as j.
func (j journal) known() int {
	switch {
	case j.Override != nil:
		return lease.OverrideFormat
	case !j.Motion.IsZero():
		return step.JournalFormat
	}
	return journalFormat
}

// ListUnfinished lists the landings of this clone that have a journal: those that
// are under way, and those whose process died. With an error about a journal that
// cannot be read it returns those that can.
func ListUnfinished(dir session.Dir) ([]Unfinished, error) {
	ids, err := dir.Journal().List()
	if err != nil {
		return nil, err
	}
	var list []Unfinished
	var broken error
	for _, id := range ids {
		j, err := loadJournal(dir, id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just finished
		}
		if err != nil {
			broken = cmp.Or(broken, err)
			continue // it must not hide the others
		}
		u := Unfinished{Override: j.Override != nil, Motion: !j.Motion.IsZero(), Stepping: len(j.Steps) > 0 && j.Steps[0].Begun, Lease: j.Lease, checking: j.checking(), Operation: id, Since: ulid.Time(id.Time()), Branch: j.Branch, gitDir: j.GitDir, hold: j.Hold, landing: j.Landing, unit: j.Unit}
		if u.landing.IsZero() {
			u.landing = j.Motion
		}
		if u.Alive, err = dir.Alive(id); err != nil && !errors.Is(err, session.ErrNoWitness) {
			return nil, err
		}
		if !u.Alive {
			if u.Doubt, err = dir.Doubt(id, j.Origin); err != nil {
				return nil, err
			}
		}
		if u.Next = "git land resume " + id.String(); u.Doubt != "" {
			u.Next = forgetOrResume(dir, id)
		}
		list = append(list, u)
	}
	return list, broken
}

// forgetOrResume are the ways on from a landing that may live elsewhere.
func forgetOrResume(dir session.Dir, op ulid.ULID) string {
	return fmt.Sprintf("%s   (in a copy: it forgets what is the other clone's; or, where that is gone for good: git land resume %s --dead)",
		fault.Command("rm", dir.Journal().Path(op)), op)
}
