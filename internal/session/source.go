package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"gitland/internal/fault"
)

// ErrNoToken says that this session has no token: the environment names none,
// or names a session that has acquired nothing yet.
var ErrNoToken = errors.New("this session has no token")

// A Kind says where a session's token is kept.
type Kind string

// The kinds of Source.
const (
	NoSource Kind = "none"    // nowhere: neither variable is set
	FromVar  Kind = "token"   // in GIT_LEASE_TOKEN
	FromFile Kind = "session" // in the file of GIT_LEASE_SESSION
)

// A Session is a token and the leases that were taken with it.
type Session struct {
	Root Root
	// Holds is a note to self, in no order that matters. Whether they are still
	// held, the chain says.
	Holds []HoldNote
}

// A HoldNote is one lease that a session took.
type HoldNote struct {
	Remote    string // the authority
	Name      string // the lease's
	Operation ulid.ULID
}

// A Source is where the token of this session comes from.
type Source struct {
	kind Kind
	path string  // FromFile: the file
	have Session // FromVar: all there is
}

// FromEnv finds the source that the environment names: GIT_LEASE_TOKEN, else
// GIT_LEASE_SESSION. A token that is none is an error, never passed over. It
// reads no file.
func (d Dir) FromEnv(env func(string) string) (Source, error) {
	if token := env("GIT_LEASE_TOKEN"); token != "" {
		root, err := ParseRoot(token)
		if err != nil {
			return Source{}, fault.New(fault.Usage, "GIT_LEASE_TOKEN: %w", err)
		}
		s := Source{kind: FromVar, have: Session{Root: root}}
		if op, name := env("GIT_LEASE_OPERATION"), env("GIT_LEASE_NAME"); op != "" && name != "" {
			id, err := ulid.ParseStrict(op)
			if err != nil {
				return Source{}, fault.New(fault.Usage, "GIT_LEASE_OPERATION: %w", err)
			}
			s.have.Holds, err = holdsOf(HoldNote{env("GIT_LEASE_REMOTE"), name, id}, env(HoldsVar))
			if err != nil {
				return Source{}, fault.New(fault.Usage, HoldsVar+": %w", err)
			}
		}
		return s, nil
	}
	if name := env("GIT_LEASE_SESSION"); name != "" {
		return Source{kind: FromFile, path: d.Path("session", hashName(name))}, nil
	}
	return Source{kind: NoSource}, nil
}

// HoldsVar is the variable that has all holds of a command, where GIT_LEASE_NAME and its
// like have the first.
const HoldsVar = "GIT_LEASE_HOLDS"

// HoldLine is the line of a hold in HoldsVar: its fence, its authority and its lease, with
// tabs between them. The name comes last, since that alone may have spaces: a shell's
// "read -r fence remote name" understands it.
func HoldLine(fence uint64, remote, name string) string {
	return fmt.Sprintf("%d\t%s\t%s", fence, remote, name)
}

// holdsOf are the first hold and those of its operation in lines. Lines without
// it were left by an operation around this one, which took another lease since.
func holdsOf(first HoldNote, lines string) ([]HoldNote, error) {
	holds := []HoldNote{first}
	within := false
	for line := range strings.SplitSeq(strings.Trim(lines, "\n"), "\n") {
		if line == "" {
			continue
		}
		words := strings.SplitN(line, "\t", 3)
		if len(words) != 3 {
			return nil, fmt.Errorf("the line %q is not a fence, a remote and a lease's name, with tabs between", line)
		}
		if h := (HoldNote{words[1], words[2], first.Operation}); h == first {
			within = true
		} else {
			holds = append(holds, h)
		}
	}
	if !within {
		holds = holds[:1]
	}
	return holds, nil
}

// Kind says where the token is kept.
func (s Source) Kind() Kind { return s.kind }

// Load returns the session, or ErrNoToken. It creates nothing.
func (s Source) Load() (Session, error) {
	switch s.kind {
	case FromVar:
		have := s.have
		have.Holds = slices.Clone(have.Holds)
		return have, nil
	case FromFile:
		return readSession(s.path)
	}
	return Session{}, ErrNoToken
}

