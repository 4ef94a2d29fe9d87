package acceptance

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gitland/internal/gittest"
)

// A wrapped command goes on until its standard input ends. Git-lease run holds
// the lease meanwhile, or as long as it lives.
type wrapped struct {
	s       seat
	wrapper *exec.Cmd // git-lease, or what it runs in
	stdin   io.Closer
	pid     int // of the command
	op      string
}

// waits says that it has begun and waits for the end of its input.
const waits = `echo $$ $GIT_LEASE_OPERATION; exec cat`

// runs starts a command of the user's under a lease and returns when it is at
// work. The arguments are those of git-lease run, before --.
func (s seat) runs(script string, args ...string) *wrapped {
	s.t.Helper()
	return s.starts(s.cmd("git-lease", append(append([]string{"run"}, args...), "--", "sh", "-c", script)...))
}

func (s seat) starts(cmd *exec.Cmd) *wrapped {
	s.t.Helper()
	r, stdin, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout = r, w
	err = cmd.Start()
	r.Close()
	w.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	run := &wrapped{s: s, wrapper: cmd, stdin: stdin}
	s.t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
		out.Close()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	words := strings.Fields(line)
	if err != nil || len(words) != 2 {
		s.t.Fatalf("the command says %q, %v", line, err)
	}
	run.pid, _ = strconv.Atoi(words[0])
	run.op = words[1]
	return run
}

// killed kills git-lease alone.
func (w *wrapped) killed() {
	w.s.t.Helper()
	if err := w.wrapper.Process.Kill(); err != nil {
		w.s.t.Fatal(err)
	}
	w.wrapper.Wait()
}

// ended lets the command end, and waits until nobody has its witness.
func (w *wrapped) ended() {
	w.s.t.Helper()
	w.stdin.Close()
	until(w.s.t, "the witness is free", func() bool {
		f, err := os.Open(w.s.witness(w.op))
		if err != nil {
			return os.IsNotExist(err)
		}
		defer f.Close()
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	})
}

// dead is an operation of git-lease run that was killed, and its command too.
func (s seat) dead(args ...string) *wrapped {
	s.t.Helper()
	w := s.runs(waits, args...)
	w.killed()
	w.ended()
	return w
}

func (s seat) witness(op string) string {
	return filepath.Join(s.dir, ".git", "lease", "witness", op)
}

