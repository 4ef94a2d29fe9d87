package acceptance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

// Every comparison that proves nothing frees nobody, on one killed operation;
// then the one that does.
func TestRecoverOnlyByProof(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	w := s.dead()
	whole, err := os.ReadFile(s.witness(w.op) + ".json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		change     func(map[string]any)
		comparison string
	}{
		{"other-host", other("machine"), "it ran on another machine"},
		{"other-host-after-its-boot", other("machine", "boot"), "it ran on another machine"},
		{"other-PID-namespace", other("namespace"), "another PID namespace"},
		{"copied-clone", func(r map[string]any) { r["clone"].(map[string]any)["inode"] = 1 }, "in another clone"},
		{"restored-witness", func(r map[string]any) { r["clone"].(map[string]any)["witness"] = 1 }, "in another clone"},
		{"rebooted-copy", func(r map[string]any) {
			other("boot")(r)
			r["clone"].(map[string]any)["device"] = 1
		}, "in another clone"},
		{"newer-record", func(r map[string]any) { r["format"] = 2 }, "format 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := s
			s.t = t
			s.alter(w.op, c.change)
			s.refuses("unknown", c.comparison)
			if err := os.WriteFile(s.witness(w.op)+".json", whole, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("copied-clone-in-fact", func(t *testing.T) {
		s := s
		s.t = t
		copied := filepath.Join(t.TempDir(), "copy")
		gittest.Run(t, s.cmd("cp", "-Rp", s.dir, copied))
		s.dir = copied
		s.refuses("unknown", "in another clone, of which this one is a copy")
	})
	t.Run("another-clone", func(t *testing.T) {
		s := s
		s.t = t
		s.dir = gittest.Clone(t, s.git("config", "remote.origin.url"))
		if v := s.refuses("unknown", "no record of it"); v.Error.Operation != w.op {
			t.Errorf("operation %q, want %s", v.Error.Operation, w.op)
		}
	})
	t.Run("other-operation", func(t *testing.T) {
		s.exits(3, "git-lease", "recover", "--operation", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	})
	// What a machine calls itself is nobody's business.
	s.git("config", "lease.host", "renamed")
	s.recovers("its witness is free, and its process "+strconv.Itoa(w.wrapper.Process.Pid)+" has ended", "--operation", w.op)
	s.exits(3, "git-lease", "recover") // it is free
}

// A reboot is seen by the boot's id, whatever has the old PID by now.
func TestRecoverAfterReboot(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	w := s.dead()
	s.alter(w.op, func(r map[string]any) {
		other("boot", "namespace", "start")(r)
		r["pid"] = os.Getpid()
	})
	s.recovers("the machine was rebooted since: the same machine and clone, another boot")
}

// A lease that was acquired by hand lasts as long as the process to which it was
// tied. Who comes back to it is told.
func TestRecoverOfTiedLease(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	mine, shell := s.with("GIT_LEASE_SESSION=mine"), startShell(t, s)
	pid := strconv.Itoa(shell.Process.Pid)
	mine.exits(0, "git-lease", "acquire", "--watch-pid", pid)
	s.refuses("alive", "process "+pid+", to which it is tied, is running")
	if r := mine.exits(3, "git-lease", "recover"); !strings.Contains(r.Stderr, "alive") {
		t.Errorf("stderr %q", r.Stderr)
	}
	shell.Process.Kill()
	shell.Wait()
	s.recovers("process " + pid + ", to which it is tied, has ended")

	mine.write(map[string]string{"late": "l\n"})
	if r := mine.exits(6, "git-land", "--force-unverified", "--reason", "test", "-m", "late", "--", "late"); !strings.Contains(r.Stderr, ": recovered by Ada") {
		t.Errorf("stderr %q", r.Stderr)
	}
	r := mine.exits(6, "git-lease", "release", "--json")
	var told struct {
		Error struct {
			Code, Message, Reason string
			By                    string `json:"recovered_by"`
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &told); err != nil {
		t.Fatal(err)
	}
	if e := told.Error; e.Code != "lost" || e.By != gittest.Identity || !strings.Contains(e.Message, ": recovered by Ada") || !strings.Contains(e.Reason, pid) {
		t.Errorf("told %+v", e)
	}

	// Given back in time, nothing of it is left.
	shell = startShell(t, s)
	pid = strconv.Itoa(shell.Process.Pid)
	mine.exits(0, "git-lease", "acquire", "--watch-pid", pid)
	mine.exits(0, "git-lease", "release")
	s.nothingRecorded()

	// Another process with that PID is another process.
	op := decode[grant](t, mine.exits(0, "git-lease", "acquire", "--watch-pid", pid, "--json")).Operation
	s.alter(op, other("start"))
	s.recovers("another one has its PID, by its start time")
	mine.exits(6, "git-lease", "release")
}

// A lease that was acquired by hand, and tied to nothing, can be proved to be
// neither.
func TestRecoverOfUntiedLease(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	mine := s.with("GIT_LEASE_SESSION=mine")
	mine.exits(0, "git-lease", "acquire")
	s.nothingRecorded()
	s.refuses("unknown", "taken in another clone, or without a process to watch")
	r := mine.exits(3, "git-lease", "recover")
	if !strings.Contains(r.Stderr, "hint: git lease release main") {
		t.Errorf("stderr %q", r.Stderr)
	}
}

// With --acquire nobody comes in between, and the token comes out.
func TestRecoverAndAcquire(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	w := s.dead()
	r := s.exits(0, "git-lease", "recover", "--acquire", "-m", "again", "--json")
	g := decode[grant](t, r)
	if got := kinds(t, remote); got != "adopt acquire recover" || g.Operation == w.op {
		t.Errorf("events %q, operation %s", got, g.Operation)
	}
	s.nothingRecorded()
	s.with("GIT_LEASE_TOKEN="+g.Token).exits(0, "git-lease", "release")
	if r := s.exits(3, "git-lease", "recover", "--acquire"); !strings.HasPrefix(r.Stdout, "(: ") || !strings.Contains(r.Stdout, "exit 3)") {
		t.Errorf("a shell that evaluates it goes on: %q", r.Stdout)
	}
}

// Of several who recover one operation at the same time, one does.
func TestRecoverAtTheSameTime(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	s.dead()
	const n = 4
	codes := make(chan int, n)
	for range n {
		cmd := s.cmd("git-lease", "recover")
		go func() {
			cmd.Run()
			codes <- cmd.ProcessState.ExitCode()
		}()
	}
	count := map[int]int{}
	for range n {
		count[<-codes]++
	}
	if count[0] != 1 || count[3] != n-1 || kinds(t, remote) != "adopt acquire recover" {
		t.Errorf("exit codes %v, events %q", count, kinds(t, remote))
	}
	s.nothingRecorded()
}

// A recover that is killed before it has done its work can be run again, and
// when it has, it has; nobody takes the one for the dead's own life.
func TestRecoverKilled(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s, dir := clone(t, remote), t.TempDir()
	s.dead()
	for _, c := range []struct{ hook, events string }{{"pre-receive", "adopt acquire"}, {"post-receive", "adopt acquire recover"}} {
		path := filepath.Join(remote, "hooks", c.hook)
		gittest.Script(t, path, "#!/bin/sh\nkill -9 $(cat '"+dir+"/pid')\nexit 1\n")
		s.exits(137, "sh", "-c", `sh -c 'echo $$ >"$0/pid"; exec git-lease recover' "$0"; exit $?`, dir)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if got := kinds(t, remote); got != c.events {
			t.Errorf("killed in %s: events %q, want %q", c.hook, got, c.events)
		}
	}
	s.exits(3, "git-lease", "recover") // it is free
	s.exits(0, "git-lease", "run", "--", "true")
	s.nothingRecorded()
}

// What a broken operation left goes at the latest when the lease is taken again
// here.
func TestRecordOfBrokenOperation(t *testing.T) {
	t.Parallel()
	remote := gittest.Remote(t)
	s := clone(t, remote)
	w := s.dead()
	clone(t, remote).exits(0, "git-lease", "break", "--operation", w.op, "--reason", "test")
	s.exits(0, "git-lease", "run", "--", "true")
	s.nothingRecorded()

	w = s.dead()
	s.exits(0, "git-lease", "break", "--operation", w.op, "--reason", "test")
	s.nothingRecorded()
}

// A landing that died is not for recover.
func TestRecoverOfLandingThatDied(t *testing.T) {
	t.Parallel()
	remote := notAtomic(t)
	s := clone(t, remote)
	s.write(map[string]string{"change": "c\n"})
	s.dies(remote, "pre-receive", "--", "change")
	op := holder(t, remote)
	for _, seat := range []seat{s, clone(t, remote)} {
		v := decode[verdict](t, seat.exits(3, "git-lease", "recover", "--json"))
		for _, command := range []string{"git land resume " + op, "git land abort " + op + " --reason WHY",
			"git lease break main --operation " + op + " --reason WHY --acquire"} {
			if !strings.Contains(v.Error.Hint, command) {
				t.Errorf("hint %q, want one with %q", v.Error.Hint, command)
			}
		}
	}
	s.exits(0, "git-land", "resume")
	nothingOpen(t, s, remote)
}
