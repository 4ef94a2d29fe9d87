package event_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gitland/internal/event"
	"gitland/internal/gittest"
	"gitland/internal/object"
)

var formats = []object.Format{object.SHA1, object.SHA256}

// The files of testdata/v1 are what this format is. They never change: a
// change of the format is a new number and a new folder.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		for _, s := range samples(f) {
			t.Run(string(f)+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				frozen, err := os.ReadFile(filepath.Join("testdata", "v1", string(f), s.name))
				if err != nil {
					t.Fatal(err)
				}
				if got := encode(t, f, s.event).Data; !bytes.Equal(got, frozen) {
					t.Errorf("encodes to\n%s\nwant\n%s", got, frozen)
				}
				obj := f.New(object.Commit, frozen)
				got, err := event.Parse(f, obj)
				if err != nil {
					t.Fatal(err)
				}
				want := s.event
				want.OID = obj.OID
				if got.Ident() != want.Ident() {
					t.Errorf("identity %q, want %q", got.Ident(), want.Ident())
				}
				got.Time = want.Time // the same instant and zone, in another *time.Location
				if !reflect.DeepEqual(got, want) {
					t.Errorf("parses to\n%+v\nwant\n%+v", got, want)
				}
			})
		}
	}
}

// Every kind has a sample, and every frozen file is one.
func TestFrozenIsComplete(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		files, err := os.ReadDir(filepath.Join("testdata", "v1", string(f)))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != len(samples(f)) {
			t.Errorf("%d files and %d samples of %s", len(files), len(samples(f)), f)
		}
	}
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	// Each case changes one thing of a good commit.
	for _, tt := range []struct{ name, sample, old, new, want string }{
		{"tree", "acquire", "tree 4b825dc", "tree 5b825dc", "canonical"},
		{"encoding", "acquire", "\n\nlease", "\nencoding latin1\n\nlease", `header "encoding"`},
		{"committer", "acquire", "committer Ada", "committer Bob", "canonical"},
		{"author", "acquire", "author Ada Lovelace <", "author <", "identity"},
		{"control in author", "acquire", "author Ada Lovelace", "author Ada\x1bLovelace", "canonical"},
		{"zone", "acquire", "+0230\ncommitter", "+0199\ncommitter", "zone"},
		{"zone of minus zero", "acquire", "+0230\ncommitter", "-0000\ncommitter", "canonical"},
		{"no trailers", "acquire", "\n\nLease-Format", "\nLease-Format", "not a trailer"},
		{"no format", "acquire", "Lease-Format: 1\n", "", "no Lease-Format"},
		{"format 0", "acquire", "Lease-Format: 1", "Lease-Format: 0", "not a number"},
		{"format 01", "acquire", "Lease-Format: 1", "Lease-Format: 01", "not a number"},
		{"format text", "acquire", "Lease-Format: 1", "Lease-Format: one", "not a number"},
		{"subject", "acquire", "lease release/1.x: acquire", "lease release/1.x: release", "canonical"},
		{"no final line feed", "acquire", "By-Host: lab-1\n", "By-Host: lab-1", "canonical"},
		{"text after the end", "acquire", "By-Host: lab-1\n", "By-Host: lab-1\n\n", "not a trailer"},
		{"unknown trailer", "acquire", "By-Host", "By-Ghost", "unknown"},
		{"repeated trailer", "acquire", "By-Host: lab-1\n", "By-Host: lab-1\nBy-Host: lab-1\n", "repeated"},
		{"no name", "acquire", "Lease-Name: release/1.x\n", "", "name of a lease is empty"},
		{"swapped", "acquire", "Lease-Name: release/1.x\nLease-Event: acquire\n",
			"Lease-Event: acquire\nLease-Name: release/1.x\n", "out of order"},
		{"empty value", "acquire", "Lease-Purpose: cut the 1.0 release – ünïcode, too", "Lease-Purpose: ", "canonical"},
		{"CRLF", "acquire", "By-Host: lab-1\n", "By-Host: lab-1\r\n", "clean text"},
		{"not UTF-8", "acquire", "ünïcode", "\xfc", "clean text"},
		{"reordering text", "acquire", "ünïcode", "\u202e", "clean text"},
		{"unknown kind", "acquire", "Lease-Event: acquire", "Lease-Event: seize", `kind "seize"`},
		{"id of letters that are none", "acquire", "Lease-Event-Id: 0", "Lease-Event-Id: U", "Lease-Event-Id"},
		{"id in lower case", "acquire", "Lease-Event-Id: 01KYY", "Lease-Event-Id: 01kyy", "canonical"},
		{"sequence", "acquire", "Lease-Sequence: 2", "Lease-Sequence: 02", "canonical"},
		{"sequence of a JSON reader's nightmares", "acquire", "Lease-Sequence: 2", "Lease-Sequence: 9007199254740992", "range"},
		{"chain", "acquire", "Lease-Chain: 1111", "Lease-Chain: 111", "Lease-Chain"},
		{"unknown state", "acquire", "Lease-State: held", "Lease-State: odd", `state "odd"`},
		{"free with a hold", "acquire", "Lease-State: held", "Lease-State: free", "does not fit"},
		{"held without one", "release", "Lease-State: free", "Lease-State: held", "does not fit"},
		{"branch twice", "acquire", "refs/heads/main refs/heads/release/1.x", "refs/heads/main refs/heads/main", "twice"},
		{"branch name", "acquire", "refs/heads/main refs", "refs/heads/main  refs", `ref ""`},
		{"digest", "acquire", "Lease-Digest: ", "Lease-Digest: 0", "hexadecimal"},
		{"fence", "acquire", "Lease-Fence: 2", "Lease-Fence: 3", "fence 3"},
		{"since", "acquire", "Lease-Since: 2026-08-01T12:02:00Z", "Lease-Since: 2026-08-01 12:02", "Lease-Since"},
		{"since with a fraction", "acquire", "12:02:00Z", "12:02:00.5Z", "whole second"},
		{"missing secret", "release", "By-Secret: ", "By-Target: ", "By-Target"},
		{"forced without reason", "land-forced", "Landing-Reason: the runner is down\n", "", "if and only if"},
		{"landing without tree", "land", "Landing-Tree: " + strings.Repeat("c", 40) + "\n", "", "commit and tree"},
		{"zero oid", "land-unborn", "Landing-Commit: " + strings.Repeat("b", 40),
			"Landing-Commit: " + strings.Repeat("0", 40), "no object"},
		{"oid of the other format", "land", "Landing-Tree: " + strings.Repeat("c", 40),
			"Landing-Tree: " + strings.Repeat("c", 64), "not of format sha1"},
		{"root that is no adopt", "acquire", "parent " + strings.Repeat("2", 40) + "\n", "", "no parent"},
		{"second parent of no adopt", "acquire", "author",
			"parent " + strings.Repeat("3", 40) + "\nauthor", "2 parents"},
		{"second parent of another object", "adopt-over", "parent " + strings.Repeat("e", 40),
			"parent " + strings.Repeat("3", 40), "2 parents"},
		{"an announcement that is none", "override-announced", "Override-Announced: yes", "Override-Announced: no", "yes"},
		{"half an update", "override", "Override-Updates: refs/heads/main ", "Override-Updates: ", "triples"},
		{"update of nothing", "override", "refs/heads/main " + strings.Repeat("a", 40), "refs/heads/main " + strings.Repeat("b", 40), "changes nothing"},
		{"update twice", "override-held", "refs/heads/old", "refs/heads/main", "twice"},
		{"update of no ref", "override", "Override-Updates: refs/heads/main", "Override-Updates: refs/heads/ma..in", "ref"},
		{"update from zero", "override", "main " + strings.Repeat("a", 40), "main " + strings.Repeat("0", 40), "no object"},
		{"update to another format", "override", strings.Repeat("b", 40), strings.Repeat("b", 64), "not of format"},
		{"steps of no motion", "acquire-steps", "Lease-Motion: " + id(40).String() + "\n", "", "if and only if there is a motion"},
		{"motion of no steps", "acquire-steps", "Lease-Steps: upload-cli announce.2 tag_it\n", "", "if and only if there is a motion"},
		{"step that is named twice", "acquire-steps", "announce.2", "upload-cli", "named twice"},
		{"two spaces between steps", "acquire-steps", "upload-cli ", "upload-cli  ", `"" is no name`},
		{"step with a slash", "acquire-steps", "upload-cli", "upload/cli", "no name of a step"},
		{"step that begins with a dash", "step", "Step-Name: a", "Step-Name: -a", "no name of a step"},
		{"step of a long name", "step", "announce.2\nStep-O", strings.Repeat("x", 65) + "\nStep-O", "at most 64"},
		{"step in another alphabet", "step", "Step-Name: a", "Step-Name: é", "no name of a step"},
		{"step without a name", "step", "Step-Name: announce.2\n", "", `"" is no name`},
		{"step of no motion", "step", "Step-Motion: " + id(80).String() + "\n", "", "no motion"},
		{"step without an outcome", "step", "Step-Outcome: done\n", "", `outcome ""`},
		{"step of an odd outcome", "step", "Step-Outcome: done", "Step-Outcome: odd", `outcome "odd"`},
		{"step of a duration that is none", "step", "Step-Took: 83250", "Step-Took: 0", "canonical"},
		{"step that took too long", "step", "Step-Took: 83250", "Step-Took: 9007199254740992", "range"},
		{"stuck and done", "step-failed", "Lease-Stuck: failed", "Lease-Stuck: done", "stuck"},
		{"stuck in nothing", "acquire", "Lease-Since: 2026-08-01T12:02:00Z\n", "Lease-Since: 2026-08-01T12:02:00Z\nLease-Stuck: failed\n", "stuck"},
		{"declared without a reason", "step-declared", "By-Reason: the list has it\n", "", "if and only if somebody declared"},
		{"done with a reason", "step-declared", "Step-Outcome: declared", "Step-Outcome: done", "if and only if somebody declared"},
		{"landing with a step twice", "land-steps", "Landing-Steps: announce.2", "Landing-Steps: tag_it", "named twice"},
		{"too long", "acquire", "Lease-Purpose: ", "Lease-Purpose: " + strings.Repeat("x", 32<<10), "longer than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			good := encode(t, object.SHA1, find(t, object.SHA1, tt.sample))
			i := strings.LastIndex(string(good.Data), tt.old)
			if i < 0 {
				t.Fatalf("no %q in\n%s", tt.old, good.Data)
			}
			bad := string(good.Data[:i]) + tt.new + string(good.Data[i+len(tt.old):])
			obj := object.SHA1.New(object.Commit, []byte(bad))
			_, err := event.Parse(object.SHA1, obj)
			malformed, ok := errors.AsType[*event.MalformedError](err)
			if !ok {
				t.Fatalf("error %v, want a *MalformedError", err)
			}
			if malformed.OID != obj.OID || !strings.Contains(err.Error(), string(obj.OID)) {
				t.Errorf("error %q does not name %s", err, obj.OID)
			}
			if !strings.Contains(malformed.What, tt.want) {
				t.Errorf("error %q, want %q in it", malformed.What, tt.want)
			}
		})
	}
}

