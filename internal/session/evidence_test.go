package session

import (
	"os"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
)

// home is where the operation of these tests ran, and when its process began.
var home = Place{Machine: "m1", Boot: "b1", Namespace: "n1", Clone: Clone{Device: 1, Inode: 2, Witness: 3}, Local: true}

const began = "4711"

// The comparisons of recover, each by its values alone. What is not said is as
// in an operation whose process was killed a moment ago.
func TestJudge(t *testing.T) {
	t.Parallel()
	killed := func() Evidence {
		r := newRecord(Record{Operation: ulid.Make(), PID: 42}, home, began)
		return Evidence{Record: &r, Witness: Free, Here: home, Seen: Sighting{Absent: true}}
	}
	tied := func(e *Evidence) { e.Record.Tied = true }
	tests := []struct {
		name   string
		change func(*Evidence)
		want   Verdict
		why    string
	}{
		{"killed", func(e *Evidence) {}, Gone, "its witness is free, and its process 42 has ended; same machine, boot, PID namespace and clone"},
		{"same process", func(e *Evidence) {
			e.Witness, e.Holders, e.Seen = Locked, []Holder{{42, "git-lease run"}}, Sighting{Start: began}
		}, Alive, "its witness is locked by process 42 (git-lease run)"},
		{"orphaned child", func(e *Evidence) { e.Witness, e.Holders = Locked, []Holder{{43, "sleep"}, {44, ""}} }, Alive,
			"its witness is locked by process 43 (sleep) and process 44"},
		{"holder of another user", func(e *Evidence) { e.Witness = Locked }, Alive, "locked by a process that cannot be seen from here"},
		{"locked, and nothing else is as it was", func(e *Evidence) { e.Witness, e.Record, e.Here = Locked, nil, Place{} }, Alive, "locked"},
		{"process without its lock", func(e *Evidence) { e.Seen = Sighting{Start: began} }, Alive, "its process 42 is running"},
		{"PID reused", func(e *Evidence) { e.Seen = Sighting{Start: "4712"} }, Gone, "another one has its PID, by its start time"},
		{"PID hidden", func(e *Evidence) { e.Seen = Sighting{} }, Unknown, "cannot be told from another one"},
		{"start not recorded", func(e *Evidence) { e.Record.Start, e.Seen = "", Sighting{Start: began} }, Unknown, "cannot be told"},
		{"rebooted", func(e *Evidence) { e.Here.Boot, e.Here.Namespace = "b2", "n2" }, Gone, "rebooted since: the same machine and clone"},
		{"rebooted, PID in use", func(e *Evidence) { e.Here.Boot, e.Seen = "b2", Sighting{Start: began} }, Gone, "rebooted"},
		{"rebooted, shared file system", func(e *Evidence) { e.Here.Boot, e.Here.Local = "b2", false }, Unknown, "other machines may have"},
		{"rebooted, no machine id", func(e *Evidence) { e.Here.Boot, e.Here.Machine, e.Record.Machine = "b2", "", "" }, Unknown, "no id"},
		{"rebooted, copied clone", func(e *Evidence) { e.Here.Boot, e.Here.Clone.Inode = "b2", 9 }, Unknown, "a copy"},
		{"boot unknown", func(e *Evidence) { e.Here.Boot = "" }, Unknown, "whether the machine was rebooted"},
		{"boot not recorded", func(e *Evidence) { e.Record.Boot = "" }, Unknown, "whether the machine was rebooted"},
		{"other host", func(e *Evidence) { e.Here.Machine, e.Here.Boot = "m2", "b2" }, Unknown, "another machine"},
		{"other host, same boot", func(e *Evidence) { e.Here.Machine = "m2" }, Unknown, "another machine"},
		{"machine lost its id", func(e *Evidence) { e.Here.Machine = "" }, Unknown, "another machine"},
		{"no machine id, same boot", func(e *Evidence) { e.Here.Machine, e.Record.Machine = "", "" }, Gone, "has ended"},
		{"container with PID 1", func(e *Evidence) { e.Record.PID, e.Here.Namespace, e.Seen = 1, "n2", Sighting{Start: "1"} }, Unknown, "another PID namespace"},
		{"namespace unknown", func(e *Evidence) { e.Here.Namespace = "" }, Unknown, "another PID namespace"},
		{"copied clone", func(e *Evidence) { e.Here.Clone.Inode = 9 }, Unknown, "a copy"},
		{"clone on another disk", func(e *Evidence) { e.Here.Clone.Device = 9 }, Unknown, "a copy"},
		{"restored witness", func(e *Evidence) { e.Here.Clone.Witness = 9 }, Unknown, "a copy"},
		{"shared file system", func(e *Evidence) { e.Here.Local = false }, Unknown, "proves nothing on a file system"},
		{"no witness", func(e *Evidence) { e.Witness, e.Here.Clone.Witness = NoWitness, 0 }, Unknown, "witness was removed"},
		{"no record", func(e *Evidence) { e.Record, e.Witness = nil, NoWitness }, Unknown, "no record of it"},
		{"no record beside the witness", func(e *Evidence) { e.Record = nil }, Unknown, "no record of where it ran"},
		{"newer record", func(e *Evidence) { e.Record.Format++ }, Unknown, "has format 2"},
		{"command that closed its witness", func(e *Evidence) {
			e.Record.Command, e.Record.CommandStart = 43, e.Record.digest("start", began)
			e.Command = Sighting{Start: began}
		}, Alive, "its command, process 43, is running"},
		{"command ended", func(e *Evidence) { e.Record.Command, e.Command = 43, Sighting{Absent: true} }, Gone, "its process 42 has ended; same"},
		{"PID of the command reused", func(e *Evidence) {
			e.Record.Command, e.Record.CommandStart = 43, e.Record.digest("start", began)
			e.Command = Sighting{Start: "4712"}
		}, Gone, "its process 42 has ended; same"},
		{"command hidden", func(e *Evidence) { e.Record.Command = 43 }, Unknown, "its command, process 43, cannot be told"},
		{"tied, and its process ended", tied, Gone, "process 42, to which it is tied, has ended; same machine"},
		{"tied, on a shared file system", func(e *Evidence) { tied(e); e.Here.Local = false }, Gone, "has ended"},
		{"tied, and its process runs", func(e *Evidence) { tied(e); e.Seen = Sighting{Start: began} }, Alive, "process 42, to which it is tied, is running"},
		{"tied, PID reused", func(e *Evidence) { tied(e); e.Seen = Sighting{Start: "4712"} }, Gone, "another one has its PID"},
		{"tied, rebooted", func(e *Evidence) { tied(e); e.Here.Boot = "b2" }, Gone, "rebooted"},
		{"tied, copied clone", func(e *Evidence) { tied(e); e.Here.Clone.Inode = 9 }, Unknown, "a copy"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := killed()
			test.change(&e)
			got := e.Judge()
			if got.Verdict != test.want || !strings.Contains(got.Why, test.why) {
				t.Errorf("got %s: %s; want %s: %s", got.Verdict, got.Why, test.want, test.why)
			}
		})
	}
}

