package policy

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"

	"gitland/internal/fault"
	"gitland/internal/session"
)

// acceptance is the file in which a clone keeps the commands that its user lets run.
type acceptance struct {
	Format   int        `json:"format"`
	Commands []accepted `json:"commands"`
}

type accepted struct {
	Key  string `json:"key"`
	Text string `json:"command"`
}

const acceptedFormat = 1

// maxAccepted bounds how many commands a clone remembers; the oldest go first. It is more
// than the files of many branches can name, for what was forgotten of one would be asked
// for again each time.
const maxAccepted = 10_000

func load(dir session.Dir) (acceptance, error) {
	a := acceptance{Format: acceptedFormat}
	var read acceptance
	switch err := dir.LoadAccepted(&read); {
	case errors.Is(err, fs.ErrNotExist):
		return a, nil
	case undecodable(err):
		return a, nil // what it says is not known: ask again
	case err != nil:
		return a, err
	case read.Format != acceptedFormat: // of another version: ask again
		return acceptance{Format: max(read.Format, acceptedFormat)}, nil
	}
	return read, nil
}

// undecodable reports whether a file was read that says nothing: cut off, say, by a full disk.
func undecodable(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}

// Unaccepted are those of the commands that come from others and that the user of this
// clone has not let run.
func Unaccepted(dir session.Dir, commands ...Command) ([]Command, error) {
	a, err := load(dir)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(commands), func(c Command) bool {
		return !c.Shared || slices.Contains(a.Commands, accepted{c.Key, c.Text})
	}), nil
}

// Accept lets commands run in this clone from now on, each for its key and as it is.
// Of two at the same moment one may be forgotten, and be asked for again. It returns a
// fault of class Ambiguous where a newer version keeps them in a format of its own.
func Accept(dir session.Dir, commands ...Command) error {
	a, err := load(dir)
	if err != nil {
		return err
	}
	if a.Format > acceptedFormat {
		return fault.New(fault.Ambiguous, "the commands that this clone accepts are kept in format %d, by a newer version; this one knows %d", a.Format, acceptedFormat).
			WithHint("install a newer gitland, one that knows format %d", a.Format)
	}
	for _, c := range commands {
		if one := (accepted{c.Key, c.Text}); !slices.Contains(a.Commands, one) {
			a.Commands = append(a.Commands, one)
		}
	}
	a.Commands = a.Commands[max(0, len(a.Commands)-maxAccepted):]
	return dir.SaveAccepted(a)
}
