package event_test

import (
	"bytes"
	"errors"
	"testing"

	"gitland/internal/event"
	"gitland/internal/object"
)

// FuzzParse: whatever a commit holds, parsing ends in an event that encodes to
// the same bytes, or in one of the two errors, which names the object.
func FuzzParse(f *testing.F) {
	for _, format := range formats {
		for _, s := range samples(format) {
			f.Add(encode(f, format, s.event).Data, format == object.SHA256)
		}
	}
	f.Add([]byte("tree \n\nLease-Format: 2\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, sha256 bool) {
		format := object.SHA1
		if sha256 {
			format = object.SHA256
		}
		obj := format.New(object.Commit, data)
		e, err := event.Parse(format, obj)
		if err != nil {
			newer, isNewer := errors.AsType[*event.NewerError](err)
			malformed, isMalformed := errors.AsType[*event.MalformedError](err)
			switch {
			case isNewer && newer.OID == obj.OID && newer.Format > event.Format:
			case isMalformed && malformed.OID == obj.OID && malformed.What != "":
			default:
				t.Fatalf("error %#v", err)
			}
			return
		}
		again, err := e.Encode(format, e.Ident())
		if err != nil {
			t.Fatal(err)
		}
		commit, err := object.ParseCommit(data)
		if err != nil {
			t.Fatal(err)
		}
		if commit.Extra == nil && !bytes.Equal(again, data) {
			t.Fatalf("becomes\n%q\nfrom\n%q", again, data)
		}
		if back, err := event.Parse(format, format.New(object.Commit, again)); err != nil || !back.State.Equal(e.State) {
			t.Fatalf("the encoding of an event is none: %v", err)
		}
	})
}