func TestParseRefusesOtherObjects(t *testing.T) {
	t.Parallel()
	for _, obj := range []object.Object{
		object.SHA1.New(object.Blob, []byte("x")),
		object.SHA1.New(object.Tree, nil),
		object.SHA1.New(object.Commit, nil),
		object.SHA256.New(object.Commit, encode(t, object.SHA1, find(t, object.SHA1, "acquire")).Data),
	} {
		_, err := event.Parse(object.SHA256, obj)
		if _, ok := errors.AsType[*event.MalformedError](err); !ok {
			t.Errorf("a %s: error %v, want a *MalformedError", obj.Kind, err)
		}
	}
}

// What comes after the format number of a newer event is not looked at: not
// even the tree has to be empty.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	raw := object.CommitData{
		Tree: oid(object.SHA1, "9"), Author: ada + " 1 +0000", Committer: grace + " 1 +0000",
		Message: "anything\n\nat all\n\nLease-Format: 12\nLease-Moon: full\n",
	}.Encode()
	obj := object.SHA1.New(object.Commit, raw)
	_, err := event.Parse(object.SHA1, obj)
	newer, ok := errors.AsType[*event.NewerError](err)
	if !ok || newer.Format != 12 || newer.OID != obj.OID || !strings.Contains(err.Error(), "12") {
		t.Errorf("error %v, want a *NewerError of format 12", err)
	}
}

