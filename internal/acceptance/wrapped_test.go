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