// A record shows nothing of the machine, and no two of them compare.
func TestRecordShowsNothing(t *testing.T) {
	t.Parallel()
	one, other := newRecord(Record{}, home, began), newRecord(Record{}, home, began)
	if one.Machine == other.Machine || one.Machine == one.Boot || one.Start == other.Start {
		t.Error("digests of two records are the same")
	}
	for _, digest := range []string{one.Machine, one.Boot, one.Namespace, one.Start} {
		if len(digest) != 64 {
			t.Errorf("%q is no digest", digest)
		}
	}
}

// This process, as the system shows it.
func TestSystem(t *testing.T) {
	t.Parallel()
	self := look(os.Getpid())
	if self.Absent || self.Start == "" || self != look(os.Getpid()) {
		t.Errorf("this process: %+v", self)
	}
	if parent := look(os.Getppid()); parent.Absent || parent.Start == self.Start {
		t.Errorf("its parent: %+v, itself: %+v", parent, self)
	}
	if none := look(1 << 30); !none.Absent {
		t.Errorf("no process: %+v", none)
	}
	if bootID() == "" || namespace() == "" {
		t.Errorf("boot %q, namespace %q", bootID(), namespace())
	}
}

func TestCommandName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"/usr/lib/git-core/git", "credential-cache--daemon", "/home/ada/.git-credential-cache/socket"}, "git credential-cache--daemon"},
		{[]string{"sleep", "60"}, "sleep 60"},
		{[]string{"-bash"}, "bash"},
		{[]string{"mysql", "-psecret"}, "mysql"},
		{[]string{"curl", "https://me:secret@example.com"}, "curl"},
		{[]string{"x\x1b[2J"}, ""},
		{nil, ""},
	} {
		if got := commandName(c.argv); got != c.want {
			t.Errorf("%q: got %q, want %q", c.argv, got, c.want)
		}
	}
}
