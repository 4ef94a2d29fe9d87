// Package ledger loads, appends to and publishes what a team shares: the
// chains of leases, the records of landings, and the verifications.
//
// It owns the choice of the authority (the one repository whose refs decide),
// the mirror of it in this clone, and the one compare-and-swap loop. It
// promises that a mirror never passes for the authority, that every publication
// carries what each ref must be, that an outcome is told only from what the
// authority says, and that a chain which is malformed, rewritten, deleted or of
// a newer format is never built upon. It refuses to write to a remote that was
// not seen to compare and swap.
package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"gitland/internal/event"
	"gitland/internal/fault"
	"gitland/internal/git"
	"gitland/internal/object"
	"gitland/internal/policy"
	"gitland/internal/session"
)

// Local is the name of the authority that is this repository itself: git's own
// word for it (branch.<name>.remote in git-config(1)).
const Local = "."

// A Ledger is one authority as seen from one clone.
type Ledger struct {
	Repo *git.Repo
	// Remote is the authority: a remote's name, or Local.
	Remote string
	// Host labels this machine in events: lease.host, else the host name.
	Host string
	// Dir is where this clone keeps journals, tokens and probe results.
	Dir session.Dir
	// Now gives the time for events; never for decisions.
	Now func() time.Time
	// Notice is told, in one sentence, what a user would want to know though
	// nothing failed: a probe, an adoption.
	Notice func(format string, args ...any)

	chosen   bool // by an option, not by configuration
	remote   git.Remote
	spaces   spaces
	policies *policy.Reader
	told     sync.Map // notices that are given once
	mu       sync.Mutex
	pending  map[object.Ref]git.Move // moves of the mirror and its memory, not yet written
	head     object.OID              // the mirror's HEAD when it was last read
}

// Options say which authority to open.
type Options struct {
	Remote string // "" chooses by configuration
	Now    func() time.Time
	Notice func(format string, args ...any)
}

// Open chooses the authority: the one named, else lease.remote, else the only
// remote, else this repository. It never follows the current branch's upstream,
// or a fork and its origin would be two authorities. It returns a fault of
// class Usage when there are several remotes and no choice, or no such remote.
func Open(repo *git.Repo, opts Options) (*Ledger, error) {
	l := &Ledger{Repo: repo, Remote: opts.Remote, Now: opts.Now, Notice: opts.Notice,
		chosen: opts.Remote != "", Dir: session.Open(repo.CommonDir), pending: map[object.Ref]git.Move{}}
	if l.Remote == "" {
		l.Remote = repo.Config.Get("lease.remote")
	}
	if l.Remote == "" {
		switch remotes := repo.Config.Remotes(); len(remotes) {
		case 0:
			l.Remote = Local
		case 1:
			l.Remote = remotes[0]
		default:
			slices.Sort(remotes)
			return nil, fault.New(fault.Usage, "there are %d remotes (%s) and none is chosen as the authority",
				len(remotes), strings.Join(remotes, ", ")).
				WithHint("git config lease.remote %s", preferred(remotes))
		}
	}
	var err error
	if l.spaces, err = configuredSpaces(repo.Config); err != nil {
		return nil, err
	}
	if l.policies, err = policy.NewReader(repo); err != nil {
		return nil, err
	}
	if l.Host = event.CleanText(repo.Config.Get("lease.host"), 255); l.Host == "" {
		name, _ := os.Hostname() // an unknown host name is no reason not to work
		l.Host = event.CleanText(name, 255)
	}
	if l.Host == "" {
		l.Host = "unknown"
	}
	if l.IsLocal() {
		l.Repo = repo.Durable()
		return l, nil
	}
	if l.remote, err = repo.Remote(l.Remote); err != nil {
		hint := "git remote -v"
		if remotes := repo.Config.Remotes(); opts.Remote == "" && len(remotes) > 0 && !slices.Contains(remotes, l.Remote) { // it was renamed
			hint = fault.Command("git", "config", "lease.remote", preferred(remotes))
		}
		if errors.Is(err, git.ErrManyURLs) {
			hint = fmt.Sprintf("git remote set-url --delete --push %s URL", l.Remote)
		}
		if errors.Is(err, git.ErrUnnameable) {
			hint = fault.Command("git", "remote", "rename", l.Remote, strings.ReplaceAll(l.Remote, "=", "-"))
		}
		return nil, fault.New(fault.Usage, "%w", err).WithHint("%s", hint)
	}
	return l, nil
}