// Ensure is Load, but makes the token of a named session when it has none.
// When it returns, the token will survive a crash.
func (s Source) Ensure() (Session, error) {
	have, err := s.Load()
	if s.kind != FromFile || !errors.Is(err, ErrNoToken) {
		return have, err
	}
	err = s.update(func(now *Session) (bool, error) {
		made := now.Root.IsZero()
		if made {
			now.Root = NewRoot()
		}
		have = *now
		return made, nil
	})
	if err != nil {
		return Session{}, err
	}
	return have, nil
}

// Note remembers a hold, in place of an earlier one of the same lease. The
// session must have a token. A token from the environment has nowhere to keep
// a note; there Note does nothing.
func (s Source) Note(h HoldNote) error {
	return s.edit(func(holds []HoldNote) []HoldNote {
		same := func(o HoldNote) bool { return o.Remote == h.Remote && o.Name == h.Name }
		return append(slices.DeleteFunc(holds, same), h)
	})
}

// Forget drops the note of exactly h, if there is one. The token is kept, for
// the session's next hold.
func (s Source) Forget(h HoldNote) error {
	return s.edit(func(holds []HoldNote) []HoldNote {
		return slices.DeleteFunc(holds, func(o HoldNote) bool { return o == h })
	})
}

// edit changes the holds of a session that must exist.
func (s Source) edit(change func([]HoldNote) []HoldNote) error {
	switch s.kind {
	case FromVar:
		return nil
	case NoSource:
		return ErrNoToken
	}
	// Before the lock, which would create its file.
	if _, err := s.Load(); err != nil {
		return err
	}
	return s.update(func(now *Session) (bool, error) {
		if now.Root.IsZero() {
			return false, ErrNoToken
		}
		now.Holds = change(now.Holds)
		return true, nil
	})
}

// update changes the file of the session under its lock and writes it if
// change says so. The lock is a file of its own, as the other one is replaced.
func (s Source) update(change func(*Session) (bool, error)) error {
	lock, err := lockPrivate(strings.TrimSuffix(s.path, ".json") + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	now, err := readSession(s.path)
	if err != nil && !errors.Is(err, ErrNoToken) {
		return err
	}
	if write, err := change(&now); err != nil || !write {
		return err
	}
	return writeSession(s.path, now)
}

// sessionFormat is the version of a session's file.
const sessionFormat = 1

// sessionFile is a session's file. It has text where Session has types, so
// that reading checks everything.
type sessionFile struct {
	Format int        `json:"format"`
	Token  string     `json:"token"`
	Holds  []holdFile `json:"holds"`
}

type holdFile struct {
	Remote    string `json:"remote"`
	Name      string `json:"name"`
	Operation string `json:"operation"`
}

func writeSession(path string, s Session) error {
	file := sessionFile{sessionFormat, s.Root.Hex(), []holdFile{}}
	for _, h := range s.Holds {
		file.Holds = append(file.Holds, holdFile{h.Remote, h.Name, h.Operation.String()})
	}
	return writeJSON(path, file)
}

// readSession reads a session's file, which nobody but its owner may read.
func readSession(path string) (Session, error) {
	data, err := readFile(path, func(info fs.FileInfo) error {
		if mode := info.Mode(); mode.Perm()&0o077 != 0 {
			return fault.New(fault.Failed, "session file %s has mode %#o: others may read or change its token", path, mode.Perm()).
				WithHint("chmod 600 %s", quote(path))
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return Session{}, ErrNoToken
	}
	if err != nil {
		return Session{}, err
	}
	s, err := parseSession(data)
	if err != nil {
		return Session{}, fault.New(fault.Failed, "session file %s: %w", path, err).
			WithHint("if this session holds no lease, remove it: rm %s", quote(path))
	}
	return s, nil
}

func parseSession(data []byte) (Session, error) {
	var file sessionFile
	if err := json.Unmarshal(data, &file); err != nil {
		return Session{}, err
	}
	if file.Format != sessionFormat {
		return Session{}, fmt.Errorf("format %d, this version knows format %d", file.Format, sessionFormat)
	}
	root, err := ParseRoot(file.Token)
	if err != nil {
		return Session{}, err
	}
	s := Session{Root: root}
	for _, h := range file.Holds {
		op, err := ulid.ParseStrict(h.Operation)
		if err != nil {
			return Session{}, fmt.Errorf("hold of %q: operation: %w", h.Name, err)
		}
		s.Holds = append(s.Holds, HoldNote{h.Remote, h.Name, op})
	}
	return s, nil
}

// quote makes a path one word of a shell's command line.
func quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }
