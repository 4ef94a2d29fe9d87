package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
)

// A Store is a directory of JSON documents, one a file, each under an id.
type Store struct {
	dir  Dir
	name string
}

// Journal is the store of what operations are about to do, by operation id. A
// journal is written before the first side effect of its operation and removed
// after the last; only the process that holds the operation's witness does
// either.
func (d Dir) Journal() Store { return Store{d, "journal"} }

// Outbox is the store of lines that wait to be published, by their own id.
func (d Dir) Outbox() Store { return Store{d, "outbox"} }

// Path is the file of id.
func (s Store) Path(id ulid.ULID) string { return s.dir.Path(s.name, id.String()+".json") }

// Write stores v under id, in place of what was there. When it returns, v will
// survive a crash of the machine. As always in JSON, bytes of a string that are
// not UTF-8 are lost: keep such text as []byte.
func (s Store) Write(id ulid.ULID, v any) error {
	return writeJSON(s.Path(id), v)
}

// Load reads what is stored under id into v, a pointer. The error of an absent
// one is fs.ErrNotExist.
func (s Store) Load(id ulid.ULID, v any) error {
	return readJSON(s.Path(id), v)
}

// List returns the ids in the store, oldest first. Files that Write did not
// finish, or did not make, are passed over.
func (s Store) List() ([]ulid.ULID, error) {
	entries, err := os.ReadDir(s.dir.Path(s.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []ulid.ULID
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if id, err := ulid.ParseStrict(name); ok && err == nil && id.String() == name {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, ulid.ULID.Compare)
	return ids, err
}

// Remove removes what is stored under id. It is no error if nothing is.
func (s Store) Remove(id ulid.ULID) error { return removeFile(s.Path(id)) }

// SaveProbe keeps what was found out about the remote at url. The file has the
// hash of the url for a name, since a url may carry a password.
func (d Dir) SaveProbe(url string, v any) error { return writeJSON(d.probe(url), v) }

// LoadProbe reads into v what SaveProbe kept for url. The error is
// fs.ErrNotExist if that is nothing; after any error, probe again.
func (d Dir) LoadProbe(url string, v any) error { return readJSON(d.probe(url), v) }

func (d Dir) probe(url string) string { return d.Path("probe", hashName(url)) }

// SaveAccepted keeps which commands of shared files the user lets run in this clone.
func (d Dir) SaveAccepted(v any) error { return writeJSON(d.Path("accepted.json"), v) }

// LoadAccepted reads into v what SaveAccepted kept. The error is fs.ErrNotExist if
// that is nothing.
func (d Dir) LoadAccepted(v any) error { return readJSON(d.Path("accepted.json"), v) }

// hashName is a file name for text that may be anything.
func hashName(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:]) + ".json"
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeFile(path, append(data, '\n'))
}

func readJSON(path string, v any) error {
	data, err := readFile(path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