func preferred(remotes []string) string {
	if slices.Contains(remotes, "origin") {
		return "origin"
	}
	return remotes[0]
}

// IsLocal reports whether this repository is the authority.
func (l *Ledger) IsLocal() bool { return l.Remote == Local }

// Command is a command line for a hint, with --remote where the user had to
// say it. Empty words are left out.
func (l *Ledger) Command(words ...string) string {
	if l.chosen {
		words = append(words, "--remote", l.Remote)
	}
	if len(words) > 3 && words[1] == "lease" && words[3] != "--remote" && strings.HasPrefix(words[3], "-") {
		name := words[3] // of a lease, and no option
		words = append(slices.Delete(slices.Clone(words), 3, 4), "--", name)
	}
	return fault.Command(words...)
}

// IsAt reports whether a remote, by its name and the URL that git pushes to, is
// the authority: the same name or the same URL. An unnamed remote has its URL for a name.
func (l *Ledger) IsAt(ctx context.Context, name, url string) (bool, error) {
	if l.IsLocal() {
		return false, nil
	}
	if name == l.Remote || url == l.remote.URL {
		return true, nil
	}
	rewritten, err := l.Repo.URL(ctx, l.remote)
	return url == rewritten, err
}

// Address identifies the authority's address, without showing it; empty where
// this repository is the authority.
func (l *Ledger) Address() string {
	if l.IsLocal() {
		return ""
	}
	return l.urlKey()
}

// OpenAt opens the remote that has the address now: name, if that still has it,
// else any other. Remotes are renamed, and their names given to others. The error
// is that of Open, or of class Usage where no remote has the address.
func OpenAt(repo *git.Repo, name, address string, opts Options) (*Ledger, error) {
	opts.Remote = name
	l, err := Open(repo, opts)
	if address == "" || err == nil && l.Address() == address {
		return l, err
	}
	for _, other := range repo.Config.Remotes() {
		opts.Remote = other
		if l, err := Open(repo, opts); err == nil && l.Address() == address {
			return l, nil
		}
	}
	return nil, fault.New(fault.Usage, "no remote has the address that %s had", name)
}

// urlKey identifies the authority's address in files of ours, without showing
// it: a URL can contain a password.
func (l *Ledger) urlKey() string {
	sum := sha256.Sum256([]byte(l.remote.URL + "\x00" + l.remote.Rewrites))
	return hex.EncodeToString(sum[:])
}

// once gives a notice, and not again.
func (l *Ledger) once(format string, args ...any) {
	if _, told := l.told.LoadOrStore(fmt.Sprintf(format, args...), true); !told {
		l.Notice(format, args...)
	}
}

// Flush writes down what the mirror is to know, together with further moves of local
// refs that must succeed. The mirror is worth no failure: when another session
// has just written it, the further moves are made without it, and so is the
// memory of the last tips.
func (l *Ledger) Flush(ctx context.Context, message string, further ...git.Move) error {
	moves := slices.Clone(further)
	var memory []git.Move
	l.mu.Lock()
	for ref, m := range l.pending {
		moves = append(moves, m)
		if l.isMemory(ref) {
			memory = append(memory, m)
		}
	}
	clear(l.pending)
	l.mu.Unlock()
	err := l.Repo.MoveRefs(ctx, message, moves...)
	if err != nil && len(moves) > len(further) {
		err = l.Repo.MoveRefs(ctx, message, further...)
		for _, m := range memory {
			l.Repo.MoveRefs(ctx, message, m) // where it fails, another session knows as much
		}
	}
	return err
}

// ShowRecords has "git log" show the landing records of this authority, by
// adding their refs to notes.displayRef, once.
func (l *Ledger) ShowRecords(ctx context.Context) error {
	pattern := l.mirror("records/*")
	if l.IsLocal() {
		pattern = l.spaces.records + "*"
	}
	if slices.Contains(l.Repo.Config.All("notes.displayref"), pattern) {
		return nil
	}
	return l.Repo.SetConfig(ctx, "notes.displayRef", pattern)
}

// mirror is the local ref under which something of the authority is kept.
func (l *Ledger) mirror(rest string) string {
	// The name is encoded as one component, so that the mirrors of the
	// remotes "a" and "a/b" do not stand in each other's way; "." too.
	name, err := event.EncodeName(l.Remote)
	if err != nil {
		name = "%00" + l.urlKey()[:16] // longer than a lease name may be
	}
	return "refs/lease-remote/" + name + "/" + rest
}