func TestSignedEventIsTheUnsignedOne(t *testing.T) {
	t.Parallel()
	good := encode(t, object.SHA1, find(t, object.SHA1, "acquire"))
	commit, err := object.ParseCommit(good.Data)
	if err != nil {
		t.Fatal(err)
	}
	commit.Extra = []object.Header{{Key: "gpgsig", Value: "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH\n-----END SSH SIGNATURE-----"}}
	signed := object.SHA1.New(object.Commit, commit.Encode())
	e, err := event.Parse(object.SHA1, signed)
	if err != nil {
		t.Fatal(err)
	}
	if e.OID != signed.OID {
		t.Errorf("the event is %s, want the signed commit %s", e.OID, signed.OID)
	}
	if again := encode(t, object.SHA1, e); again.OID != good.OID {
		t.Errorf("encodes to\n%s\nwant\n%s", again.Data, good.Data)
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		format object.Format
		change func(*event.Event)
		ident  string
		want   string
	}{
		{"another's identity", object.SHA1, nil, grace + " 1785587520 +0230", "not the event's"},
		{"another time", object.SHA1, nil, ada + " 1785587521 +0230", "not the event's"},
		{"no identity", object.SHA1, nil, "Ada", "want Name <email>"},
		{"other format", object.SHA256, nil, "", "format sha256"},
		{"text that is not clean", object.SHA1, func(e *event.Event) { e.By.Host = "a\nb" }, "", "clean text"},
		{"unclean actor", object.SHA1, func(e *event.Event) { e.Actor = "A\x00da <a@x>" }, "", "not the event's"},
		{"text that is too long", object.SHA1, func(e *event.Event) { e.By.Host = strings.Repeat("x", 1025) }, "", "1024"},
		{"branch that is no text", object.SHA1, func(e *event.Event) { e.State.Branches[0] = "refs/heads/\xff" }, "", "clean text"},
		{"too many steps", object.SHA1, func(e *event.Event) {
			e.State.Hold.Motion, e.State.Hold.Steps = id(40), strings.Repeat("x", 64)
			for n := range 16 {
				e.State.Hold.Steps += " " + strings.Repeat(string(rune('a'+n)), 64)
			}
		}, "", "1024"},
		{"too many branches", object.SHA1, func(e *event.Event) {
			for n := range 5 {
				ref := "refs/heads/" + strings.Repeat(string(rune('a'+n)), 1000)
				e.State.Branches = append(e.State.Branches, object.Ref(ref))
			}
		}, "", "4096"},
		{"name", object.SHA1, func(e *event.Event) { e.Name = "" }, "", "empty"},
		{"sequence 0", object.SHA1, func(e *event.Event) { e.Seq = 0 }, "", "sequence"},
		{"no time", object.SHA1, func(e *event.Event) { e.Time = e.Time.AddDate(-3000, 0, 0) }, "", "date"},
		{"half a second", object.SHA1, func(e *event.Event) { e.State.Hold.Since = e.State.Hold.Since.Add(1) }, "", "whole second"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := find(t, object.SHA1, "acquire")
			if tt.change != nil {
				tt.change(&e)
			}
			ident := tt.ident
			if ident == "" {
				ident = e.Ident()
			}
			if _, err := e.Encode(tt.format, ident); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// The largest event that is valid fits the message, so that Encode's own bound
// never meets a user.
func TestLargestEventFits(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", event.MaxText)
	ref := func(c string) object.Ref { return object.Ref("refs/heads/" + strings.Repeat(c, 1005)) }
	e := find(t, object.SHA256, "land-held")
	hold, land := *e.State.Hold, *e.By.Land
	e.Name = strings.Repeat("n", 200)
	e.State.Branches = []object.Ref{ref("a"), ref("b"), ref("c"), ref("d")}
	hold.Holder, hold.Host, hold.Purpose = long, long, long
	land.Branch, land.Unit, land.Unverified, land.Reason = ref("a"), long, long, long
	e.By.Host, e.State.Hold, e.By.Land = long, &hold, &land
	e.Kind, e.By.Record, hold.Intent = event.Intent, strings.Repeat("r", event.MaxRecord), land.ID
	var names []string
	for n := range 15 {
		names = append(names, strings.Repeat(string(rune('a'+n)), event.MaxStepName))
	}
	land.Steps = strings.Join(names, " ")
	hold.Motion, hold.Steps, hold.Stuck = id(90), land.Steps, event.Unknown
	if got, err := event.Parse(object.SHA256, encode(t, object.SHA256, e)); err != nil || !got.State.Equal(e.State) {
		t.Error(err)
	}
}

// Which fields a kind has is exact: taking away one that it must have, or
// adding one that it has not, makes it no event.
func TestFieldsOfKinds(t *testing.T) {
	t.Parallel()
	donor := event.By{
		Operation: id(90), Target: id(91), Reason: "why", Secret: strings.Repeat("a", 64),
		Adopt: find(t, object.SHA1, "adopt-first").By.Adopt, Land: find(t, object.SHA1, "land").By.Land,
		Record: "{}", Finding: find(t, object.SHA1, "repair").By.Finding,
		Updates: find(t, object.SHA1, "override").By.Updates, TakenBack: id(92), Announced: true,
		Step: find(t, object.SHA1, "step").By.Step,
	}
	fields := []string{"Operation", "Target", "Reason", "Secret", "Adopt", "Land", "Record", "TakenBack", "Finding", "Updates", "Announced", "Step"}
	optional := map[string]string{"adopt-first": "Adopt", "release": "Reason", "abort": "Reason", "void": "Reason TakenBack",
		"void-takes-back": "Reason TakenBack", "override": "Announced", "override-held": "Announced", "override-announced": "Announced",
		"repair": "Land", "repair-lands": "Land", "thaw": "Reason",
		"land": "Secret", "land-held": "Secret", "land-unborn": "Secret", "land-forced": "Secret", "land-releases": "Secret",
		"land-steps": "Secret", "step": "Secret", "step-failed": "Secret", "step-declared": "Secret", "step-releases": "Secret"}
	for _, s := range samples(object.SHA1) {
		for _, field := range fields {
			e := s.event
			by := reflect.ValueOf(&e.By).Elem().FieldByName(field)
			if by.IsZero() {
				by.Set(reflect.ValueOf(donor).FieldByName(field))
			} else {
				by.SetZero()
			}
			if err := e.Validate(); (err == nil) != slices.Contains(strings.Fields(optional[s.name]), field) {
				t.Errorf("%s with %s toggled: %v", s.name, field, err)
			}
		}
	}
}

func TestSubject(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"adopt-first":        "lease release/1.x: adopt main by Ada Lovelace on lab-1",
		"adopt-over":         "lease release/1.x: adopt main over eeeeeeeeeeee by Ada Lovelace on lab-…",
		"adopt-further":      "lease release/1.x: adopt release/1.x by Ada Lovelace",
		"acquire":            "lease release/1.x: acquire by Ada Lovelace on lab-1 — cut the 1.0 relea…",
		"release":            "lease release/1.x: release by Ada Lovelace on lab-1",
		"land":               "lease release/1.x: land bbbbbbbbbbbb on main by Ada Lovelace on lab-1…",
		"land-forced":        "lease release/1.x: land bbbbbbbbbbbb on main unverified by Ada Lovelace…",
		"land-unborn":        "lease release/1.x: land bbbbbbbbbbbb on main by Ada Lovelace on lab-1",
		"void":               "lease release/1.x: void by Ada Lovelace — the push was lost",
		"recover-takes":      "lease release/1.x: recover and take by Ada Lovelace — the machine was s…",
		"intent":             "lease release/1.x: intent bbbbbbbbbbbb on main by Ada Lovelace on lab-1…",
		"repair-lands":       "lease release/1.x: repair commit-without-record bbbbbbbbbbbb by Ada Lov…",
		"freeze":             "lease release/1.x: freeze by Ada Lovelace on lab-1 — the repository mov…",
		"override":           "lease release/1.x: override main by Ada Lovelace on lab-1 — somebody pu…",
		"override-announced": "lease release/1.x: override main announced by Ada Lovelace on lab-1 — s…",
		"override-held":      "lease release/1.x: override main and 2 more by Ada Lovelace — somebody…",
		"step":               "lease release/1.x: step announce.2 done by Ada Lovelace on lab-1",
		"step-declared":      "lease release/1.x: step announce.2 declared by Ada Lovelace on lab-1…",
		"land-steps":         "lease release/1.x: land bbbbbbbbbbbb on main by Ada Lovelace on lab-1…",
		"break-takes":        "lease release/1.x: break and take by Ada Lovelace — on holiday",
	} {
		if got := find(t, object.SHA1, name).Subject(); got != want {
			t.Errorf("%s: subject %q, want %q", name, got, want)
		}
	}
}

// Real git takes events for sound commits, and reads their trailers.
func TestGitReadsEvents(t *testing.T) {
	t.Parallel()
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			dir := gittest.Bare(t, "--object-format="+string(f))
			if got := gittest.Git(t, dir, "hash-object", "-t", "tree", "-w", os.DevNull); got != string(f.EmptyTree()) {
				t.Fatalf("the empty tree is %s, want %s", got, f.EmptyTree())
			}
			first := writeEvent(t, dir, f, find(t, f, "adopt-first"))
			for _, s := range samples(f) {
				e := s.event
				e.Parents = []object.OID{first}
				if e.First() || len(s.event.Parents) > 1 {
					continue // its parents would have to exist
				}
				oid := writeEvent(t, dir, f, e)
				gittest.Git(t, dir, "update-ref", "refs/lease/"+s.name, string(oid))
				if got := gittest.Git(t, dir, "log", "-1", "--format=%s", string(oid)); got != e.Subject() {
					t.Errorf("%s: git log shows %q, want %q", s.name, got, e.Subject())
				}
				message := gittest.Git(t, dir, "log", "-1", "--format=%B", string(oid))
				gittest.Write(t, dir, map[string]string{"message": message})
				_, trailers, _ := strings.Cut(strings.TrimSpace(message), "\n\n")
				if got := gittest.Git(t, dir, "interpret-trailers", "--parse", "message"); got != trailers {
					t.Errorf("%s: git reads the trailers\n%s\nwant\n%s", s.name, got, trailers)
				}
			}
			gittest.Git(t, dir, "fsck", "--strict", "--no-dangling")
		})
	}
}

// writeEvent stores an event in a repository and returns git's name for it.
func writeEvent(t *testing.T, dir string, f object.Format, e event.Event) object.OID {
	t.Helper()
	obj := encode(t, f, e)
	gittest.Write(t, dir, map[string]string{"commit": string(obj.Data)})
	if got := gittest.Git(t, dir, "hash-object", "-t", "commit", "-w", "commit"); got != string(obj.OID) {
		t.Fatalf("git names the commit %s, want %s", got, obj.OID)
	}
	return obj.OID
}
