package session_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gitland/internal/session"
)

// The test binary is also the other processes of these tests: the variable says
// which, and their arguments are the lease directory's parent and more. They
// begin when their stdin ends, and say what they did on stdout.
const roleVar = "SESSION_TEST_ROLE"

// TestMain plays the role that the environment names, or runs the tests.
func TestMain(m *testing.M) {
	roles := map[string]func(session.Dir, []string) error{
		"all": playAll, "writes": playWrites, "ensure": playEnsure, "note": playNote, "witness": playWitness, "take": playTake,
	}
	play := roles[os.Getenv(roleVar)]
	if play == nil {
		os.Exit(m.Run())
	}
	io.Copy(io.Discard, os.Stdin)
	if err := play(session.Open(os.Args[1]), os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func namedSession(d session.Dir) (session.Source, error) {
	return d.FromEnv(environment("GIT_LEASE_SESSION=agent-1"))
}

// environment looks variables up in a list of NAME=VALUE.
func environment(list ...string) func(string) string {
	return func(name string) string {
		for _, entry := range list {
			if n, value, _ := strings.Cut(entry, "="); n == name {
				return value
			}
		}
		return ""
	}
}

// playAll makes one of every file under the umask that is its argument.
func playAll(d session.Dir, args []string) error {
	var umask int
	if _, err := fmt.Sscanf(args[0], "%o", &umask); err != nil {
		return err
	}
	syscall.Umask(umask)
	source, err := namedSession(d)
	if err != nil {
		return err
	}
	id := session.NewID(time.Now())
	if _, err := source.Ensure(); err != nil {
		return err
	}
	// Twice what is done twice: the second finds what the first has made.
	for range 2 {
		if err := d.Journal().Write(id, "x"); err != nil {
			return err
		}
		w, err := d.Witness(id)
		if err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if _, err := d.Alive(id); err != nil {
			return err
		}
		if _, _, err := session.TryLock(d.Path("verify", "1.lock")); err != nil {
			return err
		}
	}
	if _, err := d.Begin(session.NewID(time.Now()), session.Work{}); err != nil {
		return err
	}
	if err := d.SaveProbe("url", "x"); err != nil {
		return err
	}
	return d.Outbox().Write(id, "x")
}

// playWrites writes a journal as many times as its second argument says, each
// with its number, and acknowledges each.
func playWrites(d session.Dir, args []string) error {
	var n int
	if _, err := fmt.Sscan(args[1], &n); err != nil {
		return err
	}
	for i := range n {
		if err := d.Journal().Write(ulid.MustParse(args[0]), entry{i, strings.Repeat("x", i%5000)}); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return nil
}

// An entry is a journal of which one half without the other would show.
type entry struct {
	N    int
	Text string
}

func playEnsure(d session.Dir, _ []string) error {
	source, err := namedSession(d)
	if err != nil {
		return err
	}
	s, err := source.Ensure()
	if err != nil {
		return err
	}
	fmt.Println(s.Root.Hex())
	return nil
}

func playNote(d session.Dir, args []string) error {
	source, err := namedSession(d)
	if err != nil {
		return err
	}
	return source.Note(session.HoldNote{Remote: "origin", Name: args[0], Operation: session.NewID(time.Now())})
}

// playWitness takes the witness of an operation and lives on.
func playWitness(d session.Dir, args []string) error {
	w, err := d.Witness(ulid.MustParse(args[0]))
	if err != nil {
		return err
	}
	fmt.Println("taken")
	time.Sleep(time.Hour)
	return w.Close()
}

// playTake asks whether an operation is alive and takes it over if it is not.
// It lives until all have had their say, which the end of descriptor 3 shows.
func playTake(d session.Dir, args []string) error {
	op := ulid.MustParse(args[0])
	for range 20 {
		if _, err := d.Alive(op); err != nil {
			return err
		}
	}
	w, err := d.Witness(op)
	if err != nil {
		fmt.Println(err)
		return nil
	}
	fmt.Println("taken")
	os.NewFile(3, "end").Read(make([]byte, 1))
	return w.Close()
}

// A process plays a role.
type process struct {
	*exec.Cmd
	start io.Closer
	out   *bufio.Scanner
}

// play starts a role; it waits for begin.
func play(t *testing.T, role string, files []*os.File, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = files
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &process{cmd, stdin, bufio.NewScanner(stdout)}
}

// crowd starts n processes of one role and lets them go together. Each has its
// number for a last argument.
func crowd(t *testing.T, n int, role string, files []*os.File, args ...string) []*process {
	t.Helper()
	all := make([]*process, n)
	for i := range all {
		all[i] = play(t, role, files, append(args, fmt.Sprint(i))...)
	}
	for _, p := range all {
		p.begin()
	}
	return all
}

func (p *process) begin() { p.start.Close() }

// line is the next line of stdout.
func (p *process) line(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("no more output: %v, %v", p.out.Err(), p.Wait())
	}
	return p.out.Text()
}

// end waits for the process, which must succeed.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}
