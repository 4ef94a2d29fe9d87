package session_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"gitland/internal/session"
)

// The tests that lock and unlock in this process are not parallel: a process
// that another test is just starting has a copy of every descriptor, locks
// included, until its exec.

func TestTryLock(t *testing.T) {
	path := session.Open(t.TempDir()).Path("verify", "1.lock")
	first, ok, err := session.TryLock(path)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if again, ok, err := session.TryLock(path); again != nil || ok || err != nil {
		t.Errorf("locked twice: %v, %v", ok, err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	again, ok, err := session.TryLock(path)
	if !ok || err != nil {
		t.Fatalf("closed, but locked: %v", err)
	}
	again.Close()
	if _, ok, err := session.TryLock(t.TempDir()); ok || err == nil {
		t.Errorf("a directory: got %v, %v", ok, err)
	}
}

func TestLockWaits(t *testing.T) {
	t.Parallel()
	path := session.Open(t.TempDir()).Path("mirror", "origin.lock")
	first, err := session.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := session.Lock(ctx, path); !errors.Is(err, cause) {
		t.Errorf("got %v, want the context's cause", err)
	}
	got := make(chan error, 1)
	go func() {
		second, err := session.Lock(t.Context(), path)
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	// Nobody kept the lock that was waited for in vain.
	last, err := session.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	last.Close()
}

func TestWitness(t *testing.T) {
	d := session.Open(t.TempDir())
	op := session.NewID(time.Now())
	w, err := d.Witness(op)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if alive, err := d.Alive(op); !alive || err != nil {
			t.Errorf("got %v, %v, want alive", alive, err)
		}
		if _, err := d.Witness(op); !errors.Is(err, session.ErrAlive) {
			t.Errorf("got %v, want ErrAlive", err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		if alive, err := d.Alive(op); alive || err != nil {
			t.Errorf("got %v, %v, want dead", alive, err)
		}
	}
	if w, err = d.Witness(op); err != nil {
		t.Fatalf("take over: %v", err)
	}
	if err := w.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := d.Alive(op); !errors.Is(err, session.ErrNoWitness) {
		t.Errorf("got %v, want ErrNoWitness", err)
	}
}

// A killed process is dead, with nothing of its own doing.
func TestWitnessOfKilledProcess(t *testing.T) {
	t.Parallel()
	common := t.TempDir()
	d := session.Open(common)
	op := session.NewID(time.Now())
	p := play(t, "witness", nil, common, op.String())
	p.begin()
	if got := p.line(t); got != "taken" {
		t.Fatal(got)
	}
	if alive, err := d.Alive(op); !alive || err != nil {
		t.Errorf("got %v, %v, want alive", alive, err)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if alive, err := d.Alive(op); alive || err != nil {
		t.Errorf("got %v, %v, want dead", alive, err)
	}
}

// A command that inherited the witness counts as life when we have closed it;
// one that did not inherit it does not.
func TestWitnessHandedDown(t *testing.T) {
	d := session.Open(t.TempDir())
	op := session.NewID(time.Now())
	w, err := d.Witness(op)
	if err != nil {
		t.Fatal(err)
	}
	run := func(files ...*os.File) (end func()) {
		cmd := exec.Command("cat")
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
		// It has come as far as its own program when it answers.
		io.WriteString(stdin, "x")
		if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return func() {
			stdin.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		}
	}
	end, endOther := run(w.File()), run()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if alive, err := d.Alive(op); !alive || err != nil {
		t.Errorf("got %v, %v, want alive", alive, err)
	}
	if _, err := d.Witness(op); !errors.Is(err, session.ErrAlive) {
		t.Errorf("got %v, want ErrAlive", err)
	}
	end()
	if alive, err := d.Alive(op); alive || err != nil {
		t.Errorf("got %v, %v, want dead", alive, err)
	}
	endOther()
}

// Asking for a sign of life is none, however many ask.
func TestAskingIsNoSignOfLife(t *testing.T) {
	d := session.Open(t.TempDir())
	op := session.NewID(time.Now())
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	for range 4 {
		asking.Go(func() {
			for ctx.Err() == nil {
				if _, err := d.Alive(op); err != nil && !errors.Is(err, session.ErrNoWitness) {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 200 {
		w, err := d.Witness(op)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Of many that find an operation dead, one takes it over.
func TestTakeOverAtOnce(t *testing.T) {
	t.Parallel()
	common := t.TempDir()
	op := session.NewID(time.Now())
	dead := play(t, "witness", nil, common, op.String())
	dead.begin()
	if got := dead.line(t); got != "taken" {
		t.Fatal(got)
	}
	dead.Process.Kill()
	dead.Wait()
	end, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	taken := 0
	all := crowd(t, 8, "take", []*os.File{end}, common, op.String())
	for _, p := range all {
		switch got := p.line(t); got {
		case "taken":
			taken++
		case "operation " + op.String() + ": the operation is alive":
		default:
			t.Errorf("got %q", got)
		}
	}
	hold.Close()
	end.Close()
	for _, p := range all {
		p.end(t)
	}
	if taken != 1 {
		t.Errorf("%d processes took the operation over", taken)
	}
}