// alter changes what an operation recorded of where it runs.
func (s seat) alter(op string, change func(record map[string]any)) {
	s.t.Helper()
	path := s.witness(op) + ".json"
	data, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(data, &record); err != nil {
		s.t.Fatal(err)
	}
	change(record)
	if data, err = json.Marshal(record); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// elsewhere is a digest of nothing here.
var elsewhere = strings.Repeat("0", 64)

func other(keys ...string) func(map[string]any) {
	return func(record map[string]any) {
		for _, k := range keys {
			record[k] = elsewhere
		}
	}
}

// A verdict is what --json tells of a refusal to recover.
type verdict struct {
	Error struct {
		Code, Message, Hint, Verdict, Comparison, Operation string
		By                                                  []struct {
			PID     int
			Command string
		} `json:"witness_held_by"`
	}
}

// refuses wants recover to free nothing, with this verdict and comparison.
func (s seat) refuses(want, comparison string, args ...string) verdict {
	s.t.Helper()
	r := s.exits(3, "git-lease", append([]string{"recover", "--json"}, args...)...)
	v := decode[verdict](s.t, r)
	if v.Error.Verdict != want || !strings.Contains(v.Error.Comparison, comparison) || !strings.Contains(r.Stderr, v.Error.Comparison) {
		s.t.Errorf("verdict %s: %s; want %s: %s\n%s", v.Error.Verdict, v.Error.Comparison, want, comparison, r.Stderr)
	}
	if breaks := "git lease break main --operation " + v.Error.Operation + " --reason WHY"; !strings.Contains(v.Error.Hint, breaks) {
		s.t.Errorf("hint %q, want one with %q", v.Error.Hint, breaks)
	}
	return v
}

// recovers wants the lease main freed, because of this comparison.
func (s seat) recovers(comparison string, args ...string) {
	s.t.Helper()
	r := s.exits(0, "git-lease", append([]string{"recover"}, args...)...)
	if !strings.Contains(r.Stderr, comparison) || !strings.HasPrefix(r.Stderr, "gone ") {
		s.t.Errorf("recovered because of %q, want %q", r.Stderr, comparison)
	}
	if log := s.exits(0, "git-lease", "log", "-n", "1").Stdout; !strings.Contains(log, "recover") || !strings.Contains(log, "because: ") {
		s.t.Errorf("log %q", log)
	}
	s.nothingRecorded()
}

// nothingRecorded wants no witness and no record of any operation in the clone.
func (s seat) nothingRecorded() {
	s.t.Helper()
	left, err := filepath.Glob(s.witness("*"))
	if err != nil || len(left) > 1 || len(left) == 1 && filepath.Base(left[0]) != "guard.lock" {
		s.t.Errorf("left behind: %q, %v", left, err)
	}
}

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

// Whoever asks from within the command asks about itself.
func TestRecoverOfLiveCommand(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	w := s.runs(waits)
	v := s.refuses("alive", "its witness is locked by process "+strconv.Itoa(w.wrapper.Process.Pid)+" (git-lease run)")
	// Git's processes, one of which reads objects all the time, have no part in it.
	if by := v.Error.By; len(by) != 2 || by[0].Command != "git-lease run" || by[1].PID != w.pid || by[1].Command != "cat" {
		t.Errorf("witness held by %+v", by)
	}
	r := s.exits(3, "git-lease", "acquire") // recovers nothing by itself, and says how
	if !strings.Contains(r.Stderr, "git lease recover main") {
		t.Errorf("stderr %q", r.Stderr)
	}
	w.stdin.Close()
	if err := w.wrapper.Wait(); err != nil {
		t.Error(err)
	}
	s.nothingRecorded()
	r = s.exits(3, "git-lease", "run", "--", "git-lease", "recover")
	if !strings.Contains(r.Stderr, "(git-lease run)") {
		t.Errorf("stderr %q", r.Stderr)
	}
	s.nothingRecorded()
}

// The command gets the witness, and so does a git of its own. No process of ours
// does: not the pushes that are made while it is locked, either.
func TestWitnessIsForTheCommand(t *testing.T) {
	t.Parallel()
	if _, err := os.Readlink("/proc/self/fd/0"); err != nil {
		t.Skip("descriptors cannot be listed here")
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	s, dir := clone(t, gittest.Remote(t)), t.TempDir()
	gittest.Script(t, filepath.Join(dir, "git"), `#!/bin/sh
has=no; readlink /proc/$$/fd/* | grep -q /lease/witness/0 && has=yes
printf '%s %s\n' "$has" "$*" >>'`+dir+`/log'
exec '`+git+`' "$@"
`)
	s.env = gittest.WithPath(s.env, dir)
	check := func(want int, args ...string) {
		t.Helper()
		os.Remove(filepath.Join(dir, "log"))
		s.exits(0, args[0], args[1:]...)
		pushes, has := 0, []string{}
		for line := range strings.Lines(read(t, filepath.Join(dir, "log"))) {
			if strings.Contains(line, " push ") {
				pushes++
			}
			if strings.HasPrefix(line, "yes") {
				has = append(has, line)
			}
		}
		if len(has) != want || pushes == 0 {
			t.Errorf("%q: %d git processes have the witness, want %d: %q; of %d pushes", args, len(has), want, has, pushes)
		}
	}
	check(1, "git-lease", "run", "--", "git", "--version")
	check(0, "git-lease", "run", "--close", "--", "git", "--version")
	s.write(map[string]string{"new": "n\n"})
	check(0, "git-land", "--force-unverified", "--reason", "test", "-m", "change", "--", "new")
}

// A command whose git-lease was killed works on, and so does its lease; with
// --close it does not.
func TestRecoverOfOrphanedChild(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	w := s.runs(waits)
	w.killed()
	s.refuses("alive", "its witness is locked by process "+strconv.Itoa(w.pid)+" (cat)")
	w.ended()
	s.recovers("has ended; same machine, boot, PID namespace and clone")

	w = s.runs(waits, "--close")
	w.killed()
	s.recovers("its witness is free")
	if err := syscall.Kill(w.pid, 0); err != nil {
		t.Errorf("the command has ended: %v", err)
	}
}

// Some programs close what they inherited. The command itself counts all the same.
func TestRecoverOfCommandThatClosedItsWitness(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	// Descriptors above 9 are not every shell's to close.
	const closing = `i=0; while [ $i -lt 64 ]; do i=$((i+1)); [ $i -lt 3 ] || eval "exec $i>&-" 2>/dev/null; done; `
	if r := s.try("bash", "-c", closing+"true"); r.Code != 0 {
		t.Skipf("this shell closes no descriptors: %s", r.Stderr)
	}
	w := s.starts(s.cmd("git-lease", "run", "--", "bash", "-c", closing+waits))
	until(t, "the command is recorded", func() bool { return strings.Contains(read(t, s.witness(w.op)+".json"), `"command":`) })
	w.killed()
	s.refuses("alive", "its command, process "+strconv.Itoa(w.pid)+", is running")
	w.stdin.Close()
	until(t, "the command has ended", func() bool { return syscall.Kill(w.pid, 0) != nil })
	s.recovers("its witness is free")
}

// A process that is stopped can go on at any time.
func TestRecoverOfSuspendedProcess(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	w := s.runs(waits)
	pid := w.wrapper.Process.Pid
	for _, p := range []int{w.pid, pid} {
		if err := syscall.Kill(p, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	s.refuses("alive", "(git-lease run) and process ")
	for _, p := range []int{w.pid, pid} {
		if err := syscall.Kill(p, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	w.stdin.Close()
	if err := w.wrapper.Wait(); err != nil {
		t.Errorf("run: %v", err)
	}

	shell := startShell(t, s)
	s.with("GIT_LEASE_SESSION=one").exits(0, "git-lease", "acquire", "--watch-pid", strconv.Itoa(shell.Process.Pid))
	if err := shell.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.refuses("alive", "to which it is tied, is running")
}

// startShell starts a process that lives until it is killed or the test ends.
func startShell(t *testing.T, s seat) *exec.Cmd {
	t.Helper()
	cmd := s.cmd("cat")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
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
	if r := s.exits(3, "git-lease", "recover", "--acquire"); r.Stdout != "(exit 3)\n" {
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

// The first process of a container has the PID 1, and so has somebody outside.
func TestRecoverOfContainer(t *testing.T) {
	t.Parallel()
	const enter = "--pid --fork --mount-proc --kill-child"
	s := clone(t, gittest.Remote(t))
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("unshare(1) is not here")
	}
	if r := s.try("unshare", append(strings.Fields(enter), "true")...); r.Code != 0 {
		t.Skipf("no PID namespace may be made here: %s", r.Stderr)
	}
	inside := func(args ...string) *exec.Cmd { return s.cmd("unshare", append(strings.Fields(enter), args...)...) }
	w := s.starts(inside("git-lease", "run", "--", "sh", "-c", waits))
	s.refuses("alive", "its witness is locked by process ")
	w.killed()
	w.ended()
	s.refuses("unknown", "it ran in another PID namespace, such as a container's")
	s.exits(0, "git-lease", "break", "--operation", w.op, "--reason", "the container is gone")

	s.dead()
	r := gittest.Run(t, inside("git-lease", "recover", "--json"))
	if v := decode[verdict](t, r); r.Code != 3 || v.Error.Verdict != "unknown" || !strings.Contains(v.Error.Comparison, "another PID namespace") {
		t.Errorf("from within a container: exit %d, %+v", r.Code, v.Error)
	}
	s.recovers("has ended")
	s.nothingRecorded()
}

// A daemon that git started for the command has its descriptors. It counts, and
// whoever wants to end it is told which it is.
func TestRecoverOfCredentialDaemon(t *testing.T) {
	t.Parallel()
	s := clone(t, gittest.Remote(t))
	dir, err := os.MkdirTemp("", "s") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cache := func(action string) []string {
		return []string{"credential-cache", "--socket", filepath.Join(dir, "c"), action}
	}
	if r := s.try("git", cache("exit")...); r.Code != 0 {
		t.Skipf("this git has no credential-cache: %s", r.Stderr)
	}
	t.Cleanup(func() { s.try("git", cache("exit")...) })
	w := s.runs(`printf 'protocol=https\nhost=example.com\nusername=ada\npassword=x\n\n' | git ` + strings.Join(cache("store"), " ") + `; ` + waits)
	w.killed()
	w.stdin.Close()
	until(t, "the daemon alone has the witness", func() bool {
		v := decode[verdict](t, s.exits(3, "git-lease", "recover", "--json"))
		return len(v.Error.By) == 1
	})
	s.refuses("alive", "(git credential-cache--daemon)")
	s.exits(0, "git", cache("exit")...)
	w.ended()
	s.recovers("has ended")
}
